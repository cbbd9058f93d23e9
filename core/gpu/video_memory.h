#pragma once

// Windows: DXGI's budget for this process on one adapter.

#include <memory>

#include "core/gpu/memory_counter.h"

namespace headroom::gpu {

// Null where the device has no adapter id or the system is not Windows.
[[nodiscard]] std::unique_ptr<MemoryCounter> open_video_memory_counter(const DeviceInfo& device);

}  // namespace headroom::gpu
