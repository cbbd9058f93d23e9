#include "core/vmm/known_devices.h"

#include <cstdlib>

#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include "core/base/bytes.h"
#include "core/base/paths.h"
#include "core/base/system.h"

namespace headroom::vmm {
namespace {

using nlohmann::json;

constexpr int format_version = 1;

json fingerprint(const gpu::Nvml& nvml) {
    const auto variable = [](const char* name) {
        const char* value = std::getenv(name);
        return std::string(value ? value : "");
    };
    const auto cards = nvml.device_uuids();
    if (!cards) return nullptr;
    return {{"format", format_version},
            {"os", os_name()},
            {"driver", nvml.driver_version()},
            {"cuda", nvml.cuda_version()},
            {"cards", *cards},
            {"visible", variable("CUDA_VISIBLE_DEVICES")},
            {"order", variable("CUDA_DEVICE_ORDER")}};
}

json to_json(const gpu::DeviceInfo& d) {
    return {{"index", d.index},
            {"name", d.name},
            {"uuid", d.uuid},
            {"bus", d.bus},
            {"architecture", d.architecture},
            {"driver", d.driver},
            {"runtime", d.runtime},
            {"total_bytes", d.total_bytes},
            {"multiprocessors", d.multiprocessors},
            {"lanes", d.lanes},
            {"integrated", d.integrated},
            {"vmm", d.vmm_attribute},
            {"luid", d.luid ? json(*d.luid) : json()}};
}

// Nothing where a field is missing or of another type.
std::optional<gpu::DeviceInfo> from_json(const json& from) {
    try {
        gpu::DeviceInfo d;
        d.backend = gpu::Backend::cuda;
        d.index = from.at("index").get<int>();
        d.id = fmt::format("cuda:{}", d.index);
        d.name = from.at("name").get<std::string>();
        d.uuid = from.at("uuid").get<std::string>();
        d.bus = from.at("bus").get<std::string>();
        d.architecture = from.at("architecture").get<std::string>();
        d.driver = from.at("driver").get<std::string>();
        d.runtime = from.at("runtime").get<std::string>();
        d.total_bytes = from.at("total_bytes").get<std::uint64_t>();
        d.multiprocessors = from.at("multiprocessors").get<int>();
        d.lanes = from.at("lanes").get<int>();
        d.integrated = from.at("integrated").get<bool>();
        d.vmm_attribute = from.at("vmm").get<bool>();
        if (const auto& luid = from.at("luid"); !luid.is_null()) d.luid = luid.get<std::uint64_t>();
        return d;
    } catch (const json::exception&) {
        return std::nullopt;
    }
}

}  // namespace

std::optional<std::vector<gpu::DeviceInfo>> KnownDevices::find(const gpu::Nvml& nvml) const {
    const auto text = read_file(file_, MiB);
    const json file = text ? json::parse(*text, nullptr, false) : json();
    const json now = fingerprint(nvml);
    if (!file.is_object() || now.is_null() || file.value("machine", json()) != now) return std::nullopt;
    std::vector<gpu::DeviceInfo> devices;
    for (const auto& entry : file.value("devices", json::array())) {
        auto device = from_json(entry);
        if (!device) return std::nullopt;
        devices.push_back(std::move(*device));
    }
    if (devices.empty()) return std::nullopt;
    return devices;
}

void KnownDevices::keep(const gpu::Nvml& nvml, std::span<const gpu::DeviceInfo> devices) const {
    json list = json::array();
    for (const auto& device : devices) list.push_back(to_json(device));
    const json file = {{"machine", fingerprint(nvml)}, {"devices", std::move(list)}};
    if (const auto kept = write_file(file_, file.dump(1, ' ', false, json::error_handler_t::replace)); !kept) {
        spdlog::warn("The list of devices is not kept: {}", kept.error().message);
    }
}

}  // namespace headroom::vmm
