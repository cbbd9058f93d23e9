// Steps of the self-test: what is given back. Release measured by the counters, open files, teardown.

#include <thread>

#include "core/base/system.h"
#include "core/vmm/open_files.h"
#include "core/vmm/self_test_steps.h"
#include "core/vmm/verdict_text.h"

namespace headroom::vmm {

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

}  // namespace headroom::vmm
