#pragma once

#include <functional>

#include "core/base/bytes.h"
#include "core/gpu/driver.h"
#include "core/gpu/memory_counter.h"
#include "core/vmm/verdict.h"

namespace headroom::vmm {

struct SelfTestOptions {
    // Wanted; rounded up to the granularity. Measured (docs/virtual-memory.md): smaller segments take too long to give back, larger ones
    // gain little and give back too coarsely.
    std::uint64_t segment_bytes = 128 * MiB;
    int rounds = 20;                         // of growing several ranges
    int cycles = 100;                        // of the canary
    std::chrono::milliseconds pause{20};     // between two looks at fresh memory, and before a second try of the release step
};

// What the test tells while it runs, so that a hang or a crash can be blamed on a step.
struct SelfTestListener {
    std::function<void(std::string_view step)> begin;
    std::function<void(const Observation& observation)> end;
};

// Tests one device in this process: it may hang or crash with the driver, so the program runs it in a child (self_test_process.h).
// Leaves nothing behind on the device. Never fails: what goes wrong is the verdict's reason. counter: the driver's own, or null.
[[nodiscard]] Verdict run_self_test(gpu::Driver& driver, const gpu::DeviceInfo& device, gpu::MemoryCounter* counter,
                                    const SelfTestOptions& options = {}, const SelfTestListener& listener = {});

// VRAM that has to be free for the test.
inline constexpr std::uint64_t self_test_needs = 256 * MiB;

}  // namespace headroom::vmm
