#pragma once

#include <atomic>
#include <mutex>

#include "core/gpu/driver.h"

namespace headroom::gpu {

class Nvml;

// NVIDIA: libcuda.so.1, nvcuda.dll. Uses each device's primary context.
class CudaDriver final : public Driver {
public:
    [[nodiscard]] static Result<std::unique_ptr<Driver>> load(const SearchPath& path);
    ~CudaDriver() override;

    [[nodiscard]] Result<> make_current(int device) override;
    [[nodiscard]] Result<> release_context(int device) override;
    [[nodiscard]] bool unmaps_beside_work() const noexcept override { return true; }
    [[nodiscard]] Result<> prepare_graph(GraphExecHandle graph, StreamHandle stream) override;
    [[nodiscard]] Result<> copy_all_to_device(std::span<const HostPiece> pieces, StreamHandle stream) override;
    [[nodiscard]] Result<> launch_overlapping(FunctionHandle function, Grid grid, Grid block, unsigned shared_bytes, StreamHandle stream,
                                              void** parameters) override;
    [[nodiscard]] Result<> allow_shared_memory(FunctionHandle function, unsigned bytes) override;

private:
    using Context = struct ContextObject*;
    struct LaunchAttribute;
    struct LaunchConfiguration;
    struct CopyAttributes;
    struct Own {  // what HIP does not have, or has in another form
        int (*device_get)(int* device, int ordinal) = nullptr;
        int (*device_uuid)(unsigned char* bytes, int device) = nullptr;
        const char* device_uuid_name = "cuDeviceGetUuid_v2";  // older drivers have the first version alone
        int (*device_luid)(char* luid, unsigned* nodes, int device) = nullptr;
        int (*retain_context)(Context* context, int device) = nullptr;
        int (*release_context)(int device) = nullptr;
        int (*set_current)(Context context) = nullptr;
        int (*error_name)(int code, const char** name) = nullptr;
        int (*launch_with)(const LaunchConfiguration* configuration, FunctionHandle function, void** parameters, void** extra) = nullptr;
        int (*upload_graph)(GraphExecHandle graph, StreamHandle stream) = nullptr;  // optional
        int (*copy_batch)(DevicePointer* to, DevicePointer* from, std::size_t* bytes, std::size_t count, CopyAttributes* attributes,
                          std::size_t* first_of_attributes, std::size_t attribute_count, std::size_t* failed, StreamHandle stream) = nullptr;  // the same
        int (*set_function_attribute)(FunctionHandle function, int attribute, int value) = nullptr;
    };

    CudaDriver(Loaded loaded, const Own& own);
    [[nodiscard]] std::string error_name(int code) const override;
    [[nodiscard]] Result<> find_devices(const SearchPath& path);

    Own own_;
    std::shared_ptr<Nvml> nvml_;     // kept started, because starting it takes longer than all it is asked for; may be null
    std::atomic<bool> batches_{true};  // copy_batch works
    std::mutex mutex_;
    std::vector<Context> contexts_;  // by device; null until make_current; guarded by mutex_
};

}  // namespace headroom::gpu
