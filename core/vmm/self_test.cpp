#include "core/vmm/self_test.h"

#include <algorithm>

#include "core/base/system.h"
#include "core/vmm/self_test_steps.h"
#include "core/vmm/verdict_text.h"

namespace headroom::vmm {

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

Verdict run_self_test(gpu::Driver& driver, const gpu::DeviceInfo& device, gpu::MemoryCounter* counter, const SelfTestOptions& options,
                      const SelfTestListener& listener) {
    return SelfTest(driver, device, counter, options, listener).run();
}

}  // namespace headroom::vmm
