#include "core/base/address_wait.h"

#include <windows.h>

namespace headroom {

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));

void wait_on(const std::atomic<std::uint32_t>& value, std::uint32_t old) noexcept {
    ::WaitOnAddress(const_cast<std::atomic<std::uint32_t>*>(&value), &old, sizeof old, INFINITE);
}
void wake_one(std::atomic<std::uint32_t>& value) noexcept { ::WakeByAddressSingle(&value); }
void wake_all(std::atomic<std::uint32_t>& value) noexcept { ::WakeByAddressAll(&value); }

}  // namespace headroom
