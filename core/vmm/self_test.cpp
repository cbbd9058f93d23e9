#include "core/vmm/self_test.h"

#include <algorithm>
#include <array>
#include <thread>

#include "core/base/system.h"
#include "core/vmm/open_files.h"
#include "core/vmm/pattern_kernel.h"
#include "core/vmm/verdict_text.h"

namespace headroom::vmm {
namespace {

using Clock = std::chrono::steady_clock;

// A step's end: passed, noted or skipped with what was seen, or failed with the reason.
struct Outcome {
    Observation::Outcome outcome = Observation::Outcome::passed;
    std::string seen;
};
Outcome passed(std::string seen) { return {Observation::Outcome::passed, std::move(seen)}; }
Outcome noted(std::string seen) { return {Observation::Outcome::noted, std::move(seen)}; }
Outcome failed(std::string seen) { return {Observation::Outcome::failed, std::move(seen)}; }

class SelfTest {
public:
    SelfTest(gpu::Driver& driver, const gpu::DeviceInfo& device, gpu::MemoryCounter* counter, const SelfTestOptions& options,
             const SelfTestListener& listener)
        : driver_(driver), device_(device), counter_(counter), options_(options), listener_(listener), pool_(driver, device.index) {}

    Verdict run();

private:
    // A segment with its place and the pattern written to it.
    struct Piece {
        gpu::DevicePointer at = 0;
        std::uint64_t bytes = 0;
        std::uint32_t seed = 0;
    };

    bool step(std::string_view name, Result<Outcome> (SelfTest::*body)());
    Result<Outcome> entry_points();
    Result<Outcome> granularity();
    Result<Outcome> addresses();
    Result<Outcome> patterns();
    Result<Outcome> release();
    Result<Outcome> ranges();
    Result<Outcome> replacement();
    Result<Outcome> canary();
    Result<Outcome> open_files();
    Result<Outcome> teardown();

    Result<Outcome> unequal_segments(std::vector<std::uint64_t> sizes, bool& lost);
    Result<std::string> look_at(const std::vector<Piece>& pieces, bool by_kernel);
    Result<> small_copies(gpu::DevicePointer at, std::uint64_t bytes, bool& refused, std::string& error);
    Result<> write(const Piece& piece, bool by_kernel);
    Result<std::uint32_t> differing(const Piece& piece, bool by_kernel);
    Result<std::uint32_t> first_word(const Piece& piece);
    Result<bool> holds_zeros(const Piece& piece);

    Result<std::unique_ptr<Arena>> arena(std::uint64_t bytes, std::uint64_t segment);
    Result<> grow(Arena& arena, std::span<const std::size_t> which);
    Result<> grow(Arena& arena, std::size_t slot) { return grow(arena, std::span(&slot, 1)); }
    std::uint64_t unit() const { return verdict_.granularity_recommended; }

