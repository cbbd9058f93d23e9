// The exported functions of the CUDA driver and the HIP runtime. CMakeLists.txt reads the names of the Windows DLLs' exports from the
// lines that start with SIM_.

#include <cstdio>
#include <cstring>

#include "tests/simgpu/simulator.h"

using namespace sim;
using headroom::gpu::SegmentHandle;

namespace {

using Function = const std::pair<std::string, const Kernel*>*;

Simulator& simulator() { return Simulator::instance(); }

int copy_text(char* to, int size, const std::string& text) {
    std::snprintf(to, static_cast<std::size_t>(size), "%s", text.c_str());
    return ok;
}

const Device* device(Kind kind, int index) { return simulator().device(kind, index); }

// 32 hexadecimal digits are sixteen bytes; anything else is the bytes themselves, as AMD has them.
int copy_uuid(unsigned char* to, const std::string& text) {
    std::memset(to, 0, 16);
    if (text.size() == 32) {
        for (std::size_t i = 0; i < 16; ++i) to[i] = static_cast<unsigned char>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
    } else {
        std::memcpy(to, text.data(), std::min<std::size_t>(16, text.size()));
    }
    return ok;
}

// A structure of hipGetDeviceProperties with the architecture's name at its place and no other text.
int copy_properties(void* properties, std::size_t size, std::size_t architecture_at, int index) {
    const Device* d = device(Kind::hip, index);
    if (!d) return invalid_device;
    std::memset(properties, 0xAB, size);
    return copy_text(static_cast<char*>(properties) + architecture_at, 256, d->architecture);
}

struct Name {
    int code;
    const char* cuda;
    const char* hip;
};
constexpr Name names[] = {{ok, "CUDA_SUCCESS", "hipSuccess"},
                          {invalid_value, "CUDA_ERROR_INVALID_VALUE", "hipErrorInvalidValue"},
                          {out_of_memory, "CUDA_ERROR_OUT_OF_MEMORY", "hipErrorOutOfMemory"},
                          {not_initialized, "CUDA_ERROR_NOT_INITIALIZED", "hipErrorNotInitialized"},
                          {no_device, "CUDA_ERROR_NO_DEVICE", "hipErrorNoDevice"},
                          {invalid_device, "CUDA_ERROR_INVALID_DEVICE", "hipErrorInvalidDevice"},
                          {invalid_image, "CUDA_ERROR_INVALID_IMAGE", "hipErrorInvalidImage"},
                          {invalid_context, "CUDA_ERROR_INVALID_CONTEXT", "hipErrorInvalidContext"},
                          {invalid_handle, "CUDA_ERROR_INVALID_HANDLE", "hipErrorInvalidHandle"},
                          {not_found, "CUDA_ERROR_NOT_FOUND", "hipErrorNotFound"},
                          {not_ready, "CUDA_ERROR_NOT_READY", "hipErrorNotReady"},
                          {illegal_address, "CUDA_ERROR_ILLEGAL_ADDRESS", "hipErrorIllegalAddress"},
                          {launch_failed, "CUDA_ERROR_LAUNCH_FAILED", "hipErrorLaunchFailure"},
                          {not_supported, "CUDA_ERROR_NOT_SUPPORTED", "hipErrorNotSupported"},
                          {capture_unsupported, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "hipErrorStreamCaptureUnsupported"}};

}  // namespace

