#include "core/gpu/display.h"

#include <fstream>

namespace headroom::gpu {

bool has_display(const DeviceInfo& device, const SearchPath& path) {
    // …/drm/card0/card0-HDMI-A-1/status
    const std::filesystem::path folder = path.sysfs / "bus/pci/devices" / device.bus / "drm";
    std::error_code code;
    if (device.bus.empty() || !std::filesystem::is_directory(path.sysfs / "bus/pci/devices" / device.bus, code)) return true;
    for (const auto& card : std::filesystem::directory_iterator(folder, code)) {
        for (const auto& connector : std::filesystem::directory_iterator(card.path(), code)) {
            std::string status;
            if (std::ifstream(connector.path() / "status") >> status; status == "connected") return true;
        }
    }
    return false;
}

}  // namespace headroom::gpu
