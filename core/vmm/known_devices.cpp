#include "core/vmm/known_devices.h"

#include <cstdlib>

#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include "core/base/bytes.h"
#include "core/base/paths.h"
#include "core/base/system.h"
#include "core/gpu/amdgpu.h"

namespace headroom::vmm {
namespace {

using nlohmann::json;

constexpr int format_version = 2;

std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

json cuda_machine(const gpu::Nvml& nvml) {
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

std::int64_t changed_at(const std::filesystem::path& file) {
    std::error_code code;
    const auto time = std::filesystem::last_write_time(file, code);
    return code ? 0 : static_cast<std::int64_t>(time.time_since_epoch().count());
}

// library: the file that was loaded. Whether the loader would take another one now shows in its cache, its variable, and where AMD's own
// packages put theirs.
json hip_machine(const gpu::SearchPath& path, const std::filesystem::path& library) {
    std::error_code code;
    const auto cards = gpu::amdgpu_buses(path);
    const auto size = std::filesystem::file_size(library, code);
    if (cards.empty() || code) return nullptr;
    json machine = {{"format", format_version},
                    {"os", os_name()},
                    {"driver", gpu::amdgpu_driver_version(path)},
                    {"cards", cards},
                    {"library", to_utf8(library)},
                    {"library_bytes", size},
                    {"library_changed", changed_at(library)},
                    {"libraries", to_utf8(path.libraries)}};
    if (path.libraries.empty()) {
        machine["loader_changed"] = changed_at("/etc/ld.so.cache");
        machine["rocm"] = to_utf8(std::filesystem::canonical("/opt/rocm", code));
    }
    for (const char* name : {"LD_LIBRARY_PATH", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "HSA_OVERRIDE_GFX_VERSION"}) {
        machine[name] = variable(name);
    }
    return machine;
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
            {"shared_per_block", d.shared_per_block},
            {"integrated", d.integrated},
            {"vmm", d.vmm_attribute},
            {"luid", d.luid ? json(*d.luid) : json()}};
}

// Nothing where a field is missing or of another type.
std::optional<gpu::DeviceInfo> from_json(gpu::Backend backend, const json& from) {
    try {
        gpu::DeviceInfo d;
        d.backend = backend;
        d.index = from.at("index").get<int>();
        d.id = fmt::format("{}:{}", gpu::to_string(backend), d.index);
        d.name = from.at("name").get<std::string>();
        d.uuid = from.at("uuid").get<std::string>();
        d.bus = from.at("bus").get<std::string>();
        d.architecture = from.at("architecture").get<std::string>();
        d.driver = from.at("driver").get<std::string>();
        d.runtime = from.at("runtime").get<std::string>();
        d.total_bytes = from.at("total_bytes").get<std::uint64_t>();
        d.multiprocessors = from.at("multiprocessors").get<int>();
        d.lanes = from.at("lanes").get<int>();
        d.shared_per_block = from.at("shared_per_block").get<unsigned>();
        d.integrated = from.at("integrated").get<bool>();
        d.vmm_attribute = from.at("vmm").get<bool>();
        if (const auto& luid = from.at("luid"); !luid.is_null()) d.luid = luid.get<std::uint64_t>();
        return d;
    } catch (const json::exception&) {
        return std::nullopt;
    }
}

// The list kept for a backend, if the machine is the one it was made on.
std::optional<std::vector<gpu::DeviceInfo>> read_list(const json& file, gpu::Backend backend, const json& machine) {
    const json kept = file.value(gpu::to_string(backend), json::object());
    if (machine.is_null() || !kept.is_object() || kept.value("machine", json()) != machine) return std::nullopt;
    std::vector<gpu::DeviceInfo> devices;
    for (const auto& entry : kept.value("devices", json::array())) {
        auto device = from_json(backend, entry);
        if (!device) return std::nullopt;
        devices.push_back(std::move(*device));
    }
    if (devices.empty()) return std::nullopt;
    return devices;
}

}  // namespace

json KnownDevices::load() const {
    const auto text = read_file(file_, MiB);
    json file = text ? json::parse(*text, nullptr, false) : json();
    return file.is_object() ? file : json::object();
}

void KnownDevices::keep(gpu::Backend backend, json machine, std::span<const gpu::DeviceInfo> devices) const {
    if (machine.is_null() || devices.empty()) return;
    json list = json::array();
    for (const auto& device : devices) list.push_back(to_json(device));
    json file = load();
    file[gpu::to_string(backend)] = {{"machine", std::move(machine)}, {"devices", std::move(list)}};
    if (const auto kept = write_file(file_, file.dump(1, ' ', false, json::error_handler_t::replace)); !kept) {
        spdlog::warn("The list of devices is not kept: {}", kept.error().message);
    }
}

std::optional<std::vector<gpu::DeviceInfo>> KnownDevices::find_cuda(const gpu::Nvml& nvml) const {
    return read_list(load(), gpu::Backend::cuda, cuda_machine(nvml));
}

void KnownDevices::keep_cuda(const gpu::Nvml& nvml, std::span<const gpu::DeviceInfo> devices) const {
    keep(gpu::Backend::cuda, cuda_machine(nvml), devices);
}

std::optional<std::vector<gpu::DeviceInfo>> KnownDevices::find_hip(const gpu::SearchPath& path) const {
    const json file = load();
    const json library = file.value(json::json_pointer("/hip/machine/library"), json());
    if (!library.is_string()) return std::nullopt;
    return read_list(file, gpu::Backend::hip, hip_machine(path, from_utf8(library.get<std::string>())));
}

void KnownDevices::keep_hip(const gpu::SearchPath& path, const std::filesystem::path& library, std::span<const gpu::DeviceInfo> devices) const {
    keep(gpu::Backend::hip, hip_machine(path, library), devices);
}

}  // namespace headroom::vmm
