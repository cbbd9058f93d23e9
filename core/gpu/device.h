#pragma once

// What a GPU is, as far as anyone outside the driver layer needs to know.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace headroom::gpu {

enum class Backend : std::uint8_t { cuda, hip };
[[nodiscard]] std::string_view to_string(Backend backend) noexcept;  // "cuda", "hip"
[[nodiscard]] std::optional<Backend> backend_from(std::string_view name) noexcept;

struct DeviceInfo {
    Backend backend = Backend::cuda;
    int index = 0;                  // the driver's ordinal
    std::string id;                 // "cuda:0", "hip:1"
    std::string name;               // "NVIDIA GeForce RTX 4070"
    std::string uuid;               // "GPU-9f9b…": stays with the card; the PCI bus where the runtime knows no UUID
    std::string bus;                // "0000:01:00.0"
    std::string architecture;       // "sm_89", "gfx1100"; empty where the runtime does not tell
    std::string driver;             // the kernel driver's version: "580.159.04"; empty where nobody tells
    std::string runtime;            // "CUDA 13.0", "HIP 7.2.53210"
    std::uint64_t total_bytes = 0;  // of VRAM
    int multiprocessors = 0;
    int lanes = 32;                 // threads of a warp or wavefront
    unsigned shared_per_block = 0;  // bytes of shared memory that one block may have at most; 0 where the runtime does not tell
    bool integrated = false;        // shares the processor's RAM
    bool vmm_attribute = false;     // the driver says that it supports virtual memory management
    std::optional<std::uint64_t> luid;  // Windows: the adapter
};

// The device that is used where nobody chose one: a real card before an integrated GPU, then the one with the most VRAM, then the
// lowest index. Null where there is none.
[[nodiscard]] const DeviceInfo* default_device(std::span<const DeviceInfo> devices) noexcept;

struct MemoryInfo {
    std::uint64_t free = 0;
    std::uint64_t total = 0;
};

}  // namespace headroom::gpu
