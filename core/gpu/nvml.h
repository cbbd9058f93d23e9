#pragma once

// NVML: what NVIDIA's kernel driver says about its cards without a CUDA context. libnvidia-ml.so.1, nvml.dll.

#include <memory>
#include <string>
#include <vector>

#include "core/base/dynamic_library.h"
#include "core/base/error.h"
#include "core/gpu/memory_counter.h"
#include "core/gpu/search_path.h"

namespace headroom::gpu {

class Nvml {
public:
    using Device = struct NvmlDeviceObject*;

    // Loads and starts the library. Errors: not_found, device, unsupported.
    [[nodiscard]] static Result<std::shared_ptr<Nvml>> load(const SearchPath& path);
    ~Nvml();
    Nvml(const Nvml&) = delete;
    Nvml& operator=(const Nvml&) = delete;

    [[nodiscard]] std::string driver_version() const;                         // "580.159.04"; empty where it does not tell
    [[nodiscard]] int cuda_version() const;                                    // of the CUDA driver: 13000; 0 where it does not tell
    [[nodiscard]] Result<std::vector<std::string>> device_uuids() const;       // of every card in the machine, in NVML's order
    [[nodiscard]] Result<Device> device_by_bus(const std::string& bus) const;  // "0000:01:00.0"
    [[nodiscard]] Result<MemoryReading> memory(Device device) const;

private:
    struct Memory {
        unsigned long long total, free, used;
    };
    struct Process {  // nvmlProcessInfo_t as version 3 of the call has it
        unsigned pid;
        unsigned long long used;
        unsigned gpu_instance, compute_instance;
    };
    struct Functions {
        int (*init)() = nullptr;
        int (*shutdown)() = nullptr;
        int (*driver_version)(char* text, unsigned size) = nullptr;
        int (*cuda_version)(int* version) = nullptr;  // may be missing
        int (*device_count)(unsigned* count) = nullptr;
        int (*device_by_index)(unsigned index, Device* device) = nullptr;
        int (*device_by_bus)(const char* bus, Device* device) = nullptr;
        int (*device_uuid)(Device device, char* text, unsigned size) = nullptr;
        int (*memory)(Device device, Memory* memory) = nullptr;
        int (*processes)(Device device, unsigned* count, Process* processes) = nullptr;  // may be missing
        const char* (*error_text)(int code) = nullptr;
    };

    Nvml() = default;
    [[nodiscard]] Result<> check(const char* function, int code) const;

    DynamicLibrary library_;
    Functions call_;
    bool started_ = false;
};

// Null where NVML is absent or does not know the card.
[[nodiscard]] std::unique_ptr<MemoryCounter> open_nvml_counter(const DeviceInfo& device, const SearchPath& path);

}  // namespace headroom::gpu
