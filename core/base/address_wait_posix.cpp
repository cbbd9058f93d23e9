#include "core/base/address_wait.h"

namespace headroom {

void wait_on(const std::atomic<std::uint32_t>& value, std::uint32_t old) noexcept { value.wait(old, std::memory_order_acquire); }
void wake_one(std::atomic<std::uint32_t>& value) noexcept { value.notify_one(); }
void wake_all(std::atomic<std::uint32_t>& value) noexcept { value.notify_all(); }

}  // namespace headroom
