#include "core/base/address_wait.h"

#include <semaphore>
#include <type_traits>

#include <windows.h>

namespace headroom {

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));
// The library's waiting on an atomic loses wake-ups here (address_wait.h), and where its semaphores are made of that, a stop callback that
// ends while a stop is requested sleeps for ever: HeadroomOptions.cmake asks for the system's.
static_assert(std::is_same_v<std::__semaphore_impl, std::__platform_semaphore>);

void wait_on(const std::atomic<std::uint32_t>& value, std::uint32_t old) noexcept {
    ::WaitOnAddress(const_cast<std::atomic<std::uint32_t>*>(&value), &old, sizeof old, INFINITE);
}
void wake_one(std::atomic<std::uint32_t>& value) noexcept { ::WakeByAddressSingle(&value); }
void wake_all(std::atomic<std::uint32_t>& value) noexcept { ::WakeByAddressAll(&value); }

}  // namespace headroom
