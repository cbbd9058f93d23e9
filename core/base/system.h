#pragma once

// What the operating system knows about this machine and this process.

#include <cstdint>

namespace headroom {

// Physical cores this process may run on (at least 1): where two hardware threads share a core they count once.
[[nodiscard]] int physical_cores() noexcept;

// Bytes of RAM in the machine; 0 where the system does not tell.
[[nodiscard]] std::uint64_t total_ram() noexcept;

// Bytes of RAM that could be used without swapping; 0 where the system does not tell.
[[nodiscard]] std::uint64_t available_ram() noexcept;

// Largest resident size of this process so far, in bytes; 0 where the system does not tell.
[[nodiscard]] std::uint64_t peak_resident_bytes() noexcept;

}  // namespace headroom
