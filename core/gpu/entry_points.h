#pragma once

// The driver's functions, as this program declares them: no SDK is needed to build. The CUDA driver API and the HIP runtime agree on
// almost all of what is used here, down to the layout of the structures, so one table serves both; where they differ, the two drivers
// (cuda/, hip/) hold what is their own. Checked against cuda.h of CUDA 13.0, hip_runtime_api.h of HIP 5.2, 6.x and 7.x.

#include <cstddef>
#include <cstdint>

namespace headroom::gpu {

using DevicePointer = std::uint64_t;    // CUdeviceptr, hipDeviceptr_t
using SegmentHandle = std::uint64_t;    // CUmemGenericAllocationHandle; HIP's is a pointer of the same size

// Opaque objects of the driver.
using StreamHandle = struct StreamObject*;
using EventHandle = struct EventObject*;
using ModuleHandle = struct ModuleObject*;
using FunctionHandle = struct FunctionObject*;
using GraphHandle = struct GraphObject*;
using GraphExecHandle = struct GraphExecObject*;

namespace abi {

inline constexpr int success = 0;
inline constexpr int out_of_memory = 2;
inline constexpr int no_device = 100;
inline constexpr int not_ready = 600;

struct Location {  // CUmemLocation, hipMemLocation
    int type = 1;  // 1: device, 2: host
    int id = 0;
};
inline constexpr int location_host = 2;

struct AllocationProperties {  // CUmemAllocationProp, hipMemAllocationProp (which lacks the reserved bytes: padding there)
    int type = 1;              // pinned
    int requested_handles = 0;
    Location location;
    void* windows_metadata = nullptr;
    std::uint8_t compression = 0;
    std::uint8_t rdma = 0;  // stays 0: set-access refuses it under WSL2
    std::uint16_t usage = 0;
    std::uint8_t reserved[4] = {};
};
static_assert(sizeof(AllocationProperties) == 32 && offsetof(AllocationProperties, windows_metadata) == 16);

struct AccessDescription {  // CUmemAccessDesc, hipMemAccessDesc
    Location location;
    int flags = 3;  // read and write
};
static_assert(sizeof(AccessDescription) == 12);

inline constexpr unsigned stream_non_blocking = 1;
inline constexpr unsigned event_disable_timing = 2;
inline constexpr unsigned host_portable = 1;
inline constexpr unsigned host_mapped = 2;
inline constexpr unsigned host_register_read_only = 8;  // CUDA only
inline constexpr int capture_thread_local = 1;
inline constexpr int granularity_minimum = 0;
inline constexpr int granularity_recommended = 1;

}  // namespace abi

// X(group, member, name in CUDA, name in HIP, parameters). Each returns an error code (CUresult, hipError_t). Groups: basic has to be
// there, vmm may be missing (the verdict then says which function).
// clang-format off
#define HR_GPU_ENTRY_POINTS(X)                                                                                                          \
    X(basic, init, "cuInit", "hipInit", (unsigned flags))                                                                               \
    X(basic, driver_version, "cuDriverGetVersion", "hipDriverGetVersion", (int* version))                                               \
    X(basic, device_count, "cuDeviceGetCount", "hipGetDeviceCount", (int* count))                                                       \
    X(basic, device_name, "cuDeviceGetName", "hipDeviceGetName", (char* name, int size, int device))                                    \
    X(basic, device_bus, "cuDeviceGetPCIBusId", "hipDeviceGetPCIBusId", (char* bus, int size, int device))                              \
    X(basic, device_total_memory, "cuDeviceTotalMem_v2", "hipDeviceTotalMem", (std::size_t* bytes, int device))                         \
    X(basic, device_attribute, "cuDeviceGetAttribute", "hipDeviceGetAttribute", (int* value, int attribute, int device))                \
    X(basic, current_device, "cuCtxGetDevice", "hipGetDevice", (int* device))                                                           \
    X(basic, synchronize, "cuCtxSynchronize", "hipDeviceSynchronize", ())                                                               \
    X(basic, memory_info, "cuMemGetInfo_v2", "hipMemGetInfo", (std::size_t* free, std::size_t* total))                                  \
    X(basic, allocate, "cuMemAlloc_v2", "hipMalloc", (DevicePointer* pointer, std::size_t bytes))                                       \
    X(basic, free, "cuMemFree_v2", "hipFree", (DevicePointer pointer))                                                                  \
    X(basic, allocate_host, "cuMemHostAlloc", "hipHostMalloc", (void** pointer, std::size_t bytes, unsigned flags))                     \
    X(basic, free_host, "cuMemFreeHost", "hipHostFree", (void* pointer))                                                                \
    X(basic, register_host, "cuMemHostRegister_v2", "hipHostRegister", (void* pointer, std::size_t bytes, unsigned flags))              \
    X(basic, unregister_host, "cuMemHostUnregister", "hipHostUnregister", (void* pointer))                                              \
    X(basic, host_device_pointer, "cuMemHostGetDevicePointer_v2", "hipHostGetDevicePointer", (DevicePointer* pointer, void* host, unsigned flags)) \
    X(basic, copy_to_device, "cuMemcpyHtoDAsync_v2", "hipMemcpyHtoDAsync", (DevicePointer to, const void* from, std::size_t bytes, StreamHandle stream)) \
    X(basic, copy_to_host, "cuMemcpyDtoHAsync_v2", "hipMemcpyDtoHAsync", (void* to, DevicePointer from, std::size_t bytes, StreamHandle stream)) \
    X(basic, copy_on_device, "cuMemcpyDtoDAsync_v2", "hipMemcpyDtoDAsync", (DevicePointer to, DevicePointer from, std::size_t bytes, StreamHandle stream)) \
    X(basic, fill, "cuMemsetD8Async", "hipMemsetD8Async", (DevicePointer to, unsigned char value, std::size_t bytes, StreamHandle stream)) \
    X(basic, create_stream, "cuStreamCreate", "hipStreamCreateWithFlags", (StreamHandle* stream, unsigned flags))                       \
    X(basic, destroy_stream, "cuStreamDestroy_v2", "hipStreamDestroy", (StreamHandle stream))                                           \
    X(basic, synchronize_stream, "cuStreamSynchronize", "hipStreamSynchronize", (StreamHandle stream))                                  \
    X(basic, query_stream, "cuStreamQuery", "hipStreamQuery", (StreamHandle stream))                                                    \
    X(basic, wait_event, "cuStreamWaitEvent", "hipStreamWaitEvent", (StreamHandle stream, EventHandle event, unsigned flags))           \
    X(basic, create_event, "cuEventCreate", "hipEventCreateWithFlags", (EventHandle* event, unsigned flags))                            \
    X(basic, destroy_event, "cuEventDestroy_v2", "hipEventDestroy", (EventHandle event))                                                \
    X(basic, record_event, "cuEventRecord", "hipEventRecord", (EventHandle event, StreamHandle stream))                                 \
    X(basic, synchronize_event, "cuEventSynchronize", "hipEventSynchronize", (EventHandle event))                                       \
    X(basic, query_event, "cuEventQuery", "hipEventQuery", (EventHandle event))                                                         \
    X(basic, elapsed, "cuEventElapsedTime", "hipEventElapsedTime", (float* milliseconds, EventHandle from, EventHandle to))             \
    X(basic, load_module, "cuModuleLoadData", "hipModuleLoadData", (ModuleHandle* module, const void* image))                           \
    X(basic, unload_module, "cuModuleUnload", "hipModuleUnload", (ModuleHandle module))                                                 \
    X(basic, module_function, "cuModuleGetFunction", "hipModuleGetFunction", (FunctionHandle* function, ModuleHandle module, const char* name)) \
    X(basic, launch, "cuLaunchKernel", "hipModuleLaunchKernel", (FunctionHandle function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes, StreamHandle stream, void** parameters, void** extra)) \
    X(basic, begin_capture, "cuStreamBeginCapture_v2", "hipStreamBeginCapture", (StreamHandle stream, int mode))                        \
    X(basic, end_capture, "cuStreamEndCapture", "hipStreamEndCapture", (StreamHandle stream, GraphHandle* graph))                       \
    X(basic, destroy_graph, "cuGraphDestroy", "hipGraphDestroy", (GraphHandle graph))                                                   \
    X(basic, instantiate_graph, "cuGraphInstantiateWithFlags", "hipGraphInstantiateWithFlags", (GraphExecHandle* exec, GraphHandle graph, unsigned long long flags)) \
    X(basic, launch_graph, "cuGraphLaunch", "hipGraphLaunch", (GraphExecHandle exec, StreamHandle stream))                              \
    X(basic, destroy_graph_exec, "cuGraphExecDestroy", "hipGraphExecDestroy", (GraphExecHandle exec))                                   \
    X(vmm, granularity, "cuMemGetAllocationGranularity", "hipMemGetAllocationGranularity", (std::size_t* bytes, const abi::AllocationProperties* properties, int option)) \
    X(vmm, reserve, "cuMemAddressReserve", "hipMemAddressReserve", (DevicePointer* pointer, std::size_t bytes, std::size_t alignment, DevicePointer address, unsigned long long flags)) \
    X(vmm, free_addresses, "cuMemAddressFree", "hipMemAddressFree", (DevicePointer pointer, std::size_t bytes))                         \
    X(vmm, create_segment, "cuMemCreate", "hipMemCreate", (SegmentHandle* segment, std::size_t bytes, const abi::AllocationProperties* properties, unsigned long long flags)) \
    X(vmm, release_segment, "cuMemRelease", "hipMemRelease", (SegmentHandle segment))                                                   \
    X(vmm, map, "cuMemMap", "hipMemMap", (DevicePointer pointer, std::size_t bytes, std::size_t offset, SegmentHandle segment, unsigned long long flags)) \
    X(vmm, unmap, "cuMemUnmap", "hipMemUnmap", (DevicePointer pointer, std::size_t bytes))                                              \
    X(vmm, set_access, "cuMemSetAccess", "hipMemSetAccess", (DevicePointer pointer, std::size_t bytes, const abi::AccessDescription* access, std::size_t count))
// clang-format on

struct EntryPoints {
#define HR_GPU_DECLARE(group, member, cuda, hip, parameters) int(*member) parameters = nullptr;
    HR_GPU_ENTRY_POINTS(HR_GPU_DECLARE)
#undef HR_GPU_DECLARE
};

}  // namespace headroom::gpu
