#include "core/gpu/device.h"

#include <tuple>

namespace headroom::gpu {

std::string_view to_string(Backend backend) noexcept { return backend == Backend::cuda ? "cuda" : "hip"; }

std::optional<Backend> backend_from(std::string_view name) noexcept {
    if (name == "cuda") return Backend::cuda;
    if (name == "hip") return Backend::hip;
    return std::nullopt;
}

const DeviceInfo* default_device(std::span<const DeviceInfo> devices) noexcept {
    const DeviceInfo* best = nullptr;
    for (const auto& device : devices) {
        if (!best || std::tuple(!device.integrated, device.total_bytes) > std::tuple(!best->integrated, best->total_bytes)) best = &device;
    }
    return best;
}

}  // namespace headroom::gpu
