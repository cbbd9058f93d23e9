#pragma once

// VRAM as the driver of record counts it, for all programs together. Reading needs no context on the card and takes well under a
// millisecond, so it can be polled.

#include <memory>
#include <string_view>

#include "core/base/error.h"
#include "core/gpu/device.h"
#include "core/gpu/search_path.h"

namespace headroom::gpu {

struct MemoryReading {
    std::uint64_t total = 0;
    std::uint64_t used = 0;                // by all programs
    std::uint64_t free = 0;
    std::optional<std::uint64_t> own;      // used by this process, where the driver says so
    std::optional<std::uint64_t> budget;   // Windows: what the system lets this process have; beyond it memory spills into RAM
};

class MemoryCounter {
public:
    // The counter of a device: NVML for NVIDIA cards, the amdgpu driver's files on Linux, the budget of DXGI on Windows (alone for AMD,
    // and beside NVML's figures for NVIDIA). Null where there is none.
    [[nodiscard]] static std::unique_ptr<MemoryCounter> open(const DeviceInfo& device, const SearchPath& path);

    virtual ~MemoryCounter() = default;
    [[nodiscard]] virtual std::string_view name() const noexcept = 0;  // "NVML", "amdgpu", "DXGI"
    // Errors: device, io. Any thread, one at a time.
    [[nodiscard]] virtual Result<MemoryReading> read() = 0;
};

}  // namespace headroom::gpu