    gpu::Driver& driver_;
    const gpu::DeviceInfo& device_;
    gpu::MemoryCounter* counter_;
    const SelfTestOptions& options_;
    const SelfTestListener& listener_;
    SegmentPool pool_;
    std::optional<PatternKernel> kernel_;
    std::string kernel_problem_;
    std::string access_refusal_;  // of a mapping alone
    bool dirty_ = false;
    std::vector<std::uint32_t> words_;  // host memory for patterns
    Verdict verdict_;
};

// Runs one step. False: the verdict is decided.
bool SelfTest::step(std::string_view name, Result<Outcome> (SelfTest::*body)()) {
    if (listener_.begin) listener_.begin(name);
    const auto start = Clock::now();
    const AccessStyle access = verdict_.access;
    auto result = (this->*body)();
    if (result && pool_.spare_bytes() > 0) {
        if (auto trimmed = pool_.trim(); !trimmed) result = std::unexpected(trimmed.error());
    }
    Outcome outcome = result ? std::move(*result) : failed(text::step_failed(name, result.error().message));
    if (!result && result.error().kind == ErrorKind::out_of_memory) verdict_.keep = false;
    if (access != verdict_.access && outcome.outcome != Observation::Outcome::failed) {
        outcome = noted(outcome.seen + "; " + text::saw_access_from_base(access_refusal_));
    }
    Observation observation{std::string(name), outcome.outcome, std::move(outcome.seen), std::chrono::duration<double>(Clock::now() - start).count()};
    if (listener_.end) listener_.end(observation);
    verdict_.observations.push_back(observation);
    if (observation.outcome != Observation::Outcome::failed) return true;
    verdict_.kind = VerdictKind::off;
    verdict_.reason = text::with_runtime(observation.seen, device_);
    return false;
}

Verdict SelfTest::run() {
    const auto start = Clock::now();
    verdict_.kind = VerdictKind::on;
    verdict_.uuid = device_.uuid;
    verdict_.driver = device_.driver;
    verdict_.runtime = device_.runtime;
    verdict_.os = os_name();
    const bool all = step(text::entry_points, &SelfTest::entry_points) && step(text::granularity, &SelfTest::granularity) &&
                     step(text::addresses, &SelfTest::addresses) && step(text::patterns, &SelfTest::patterns) &&
                     step(text::release, &SelfTest::release) && (verdict_.kind == VerdictKind::fixed ||
                     (step(text::ranges, &SelfTest::ranges) && step(text::replacement, &SelfTest::replacement) &&
                      step(text::canary, &SelfTest::canary) && step(text::open_files, &SelfTest::open_files))) &&
                     step(text::teardown, &SelfTest::teardown);
    verdict_.clear_fresh = dirty_;
    if (!all || verdict_.kind == VerdictKind::fixed) verdict_.segment_bytes = 0;
    verdict_.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    return std::move(verdict_);
}

Result<Outcome> SelfTest::entry_points() {
    if (!driver_.missing_vmm_functions().empty()) return failed(text::missing_functions(driver_.library(), driver_.missing_vmm_functions()));
    if (!device_.vmm_attribute) return failed(text::no_attribute());
    HR_CHECK(driver_.make_current(device_.index));
    HR_TRY(const auto memory, driver_.memory_info());
    std::uint64_t free = memory.free;
    if (counter_) {
        HR_TRY(const auto reading, counter_->read());
        free = std::min(free, reading.free);
    }
    if (free < self_test_needs) {
        verdict_.keep = false;
        return failed(text::not_enough_free(free, self_test_needs));
    }
    return passed(text::saw_entry_points(driver_.library()));
}

Result<Outcome> SelfTest::granularity() {
    constexpr std::uint64_t least = 64 * KiB;  // Windows' drivers name this one, and the patterns decide there
    HR_TRY(const auto found, driver_.granularity(device_.index));
    verdict_.granularity_min = found.minimum;
    verdict_.granularity_recommended = found.recommended;
    if (found.recommended < least) return failed(text::granularity_too_small(found.recommended));
    verdict_.segment_bytes = checked_round_up(options_.segment_bytes, found.recommended).value_or(options_.segment_bytes);
    auto seen = text::saw_granularity(found.minimum, found.recommended);
    return found.recommended < 2 * MiB ? noted(std::move(seen)) : passed(std::move(seen));
}

Result<Outcome> SelfTest::addresses() {
    const auto wanted = checked_round_up(std::max(device_.total_bytes, unit()), unit()).value_or(unit());
    std::string refusal;
    HR_TRY(auto range, AddressRange::reserve_up_to(driver_, device_.index, wanted, unit(), unit(), refusal));
    const std::uint64_t granted = range.bytes();
    HR_CHECK(range.free());
    verdict_.largest_reservation = granted;
    if (granted < wanted / 8) return failed(text::reservation_too_small(granted, wanted, refusal));
    auto seen = text::saw_addresses(granted, wanted, refusal);
    return granted < wanted ? noted(std::move(seen)) : passed(std::move(seen));
}

Result<> SelfTest::write(const Piece& piece, bool by_kernel) {
    if (by_kernel) return kernel_->fill(piece.at, piece.bytes, piece.seed);
    words_.resize(piece.bytes / sizeof(std::uint32_t));
    std::uint32_t* words = words_.data();
    for (std::size_t i = 0, count = words_.size(); i < count; ++i) words[i] = pattern_word(i, piece.seed);
    HR_CHECK(driver_.copy_to_device(piece.at, words_.data(), piece.bytes));
    return driver_.synchronize();
}

Result<std::uint32_t> SelfTest::differing(const Piece& piece, bool by_kernel) {
    if (by_kernel) return kernel_->check(piece.at, piece.bytes, piece.seed);
    words_.resize(piece.bytes / sizeof(std::uint32_t));
    HR_CHECK(driver_.copy_to_host(words_.data(), piece.at, piece.bytes));
    HR_CHECK(driver_.synchronize());
    std::uint32_t wrong = 0;
    const std::uint32_t* words = words_.data();
    for (std::size_t i = 0, count = words_.size(); i < count; ++i) wrong += words[i] != pattern_word(i, piece.seed);
    return wrong;
}

Result<std::uint32_t> SelfTest::first_word(const Piece& piece) {
    std::uint32_t word = 0;
    HR_CHECK(driver_.copy_to_host(&word, piece.at, sizeof word));
    HR_CHECK(driver_.synchronize());
    return word;
}

Result<bool> SelfTest::holds_zeros(const Piece& piece) {
    words_.resize(piece.bytes / sizeof(std::uint32_t));
    HR_CHECK(driver_.copy_to_host(words_.data(), piece.at, piece.bytes));
    HR_CHECK(driver_.synchronize());
    return std::ranges::all_of(words_, [](std::uint32_t word) { return word == 0; });
}

// Copies of 4 bytes to 1 MiB from the start of a piece.
Result<> SelfTest::small_copies(gpu::DevicePointer at, std::uint64_t bytes, bool& refused, std::string& error) {
    refused = false;
    words_.resize(MiB / sizeof(std::uint32_t));
    for (std::uint64_t size = 4; size <= std::min<std::uint64_t>(MiB, bytes); size *= 16) {
        auto copied = driver_.copy_to_host(words_.data(), at, size);
        if (copied) copied = driver_.synchronize();
        if (!copied) {
            refused = true;
            error = copied.error().message;
            return {};
        }
    }
    return {};
}

Result<std::unique_ptr<Arena>> SelfTest::arena(std::uint64_t bytes, std::uint64_t segment) {
    return Arena::create(pool_, {.bytes = bytes, .segment_bytes = segment, .granularity = unit(), .access = verdict_.access, .host_access = verdict_.host_access});
}

// Maps; where access for the mapping alone is refused, tries it from the base and stays with that.
Result<> SelfTest::grow(Arena& arena, std::span<const std::size_t> which) {
    arena.set_access_style(verdict_.access);
    auto done = arena.map(which);
    if (done || !arena.access_refused() || verdict_.access == AccessStyle::from_base) return done;
    arena.set_access_style(AccessStyle::from_base);
    auto again = arena.map(which);
    if (!again) return fail(ErrorKind::device, "{}", text::access_refused(done.error().message, again.error().message));
    verdict_.access = AccessStyle::from_base;
    access_refusal_ = done.error().message;
    return {};
}

// Reads every piece back by copies and by a kernel. Empty: all is well; else what is wrong, naming an alias where it is one.
Result<std::string> SelfTest::look_at(const std::vector<Piece>& pieces, bool by_kernel) {
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        HR_TRY(const auto wrong, differing(pieces[i], by_kernel));
        if (wrong == 0) continue;
        HR_TRY(const auto word, first_word(pieces[i]));
        for (std::size_t j = 0; j < pieces.size(); ++j) {
            if (j != i && word == pattern_word(0, pieces[j].seed)) return text::segments_alias(std::max(i, j), std::min(i, j), pieces.size());
        }
        return text::pattern_lost(by_kernel ? "a kernel" : "a copy", i, pieces.size());
    }
    return std::string();
}

// Maps segments of these sizes behind each other, writes a different pattern to each, and only then reads all of them back. lost: the
// patterns did not survive (the outcome says how); anything else that goes wrong is an error or a failed outcome.
Result<Outcome> SelfTest::unequal_segments(std::vector<std::uint64_t> sizes, bool& lost) {
    lost = false;
    std::uint64_t total = 0;
    for (const auto size : sizes) total += size;
    HR_TRY(auto range, AddressRange::reserve(driver_, device_.index, total));
    // Arenas have slots of one size; here each segment has its own, so the mapping is done by hand.
    struct Mapped {
        Piece piece;
        Segment segment;
    };
    std::vector<Mapped> mapped;
    const auto unmap_all = [&]() -> Result<> {
        while (!mapped.empty()) {
            HR_CHECK(driver_.unmap(device_.index, mapped.back().piece.at, mapped.back().piece.bytes));
            pool_.give_back(std::move(mapped.back().segment));
            mapped.pop_back();
        }
        return {};
    };
    const auto body = [&]() -> Result<Outcome> {
        std::uint64_t offset = 0;
        for (const auto size : sizes) {
            HR_TRY(auto segment, pool_.take(size));
            const Piece piece{range.base() + offset, size, static_cast<std::uint32_t>(0x51ED0000u + mapped.size() * 7919u)};
            if (auto done = driver_.map(device_.index, piece.at, size, segment.handle()); !done) {
                pool_.give_back(std::move(segment));
                return std::unexpected(done.error());
            }
            mapped.push_back({piece, std::move(segment)});
            offset += size;
            if (verdict_.access == AccessStyle::per_mapping) {
                const auto alone = driver_.set_access(device_.index, piece.at, size, verdict_.host_access);
                if (alone) continue;
                verdict_.access = AccessStyle::from_base;
                access_refusal_ = alone.error().message;
            }
            if (const auto whole = driver_.set_access(device_.index, range.base(), offset, verdict_.host_access); !whole) {
                return failed(text::access_refused(access_refusal_, whole.error().message));
            }
        }
        std::vector<Piece> pieces;
        for (const auto& m : mapped) pieces.push_back(m.piece);
        std::string copy_refusal;
        bool refused = false;
        HR_CHECK(small_copies(pieces[0].at, pieces[0].bytes, refused, copy_refusal));
        if (refused && !verdict_.host_access) {
            verdict_.host_access = true;
            for (const auto& piece : pieces) HR_CHECK(driver_.set_access(device_.index, piece.at, piece.bytes, true));
            std::string still;
            HR_CHECK(small_copies(pieces[0].at, pieces[0].bytes, refused, still));
            if (refused) return failed(text::small_copies_refused(4, still));
        }
        HR_TRY(const bool first, holds_zeros(pieces.front()));
        std::this_thread::sleep_for(options_.pause);
        HR_TRY(const bool second, holds_zeros(pieces.front()));
        dirty_ = dirty_ || !first || !second;
        const bool kernel = kernel_.has_value();
        for (const bool write_by_kernel : {false, true}) {
            if (write_by_kernel && !kernel) continue;
            for (auto& piece : pieces) {
                piece.seed += write_by_kernel ? 1000003u : 0u;
                HR_CHECK(write(piece, write_by_kernel));
            }
            for (const bool read_by_kernel : {false, true}) {
                if (read_by_kernel && !kernel) continue;
                HR_TRY(auto wrong, look_at(pieces, read_by_kernel));
                if (wrong.empty()) continue;
                lost = true;
                return failed(std::move(wrong));
            }
        }
        std::string seen = text::saw_patterns(pieces.size(), total, kernel, kernel_problem_);
        bool odd = false;
        const auto add = [&](const std::string& note) {
            seen += "; " + note;
            odd = true;
        };
        if (dirty_) add(text::saw_dirty_memory());
        if (verdict_.host_access) add(text::saw_host_access(copy_refusal));
        return odd ? noted(std::move(seen)) : passed(std::move(seen));
    };
    auto outcome = body();
    if (auto undone = unmap_all(); !undone) {
        if (const auto again = unmap_all(); !again) return std::unexpected(again.error());
        if (outcome && outcome->outcome != Observation::Outcome::failed) return std::unexpected(undone.error());
    }
    if (auto freed = range.free(); !freed && outcome && outcome->outcome != Observation::Outcome::failed) return std::unexpected(freed.error());
    return outcome;
}

Result<Outcome> SelfTest::patterns() {
    if (auto kernel = PatternKernel::load(driver_, device_)) {
        kernel_.emplace(std::move(*kernel));
        verdict_.kernel_test = true;
    } else {
        kernel_problem_ = kernel.error().message;
    }
    const std::uint64_t large = checked_round_up(std::min(verdict_.segment_bytes, 64 * MiB), unit()).value_or(unit());
    const std::vector<std::uint64_t> sizes = {3 * unit(), unit(), 5 * unit(), large};
    bool lost = false;
    HR_TRY(auto outcome, unequal_segments(sizes, lost));
    if (!lost) return outcome;
    // Several segments do not work: does one?
    std::uint64_t total = 0;
    for (const auto size : sizes) total += size;
    HR_CHECK(pool_.trim());
    HR_TRY(auto single, unequal_segments({total}, lost));
    if (single.outcome == Observation::Outcome::failed) return failed(outcome.seen + "; " + single.seen);
    verdict_.kind = VerdictKind::fixed;
    verdict_.reason = text::with_runtime(text::fixed_because(outcome.seen), device_);
    return noted(text::fixed_because(outcome.seen));
}

// Maps memory, unmaps and releases it while its addresses stay reserved, and reads both counters at each point.
Result<Outcome> SelfTest::release() {
    struct Reading {
        std::int64_t runtime = 0, driver = 0;
    };
    const auto read = [&]() -> Result<Reading> {
        HR_TRY(const auto runtime, driver_.memory_info());
        Reading reading{static_cast<std::int64_t>(runtime.free), 0};
        if (counter_) {
            HR_TRY(const auto card, counter_->read());
            reading.driver = static_cast<std::int64_t>(card.free);
        }
        return reading;
    };
    const std::uint64_t amount = checked_round_up(32 * MiB, unit()).value_or(unit());
    const std::int64_t enough = static_cast<std::int64_t>(amount) / 4 * 3;
    // The driver's counter follows within some milliseconds.
    const auto settle = [&](const Reading& before, int sign) -> Result<Reading> {
        const auto deadline = Clock::now() + std::chrono::milliseconds(200);
        for (;;) {
            HR_TRY(const auto now, read());
            const bool runtime_moved = (now.runtime - before.runtime) * sign >= enough;
            const bool driver_moved = !counter_ || (now.driver - before.driver) * sign >= enough;
            if ((runtime_moved && driver_moved) || Clock::now() >= deadline) return now;
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    };
    std::string first_try;
    for (int attempt = 0;; ++attempt) {
        HR_TRY(auto memory, arena(amount, amount));
        HR_TRY(const auto before, read());
        HR_CHECK(grow(*memory, 0));
        HR_TRY(const auto mapped, settle(before, -1));
        HR_CHECK(memory->unmap(0));
        HR_CHECK(pool_.trim());
        HR_TRY(const auto after, settle(mapped, +1));
        HR_CHECK(memory->close());
        const std::int64_t runtime_fell = before.runtime - mapped.runtime, runtime_rose = after.runtime - mapped.runtime;
        const std::int64_t driver_fell = before.driver - mapped.driver, driver_rose = after.driver - mapped.driver;
        const bool runtime_ok = runtime_fell >= enough && runtime_rose >= enough;
        const bool driver_ok = !counter_ || (driver_fell >= enough && driver_rose >= enough);
        if (runtime_ok && driver_ok) {
            auto seen = text::saw_release("the runtime", amount, runtime_fell, runtime_rose);
            if (counter_) seen += "; " + text::saw_release(counter_->name(), amount, driver_fell, driver_rose);
            if (attempt == 0) return passed(std::move(seen));
            return noted(seen + "; " + text::saw_release_retried(first_try));
        }
        std::string seen = runtime_ok ? text::not_released(counter_->name(), amount, driver_fell, driver_rose)
                                      : text::not_released("the runtime", amount, runtime_fell, runtime_rose);
        if (attempt > 0) return failed(std::move(seen));
        first_try = std::move(seen);  // another program may have moved the counters
        std::this_thread::sleep_for(options_.pause);
    }
}

// Several ranges of unequal size, each growing at its tail, again and again.
Result<Outcome> SelfTest::ranges() {
    const std::array<std::uint64_t, 3> slots = {4, 3, 5};
    std::vector<std::unique_ptr<Arena>> arenas;
    for (const auto count : slots) {
        HR_TRY(auto one, arena(count * unit(), unit()));
        arenas.push_back(std::move(one));
    }
    for (int round = 0; round < options_.rounds; ++round) {
        for (std::size_t slot = 0; slot < 5; ++slot) {
            for (auto& one : arenas) {
                if (slot < one->slot_count()) HR_CHECK(grow(*one, slot));
            }
        }
        std::vector<Piece> last;
        for (auto& one : arenas) {
            const std::size_t slot = one->slot_count() - 1;
            last.push_back({one->address(slot), one->slot_bytes(slot), static_cast<std::uint32_t>(round * 31) + static_cast<std::uint32_t>(last.size()) * 65537u});
            HR_CHECK(write(last.back(), kernel_.has_value()));
        }
        HR_TRY(auto wrong, look_at(last, kernel_.has_value()));
        if (!wrong.empty()) return failed(std::move(wrong));
        for (auto& one : arenas) {
            for (std::size_t slot = one->slot_count(); slot-- > 0;) HR_CHECK(one->unmap(slot));
        }
        HR_CHECK(pool_.trim());
    }
    for (auto& one : arenas) HR_CHECK(one->close());
    return passed(text::saw_ranges(slots.size(), options_.rounds));
}

// A segment in the middle moves to the end, a new one takes its place, and nothing else changes.
Result<Outcome> SelfTest::replacement() {
    HR_TRY(auto memory, arena(5 * unit(), unit()));
    std::vector<Piece> pieces;
    for (std::size_t slot = 0; slot < 4; ++slot) {
        HR_CHECK(grow(*memory, slot));
        pieces.push_back({memory->address(slot), memory->slot_bytes(slot), 0xC0FFEEu + static_cast<std::uint32_t>(slot)});
        HR_CHECK(write(pieces.back(), kernel_.has_value()));
    }
    HR_CHECK(memory->move(1, 4));
    HR_CHECK(grow(*memory, 1));
    pieces.push_back({memory->address(4), memory->slot_bytes(4), pieces[1].seed});  // the moved one keeps its contents
    pieces[1].seed = 0xBADCABu;
    HR_CHECK(write(pieces[1], kernel_.has_value()));
    for (std::size_t slot = 0; slot < pieces.size(); ++slot) {
        for (const bool by_kernel : {false, true}) {
            if (by_kernel && !kernel_) continue;
            HR_TRY(const auto wrong, differing(pieces[slot], by_kernel));
            if (wrong != 0) return failed(text::replacement_lost(slot));
        }
    }
    HR_CHECK(memory->close());
    return passed(text::saw_replacement());
}

Result<Outcome> SelfTest::canary() {
    HR_TRY(auto kept, arena(2 * unit(), 2 * unit()));
    HR_TRY(auto busy, arena(4 * unit(), unit()));
    HR_CHECK(grow(*kept, 0));
    const Piece bird{kept->address(0), kept->slot_bytes(0), 0xB12Du};
    HR_CHECK(write(bird, kernel_.has_value()));
    for (int cycle = 0; cycle < options_.cycles; ++cycle) {
        const std::array<std::size_t, 2> slots = {0, 1};
        HR_CHECK(grow(*busy, slots));
        HR_CHECK(driver_.fill(busy->address(0), 0xEE, busy->slot_bytes(0) + busy->slot_bytes(1)));
        HR_CHECK(driver_.synchronize());
        HR_CHECK(busy->unmap(slots));
        HR_CHECK(pool_.trim());
    }
    for (const bool by_kernel : {false, true}) {
        if (by_kernel && !kernel_) continue;
        HR_TRY(const auto wrong, differing(bird, by_kernel));
        if (wrong != 0) return failed(text::canary_lost(options_.cycles));
    }
    HR_CHECK(busy->close());
    HR_CHECK(kept->close());
    return passed(text::saw_canary(options_.cycles));
}

Result<Outcome> SelfTest::open_files() {
    constexpr int creates = 8;
    const auto before = open_file_count();
    const auto limit = open_file_limit();
    if (!before || !limit) return Outcome{Observation::Outcome::skipped, text::saw_no_limit()};
    std::vector<Segment> segments;
    const auto give_back = [&] {
        for (auto& segment : segments) pool_.give_back(std::move(segment));
    };
    for (int i = 0; i < creates; ++i) {
        auto segment = pool_.take(unit());
        if (!segment) {
            give_back();
            return std::unexpected(segment.error());
        }
        segments.push_back(std::move(*segment));
    }
    const auto after = open_file_count().value_or(*before);
    give_back();
    const std::uint64_t files = after > *before ? after - *before : 0;
    if (files < creates) return passed(text::saw_no_open_files(creates));
    const auto plan = plan_open_files(device_.total_bytes, verdict_.segment_bytes, files / creates, *before, limit->hard);
    verdict_.open_files_needed = plan.needed;
    if (!plan.fits) return failed(text::open_files_short(plan.needed, limit->soft, limit->hard));
    verdict_.segment_bytes = plan.segment_bytes;
    return noted(text::saw_open_files(plan.needed, limit->soft, limit->hard, plan.segment_bytes));
}

Result<Outcome> SelfTest::teardown() {
    constexpr int times = 2;
    for (int i = 0; i < times; ++i) {
        const std::uint64_t segment = verdict_.kind == VerdictKind::fixed ? 4 * unit() : unit();
        HR_TRY(auto memory, arena(4 * unit(), segment));
        std::vector<std::size_t> slots(memory->slot_count());
        for (std::size_t slot = 0; slot < slots.size(); ++slot) slots[slot] = slot;
        HR_CHECK(grow(*memory, slots));
        HR_CHECK(memory->unmap(slots));
        HR_CHECK(pool_.trim());
        HR_CHECK(memory->close());
    }
    return passed(text::saw_teardown(times));
}

}  // namespace

Verdict run_self_test(gpu::Driver& driver, const gpu::DeviceInfo& device, gpu::MemoryCounter* counter, const SelfTestOptions& options,
                      const SelfTestListener& listener) {
    return SelfTest(driver, device, counter, options, listener).run();
}

}  // namespace headroom::vmm
