#pragma once

// What the operating system knows about this machine and this process.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace headroom {

// Physical cores this process may run on (at least 1): where two hardware threads share a core they count once.
[[nodiscard]] int physical_cores() noexcept;

// Compute threads beside a GPU: one core in eight is left to those that feed the device, change what lies on it and serve. A compute thread
// whose core is taken holds up all the others, for milliseconds.
[[nodiscard]] inline int threads_beside_gpu() noexcept { return physical_cores() - physical_cores() / 8; }

// Bytes of RAM in the machine; 0 where the system does not tell.
[[nodiscard]] std::uint64_t total_ram() noexcept;

// Bytes of RAM that could be used without swapping; 0 where the system does not tell.
[[nodiscard]] std::uint64_t available_ram() noexcept;

// Largest resident size of this process so far, in bytes; 0 where the system does not tell.
[[nodiscard]] std::uint64_t peak_resident_bytes() noexcept;

// The system and its version, down to what changes with an update: "Linux 6.1.0-28-amd64", "Windows 10.0.22631".
[[nodiscard]] std::string os_name();

// How many files this process may have open. Windows sets no limit that matters here: nothing.
struct OpenFileLimit {
    std::uint64_t soft = 0;  // what counts now
    std::uint64_t hard = 0;  // what `soft` can be raised to without rights
};
[[nodiscard]] std::optional<OpenFileLimit> open_file_limit() noexcept;

// Raises the soft limit to `wanted`, or as far as the hard one allows; never lowers it. Returns the limit then in force.
std::optional<OpenFileLimit> raise_open_file_limit(std::uint64_t wanted) noexcept;

// Files this process has open now; nothing where the system does not tell.
[[nodiscard]] std::optional<std::uint64_t> open_file_count() noexcept;

// The time on this computer's clock, in its time zone. (GCC 12 has no std::chrono::current_zone().)
[[nodiscard]] std::chrono::local_seconds local_time() noexcept;

}  // namespace headroom
