#include "core/engine/machine_vram.h"

#include <utility>

#include "core/engine/vram_control.h"
#include "core/engine/vram_wishes.h"
#include "core/gpu/display.h"
#include "core/vmm/device_list.h"

namespace headroom::engine {

std::vector<VramDevice> machine_vram(const gpu::SearchPath& drivers, const std::filesystem::path& data_folder) {
    const bool keeps = !data_folder.empty();
    const vmm::DeviceList list = vmm::find_devices(drivers, keeps ? data_folder / "devices.json" : std::filesystem::path());
    const VramWishes wishes(data_folder);
    std::vector<VramDevice> devices;
    for (const vmm::ListedDevice& found : list.devices) {
        const gpu::DeviceInfo& info = found.info;
        VramDevice device;
        device.id = info.id;
        device.name = info.name;
        device.uuid = info.uuid;
        device.verdict = "off";
        device.reason = "It was not tested yet: that is done when a model is loaded to it, and by headroom-cli devices";
        if (const auto verdict = keeps ? vmm::VerdictStore(data_folder / "verdicts.json").find(info) : std::nullopt) {
            device.verdict = vmm::to_string(verdict->kind);
            device.reason = verdict->reason;
        }
        device.total_bytes = info.total_bytes;
        if (found.counter) {
            if (const auto reading = found.counter->read()) device.free_bytes = reading->free;
        }
        device.default_reserve_bytes = default_reserve(info.total_bytes, gpu::has_display(info, drivers));
        device.wish = wishes.find(info.uuid);
        device.reserve_bytes = device.wish.reserve_bytes.value_or(device.default_reserve_bytes);
        devices.push_back(std::move(device));
    }
    return devices;
}

}  // namespace headroom::engine
