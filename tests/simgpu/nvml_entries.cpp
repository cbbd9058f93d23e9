// The exported functions of NVML, over the same devices.

#include <cstdio>
#include <cstring>

#include "core/base/process.h"
#include "tests/simgpu/simulator.h"

using namespace sim;

namespace {

Simulator& simulator() { return Simulator::instance(); }

// "GPU-00112233-4455-…", as NVML writes the sixteen bytes.
std::string uuid_text(const std::string& digits) {
    if (digits.size() != 32) return "GPU-" + digits;
    return "GPU-" + digits.substr(0, 8) + "-" + digits.substr(8, 4) + "-" + digits.substr(12, 4) + "-" + digits.substr(16, 4) + "-" + digits.substr(20);
}

struct Memory {
    unsigned long long total, free, used;
};
struct Process {
    unsigned pid;
    unsigned long long used;
    unsigned gpu_instance, compute_instance;
};

constexpr int nvml_invalid_argument = 2, nvml_not_found = 6, nvml_insufficient_size = 7;

}  // namespace

#define SIM_NVML(name, parameters, ...)                               \
    SIM_EXPORT int name parameters {                                  \
        if (const auto code = simulator().enter(#name)) return *code; \
        __VA_ARGS__                                                   \
    }

SIM_NVML(nvmlInit_v2, (), return simulator().cuda.empty() ? 9 : 0;)  // 9: the driver is not loaded
SIM_NVML(nvmlShutdown, (), return 0;)
SIM_NVML(nvmlSystemGetDriverVersion, (char* text, unsigned size), std::snprintf(text, size, "%s", simulator().driver_version.c_str()); return 0;)
SIM_NVML(nvmlSystemGetCudaDriverVersion_v2, (int* version), *version = simulator().cuda_version; return 0;)
SIM_NVML(nvmlDeviceGetCount_v2, (unsigned* count), *count = static_cast<unsigned>(simulator().cuda.size()); return 0;)
SIM_NVML(nvmlDeviceGetHandleByIndex_v2, (unsigned index, Device** device), *device = simulator().device(Kind::cuda, static_cast<int>(index));
         return *device ? 0 : nvml_invalid_argument;)
SIM_NVML(nvmlDeviceGetHandleByPciBusId_v2, (const char* bus, Device** device), for (auto& d : simulator().cuda) {
    if (d.bus == bus) return *device = &d, 0;
} return nvml_not_found;)
SIM_NVML(nvmlDeviceGetUUID, (Device* device, char* text, unsigned size), std::snprintf(text, size, "%s", uuid_text(device->uuid).c_str()); return 0;)
SIM_NVML(nvmlDeviceGetMemoryInfo, (Device* device, Memory* memory), const std::scoped_lock lock(simulator().mutex);
         *memory = {device->total, device->total - device->used(), device->used()}; return 0;)
SIM_NVML(nvmlDeviceGetComputeRunningProcesses_v3, (Device* device, unsigned* count, Process* processes),
         const std::scoped_lock lock(simulator().mutex); if (*count < 1) return *count = 1, nvml_insufficient_size; *count = 1;
         processes[0] = {headroom::process_id(), device->resident(), 0, 0}; return 0;)
SIM_EXPORT const char* nvmlErrorString(int code) { return code == 9 ? "Driver Not Loaded" : "Unknown Error"; }
