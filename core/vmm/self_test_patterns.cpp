// Steps of the self-test: patterns in unequal segments, and how patterns are written and read.

#include <algorithm>
#include <thread>

#include "core/vmm/self_test_steps.h"
#include "core/vmm/verdict_text.h"

namespace headroom::vmm {

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

}  // namespace headroom::vmm
