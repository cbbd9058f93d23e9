#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/gpu/device.h"
#include "core/gpu/nvml.h"
#include "core/gpu/search_path.h"

namespace headroom::vmm {

// The devices that each driver listed the last time, kept in a file: starting a driver takes 0.2 s and more. Where nothing changed that a
// list depends on, it holds, and finding that out takes some milliseconds. Objects are cheap; each call reads or writes the file.
class KnownDevices {
public:
    explicit KnownDevices(std::filesystem::path file) : file_(std::move(file)) {}

    // NVIDIA's depend on the driver, the CUDA version, the cards and their order (as NVML tells them), the variables that choose among them
    // and the system.
    [[nodiscard]] std::optional<std::vector<gpu::DeviceInfo>> find_cuda(const gpu::Nvml& nvml) const;
    void keep_cuda(const gpu::Nvml& nvml, std::span<const gpu::DeviceInfo> devices) const;  // a failure is logged

    // AMD's depend on the cards and the kernel driver (as sysfs shows them), the file of the runtime's library, what the loader would find,
    // the variables and the system. Only where the amdgpu driver has cards in sysfs; elsewhere nothing is kept.
    [[nodiscard]] std::optional<std::vector<gpu::DeviceInfo>> find_hip(const gpu::SearchPath& path) const;
    void keep_hip(const gpu::SearchPath& path, const std::filesystem::path& library, std::span<const gpu::DeviceInfo> devices) const;

private:
    [[nodiscard]] nlohmann::json load() const;
    void keep(gpu::Backend backend, nlohmann::json machine, std::span<const gpu::DeviceInfo> devices) const;

    std::filesystem::path file_;
};

}  // namespace headroom::vmm
