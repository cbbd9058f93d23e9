#pragma once

// Sleeping until a number changes: futex on Linux, WaitOnAddress on Windows. std::atomic::wait would say the same, but GCC 12's
// library for Windows checks the value before it takes the lock that it sleeps under, and so loses wake-ups.
// Any thread. A wake-up may come for no reason: wait in a loop.

#include <atomic>
#include <cstdint>

namespace headroom {

// Returns at once where `value` is not `old`, else after a wake-up.
void wait_on(const std::atomic<std::uint32_t>& value, std::uint32_t old) noexcept;
// Wakes those that wait on `value`; call after the change.
void wake_one(std::atomic<std::uint32_t>& value) noexcept;
void wake_all(std::atomic<std::uint32_t>& value) noexcept;

}  // namespace headroom
