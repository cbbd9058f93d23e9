#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "core/gpu/device.h"
#include "core/gpu/nvml.h"

namespace headroom::vmm {

// The NVIDIA devices that the CUDA driver listed the last time, kept in a file. Starting that driver takes 0.2 s and more; NVML takes 10 ms to
// say that driver and cards are still the same ones, and then the list holds.
class KnownDevices {
public:
    explicit KnownDevices(std::filesystem::path file) : file_(std::move(file)) {}

    // Nothing where anything changed that the list depends on: driver, CUDA version, cards and their order, the variables that choose among
    // them, the system.
    [[nodiscard]] std::optional<std::vector<gpu::DeviceInfo>> find(const gpu::Nvml& nvml) const;
    void keep(const gpu::Nvml& nvml, std::span<const gpu::DeviceInfo> devices) const;  // a failure is logged

private:
    std::filesystem::path file_;
};

}  // namespace headroom::vmm