#define SIM_ONE(name, parameters, ...)                                \
    SIM_EXPORT int name parameters {                                  \
        if (const auto code = simulator().enter(#name)) return *code; \
        __VA_ARGS__                                                   \
    }
#define SIM_BOTH(cuda_name, hip_name, parameters, ...)                     \
    SIM_EXPORT int cuda_name parameters {                                  \
        [[maybe_unused]] constexpr Kind kind = Kind::cuda;                 \
        if (const auto code = simulator().enter(#cuda_name)) return *code; \
        __VA_ARGS__                                                        \
    }                                                                      \
    SIM_EXPORT int hip_name parameters {                                   \
        [[maybe_unused]] constexpr Kind kind = Kind::hip;                  \
        if (const auto code = simulator().enter(#hip_name)) return *code;  \
        __VA_ARGS__                                                        \
    }

// Devices and contexts.
SIM_BOTH(cuInit, hipInit, (unsigned), return simulator().init(kind);)
SIM_BOTH(cuDriverGetVersion, hipDriverGetVersion, (int* version),
         *version = kind == Kind::cuda ? simulator().cuda_version : simulator().hip_version; return ok;)
SIM_ONE(hipRuntimeGetVersion, (int* version), *version = simulator().hip_version; return ok;)
SIM_BOTH(cuDeviceGetCount, hipGetDeviceCount, (int* count), return simulator().device_count(kind, count);)
SIM_ONE(cuDeviceGet, (int* device_out, int ordinal), *device_out = ordinal; return device(Kind::cuda, ordinal) ? ok : invalid_device;)
SIM_BOTH(cuDeviceGetName, hipDeviceGetName, (char* name, int size, int index), const Device* d = device(kind, index);
         return d ? copy_text(name, size, d->name) : invalid_device;)
SIM_BOTH(cuDeviceGetPCIBusId, hipDeviceGetPCIBusId, (char* bus, int size, int index), const Device* d = device(kind, index);
         return d ? copy_text(bus, size, d->bus) : invalid_device;)
SIM_BOTH(cuDeviceTotalMem_v2, hipDeviceTotalMem, (std::size_t* bytes, int index), const Device* d = device(kind, index);
         if (!d) return invalid_device; *bytes = d->total; return ok;)
SIM_BOTH(cuDeviceGetUuid_v2, hipDeviceGetUuid, (unsigned char* bytes, int index), const Device* d = device(kind, index);
         return d ? copy_uuid(bytes, d->uuid) : invalid_device;)
SIM_ONE(cuDeviceGetAttribute, (int* value, int attribute, int index), const Device* d = device(Kind::cuda, index);
        if (!d) return invalid_device; *value = 0; int major = 0; int minor = 0; std::sscanf(d->architecture.c_str(), "%d.%d", &major, &minor);
        switch (attribute) {
            case 10: *value = 32; break;
            case 16: *value = 46; break;
            case 18: *value = d->integrated; break;
            case 75: *value = major; break;
            case 76: *value = minor; break;
            case 97: *value = 227 << 10; break;
            case 102: *value = d->vmm; break;
            default: break;
        } return ok;)
SIM_ONE(hipDeviceGetAttribute, (int* value, int attribute, int index), const Device* d = device(Kind::hip, index);
        if (!d) return invalid_device; *value = 0;
        switch (attribute) {
            case 16: *value = d->integrated; break;
            case 63: *value = 48; break;
            case 74: *value = 64 << 10; break;
            case 87: *value = 32; break;
            case 89: *value = d->vmm; break;
            default: break;
        } return ok;)
// The structure of HIP 6 and 7, and that of HIP 5, which later libraries still fill under its old name: their size, and what is read of them.
SIM_ONE(hipGetDevicePropertiesR0600, (void* properties, int index), return copy_properties(properties, 1472, 1160, index);)
SIM_ONE(hipGetDeviceProperties, (void* properties, int index), return copy_properties(properties, 792, 396, index);)
SIM_ONE(cuDevicePrimaryCtxRetain, (void** context, int index), if (!device(Kind::cuda, index)) return invalid_device;
        const std::scoped_lock lock(simulator().mutex); ++simulator().contexts[index];
        *context = reinterpret_cast<void*>(static_cast<std::size_t>(index) + 1); return ok;)
SIM_ONE(cuDevicePrimaryCtxRelease_v2, (int index), const std::scoped_lock lock(simulator().mutex);
        const auto found = simulator().contexts.find(index); if (found == simulator().contexts.end()) return invalid_context;
        if (--found->second == 0) simulator().contexts.erase(found); return ok;)
SIM_ONE(cuCtxSetCurrent, (void* context), Simulator::current[0] = static_cast<int>(reinterpret_cast<std::size_t>(context)) - 1; return ok;)
SIM_ONE(hipSetDevice, (int index), if (!device(Kind::hip, index)) return invalid_device; Simulator::current[1] = index; return ok;)
SIM_BOTH(cuCtxGetDevice, hipGetDevice, (int* index), *index = Simulator::current[static_cast<int>(kind)]; return *index < 0 ? invalid_context : ok;)
SIM_BOTH(cuCtxSynchronize, hipDeviceSynchronize, (), return simulator().synchronize(kind);)

SIM_EXPORT int cuGetErrorName(int code, const char** name) {
    for (const auto& n : names) {
        if (n.code == code) return *name = n.cuda, ok;
    }
    return *name = nullptr, invalid_value;
}
SIM_EXPORT const char* hipGetErrorName(int code) {
    for (const auto& n : names) {
        if (n.code == code) return n.hip;
    }
    return "hipErrorUnknown";
}

// Plain memory and memory of the host.
SIM_BOTH(cuMemGetInfo_v2, hipMemGetInfo, (std::size_t* free, std::size_t* total), return simulator().memory_info(kind, free, total);)
SIM_BOTH(cuMemAlloc_v2, hipMalloc, (DevicePointer* pointer, std::size_t bytes), return simulator().allocate(kind, pointer, bytes);)
SIM_BOTH(cuMemFree_v2, hipFree, (DevicePointer pointer), simulator().synchronize(kind);  // both wait for the device
         const std::scoped_lock lock(simulator().mutex); return simulator().free(pointer);)
SIM_BOTH(cuMemHostAlloc, hipHostMalloc, (void** pointer, std::size_t bytes, unsigned), return simulator().allocate_host(pointer, bytes);)
SIM_BOTH(cuMemFreeHost, hipHostFree, (void* pointer), simulator().synchronize(kind); return simulator().free_host(pointer);)
SIM_BOTH(cuMemHostRegister_v2, hipHostRegister, (void* pointer, std::size_t bytes, unsigned), return simulator().register_host(pointer, bytes);)
SIM_BOTH(cuMemHostUnregister, hipHostUnregister, (void* pointer), return simulator().unregister_host(pointer);)
SIM_BOTH(cuMemHostGetDevicePointer_v2, hipHostGetDevicePointer, (DevicePointer* pointer, void* host, unsigned),
         *pointer = reinterpret_cast<DevicePointer>(host); return ok;)

// Copies.
SIM_BOTH(cuMemcpyHtoDAsync_v2, hipMemcpyHtoDAsync, (DevicePointer to, const void* from, std::size_t bytes, Stream* stream),
         return simulator().enqueue_copy_to_device(simulator().stream(kind, stream), to, from, bytes);)
SIM_BOTH(cuMemcpyDtoHAsync_v2, hipMemcpyDtoHAsync, (void* to, DevicePointer from, std::size_t bytes, Stream* stream),
         return simulator().enqueue_copy_to_host(simulator().stream(kind, stream), to, from, bytes);)
SIM_BOTH(cuMemcpyDtoDAsync_v2, hipMemcpyDtoDAsync, (DevicePointer to, DevicePointer from, std::size_t bytes, Stream* stream),
         return simulator().enqueue_copy_on_device(simulator().stream(kind, stream), to, from, bytes);)
SIM_BOTH(cuMemsetD8Async, hipMemsetD8Async, (DevicePointer to, unsigned char value, std::size_t bytes, Stream* stream),
         return simulator().enqueue_fill(simulator().stream(kind, stream), to, value, bytes);)

// Streams, events, modules, graphs.
SIM_BOTH(cuStreamCreate, hipStreamCreateWithFlags, (Stream** stream, unsigned), return simulator().create_stream(kind, stream);)
SIM_BOTH(cuStreamDestroy_v2, hipStreamDestroy, (Stream* stream), return simulator().destroy_stream(stream);)
SIM_BOTH(cuStreamSynchronize, hipStreamSynchronize, (Stream* stream), return simulator().synchronize_stream(simulator().stream(kind, stream));)
SIM_BOTH(cuStreamQuery, hipStreamQuery, (Stream* stream), return simulator().query_stream(simulator().stream(kind, stream));)
SIM_BOTH(cuStreamWaitEvent, hipStreamWaitEvent, (Stream* stream, Event* event, unsigned),
         return simulator().wait_event(simulator().stream(kind, stream), event);)
SIM_BOTH(cuEventCreate, hipEventCreateWithFlags, (Event** event, unsigned), return simulator().create_event(event);)
SIM_BOTH(cuEventDestroy_v2, hipEventDestroy, (Event* event), return simulator().destroy_event(event);)
SIM_BOTH(cuEventRecord, hipEventRecord, (Event* event, Stream* stream), return simulator().record(event, simulator().stream(kind, stream));)
SIM_BOTH(cuEventSynchronize, hipEventSynchronize, (Event* event), return simulator().synchronize_event(event);)
SIM_BOTH(cuEventQuery, hipEventQuery, (Event* event), return simulator().query_event(event);)
SIM_BOTH(cuEventElapsedTime, hipEventElapsedTime, (float* milliseconds, Event* from, Event* to),
         if (!from->fence || !to->fence) return invalid_handle;
         if (!from->fence->passed || !to->fence->passed) return not_ready;
         *milliseconds = std::chrono::duration<float, std::milli>(to->fence->time - from->fence->time).count(); return ok;)
SIM_BOTH(cuModuleLoadData, hipModuleLoadData, (Module** module, const void* image), return simulator().load_module(module, image);)
SIM_BOTH(cuModuleUnload, hipModuleUnload, (Module* module), return simulator().unload_module(module);)
SIM_BOTH(cuModuleGetFunction, hipModuleGetFunction, (Function* function, Module* module, const char* name),
         return simulator().module_function(function, module, name);)
SIM_ONE(cuFuncSetAttribute, (Function, int, int), return ok;)
SIM_BOTH(cuLaunchKernel, hipModuleLaunchKernel,
         (Function function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, Stream* stream,
          void** parameters, void**),
         return simulator().launch(function, SimLaunch{{gx, gy, gz}, {bx, by, bz}, shared}, simulator().stream(kind, stream), parameters);)
SIM_BOTH(cuStreamBeginCapture_v2, hipStreamBeginCapture, (Stream* stream, int), return simulator().begin_capture(stream);)
SIM_BOTH(cuStreamEndCapture, hipStreamEndCapture, (Stream* stream, Graph** graph), return simulator().end_capture(stream, graph);)
SIM_BOTH(cuGraphDestroy, hipGraphDestroy, (Graph* graph), return simulator().destroy_graph(graph);)
SIM_BOTH(cuGraphInstantiateWithFlags, hipGraphInstantiateWithFlags, (Graph** exec, Graph* graph, unsigned long long),
         return simulator().instantiate(exec, graph);)
SIM_BOTH(cuGraphLaunch, hipGraphLaunch, (Graph* exec, Stream* stream), return simulator().launch_graph(exec, simulator().stream(kind, stream));)
SIM_BOTH(cuGraphExecDestroy, hipGraphExecDestroy, (Graph* exec), return simulator().destroy_graph(exec);)

// Virtual memory.
SIM_BOTH(cuMemGetAllocationGranularity, hipMemGetAllocationGranularity, (std::size_t* bytes, const abi::AllocationProperties* p, int option),
         return simulator().granularity(kind, bytes, p, option);)
SIM_BOTH(cuMemAddressReserve, hipMemAddressReserve, (DevicePointer* pointer, std::size_t bytes, std::size_t, DevicePointer, unsigned long long),
         return simulator().reserve(kind, pointer, bytes);)
SIM_BOTH(cuMemAddressFree, hipMemAddressFree, (DevicePointer pointer, std::size_t bytes), return simulator().free_range(pointer, bytes);)
SIM_BOTH(cuMemCreate, hipMemCreate, (SegmentHandle* segment, std::size_t bytes, const abi::AllocationProperties* p, unsigned long long),
         return simulator().create_segment(kind, segment, bytes, p);)
SIM_BOTH(cuMemRelease, hipMemRelease, (SegmentHandle segment), return simulator().release_segment(segment);)
SIM_BOTH(cuMemMap, hipMemMap, (DevicePointer pointer, std::size_t bytes, std::size_t offset, SegmentHandle segment, unsigned long long),
         return offset == 0 ? simulator().map(pointer, bytes, segment) : int(invalid_value);)
SIM_BOTH(cuMemUnmap, hipMemUnmap, (DevicePointer pointer, std::size_t bytes), return simulator().unmap(pointer, bytes);)
SIM_BOTH(cuMemSetAccess, hipMemSetAccess, (DevicePointer pointer, std::size_t bytes, const abi::AccessDescription* access, std::size_t count),
         return simulator().set_access(pointer, bytes, access, count);)
