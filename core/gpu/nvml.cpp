#include "core/gpu/nvml.h"

#include <array>

#include "core/base/process.h"

namespace headroom::gpu {
namespace {

#ifdef _WIN32
const std::vector<std::string> library_names = {"nvml.dll"};
const std::vector<std::filesystem::path> places = {"C:\\Program Files\\NVIDIA Corporation\\NVSMI"};  // before driver 380
#else
const std::vector<std::string> library_names = {"libnvidia-ml.so.1"};
const std::vector<std::filesystem::path> places = {"/usr/lib/wsl/lib"};
#endif

constexpr unsigned long long not_available = ~0ull;  // NVML_VALUE_NOT_AVAILABLE: what WDDM leaves of per-process figures

class NvmlCounter final : public MemoryCounter {
public:
    NvmlCounter(std::shared_ptr<Nvml> nvml, Nvml::Device device) : nvml_(std::move(nvml)), device_(device) {}
    std::string_view name() const noexcept override { return "NVML"; }
    Result<MemoryReading> read() override { return nvml_->memory(device_); }

private:
    std::shared_ptr<Nvml> nvml_;
    Nvml::Device device_;
};

}  // namespace

Result<std::shared_ptr<Nvml>> Nvml::load(const SearchPath& path) {
    std::shared_ptr<Nvml> nvml(new Nvml);
    HR_TRY(nvml->library_, open_first(path, library_names, places));
    Functions& call = nvml->call_;
    const DynamicLibrary& library = nvml->library_;
    call.init = library.function<decltype(call.init)>("nvmlInit_v2");
    call.shutdown = library.function<decltype(call.shutdown)>("nvmlShutdown");
    call.driver_version = library.function<decltype(call.driver_version)>("nvmlSystemGetDriverVersion");
    call.cuda_version = library.function<decltype(call.cuda_version)>("nvmlSystemGetCudaDriverVersion_v2");
    call.device_count = library.function<decltype(call.device_count)>("nvmlDeviceGetCount_v2");
    call.device_by_index = library.function<decltype(call.device_by_index)>("nvmlDeviceGetHandleByIndex_v2");
    call.device_by_bus = library.function<decltype(call.device_by_bus)>("nvmlDeviceGetHandleByPciBusId_v2");
    call.device_uuid = library.function<decltype(call.device_uuid)>("nvmlDeviceGetUUID");
    call.memory = library.function<decltype(call.memory)>("nvmlDeviceGetMemoryInfo");
    call.processes = library.function<decltype(call.processes)>("nvmlDeviceGetComputeRunningProcesses_v3");
    call.error_text = library.function<decltype(call.error_text)>("nvmlErrorString");
    if (!call.init || !call.shutdown || !call.driver_version || !call.device_count || !call.device_by_index || !call.device_by_bus ||
        !call.device_uuid || !call.memory || !call.error_text) {
        return fail(ErrorKind::unsupported, "{} is too old: please update the NVIDIA driver", library.name());
    }
    HR_CHECK(nvml->check("nvmlInit_v2", call.init()));
    nvml->started_ = true;
    return nvml;
}

Nvml::~Nvml() {
    if (started_) call_.shutdown();
}

Result<> Nvml::check(const char* function, int code) const {
    if (code == 0) return {};
    const char* text = call_.error_text(code);
    return fail(ErrorKind::device, "{} failed: {} ({})", function, text ? text : "error", code);
}

std::string Nvml::driver_version() const {
    std::array<char, 96> text{};
    return call_.driver_version(text.data(), text.size() - 1) == 0 ? text.data() : "";
}

int Nvml::cuda_version() const {
    int version = 0;
    return call_.cuda_version && call_.cuda_version(&version) == 0 ? version : 0;
}

Result<std::vector<std::string>> Nvml::device_uuids() const {
    unsigned count = 0;
    HR_CHECK(check("nvmlDeviceGetCount_v2", call_.device_count(&count)));
    std::vector<std::string> uuids;
    for (unsigned i = 0; i < count; ++i) {
        Device device = nullptr;
        HR_CHECK(check("nvmlDeviceGetHandleByIndex_v2", call_.device_by_index(i, &device)));
        std::array<char, 96> text{};
        HR_CHECK(check("nvmlDeviceGetUUID", call_.device_uuid(device, text.data(), text.size() - 1)));
        uuids.emplace_back(text.data());
    }
    return uuids;
}

Result<Nvml::Device> Nvml::device_by_bus(const std::string& bus) const {
    Device device = nullptr;
    HR_CHECK(check("nvmlDeviceGetHandleByPciBusId_v2", call_.device_by_bus(bus.c_str(), &device)));
    return device;
}

Result<MemoryReading> Nvml::memory(Device device) const {
    Memory memory{};
    HR_CHECK(check("nvmlDeviceGetMemoryInfo", call_.memory(device, &memory)));
    MemoryReading reading{.total = memory.total, .used = memory.used, .free = memory.free, .own = {}, .budget = {}};
    if (call_.processes) {
        std::vector<Process> processes(64);
        auto count = static_cast<unsigned>(processes.size());
        if (call_.processes(device, &count, processes.data()) == 0) {
            for (unsigned i = 0; i < count && i < processes.size(); ++i) {
                if (processes[i].pid == process_id() && processes[i].used != not_available) reading.own = processes[i].used;
            }
        }
    }
    return reading;
}

std::unique_ptr<MemoryCounter> open_nvml_counter(const DeviceInfo& device, const SearchPath& path) {
    auto nvml = Nvml::load(path);
    if (!nvml) return nullptr;
    const auto found = (*nvml)->device_by_bus(device.bus);
    if (!found) return nullptr;
    return std::make_unique<NvmlCounter>(*nvml, *found);
}

}  // namespace headroom::gpu
