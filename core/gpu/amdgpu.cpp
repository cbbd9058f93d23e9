#include "core/gpu/amdgpu.h"

#include <algorithm>
#include <fstream>

#include "core/base/paths.h"
#include "core/base/system.h"

namespace headroom::gpu {
namespace {

class AmdgpuCounter final : public MemoryCounter {
public:
    explicit AmdgpuCounter(std::filesystem::path folder) : folder_(std::move(folder)) {}
    std::string_view name() const noexcept override { return "amdgpu"; }

    Result<MemoryReading> read() override {
        MemoryReading reading;
        HR_TRY(reading.total, read_number("mem_info_vram_total"));
        HR_TRY(reading.used, read_number("mem_info_vram_used"));
        reading.free = reading.total - std::min(reading.total, reading.used);
        return reading;
    }

private:
    Result<std::uint64_t> read_number(const char* name) const {
        std::uint64_t value = 0;
        if (std::ifstream in(folder_ / name); in >> value) return value;
        return fail(ErrorKind::io, "{} cannot be read", to_utf8(folder_ / name));
    }

    std::filesystem::path folder_;
};

}  // namespace

std::string amdgpu_driver_version(const SearchPath& path) {
    std::string version;
    if (std::ifstream in(path.sysfs / "module/amdgpu/version"); in >> version) return version;
    std::error_code code;
    return std::filesystem::exists(path.sysfs / "module/amdgpu", code) ? os_name() : std::string();
}

std::vector<std::string> amdgpu_buses(const SearchPath& path) {
    std::vector<std::string> buses;
    std::error_code code;
    for (const auto& device : std::filesystem::directory_iterator(path.sysfs / "bus/pci/devices", code)) {
        std::error_code absent;
        if (std::filesystem::exists(device.path() / "mem_info_vram_total", absent)) buses.push_back(to_utf8(device.path().filename()));
    }
    std::ranges::sort(buses);
    return buses;
}

std::unique_ptr<MemoryCounter> open_amdgpu_counter(const DeviceInfo& device, const SearchPath& path) {
    auto counter = std::make_unique<AmdgpuCounter>(path.sysfs / "bus/pci/devices" / device.bus);
    if (!counter->read()) return nullptr;
    return counter;
}

}  // namespace headroom::gpu
