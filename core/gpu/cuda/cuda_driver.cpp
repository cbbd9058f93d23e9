#include "core/gpu/cuda/cuda_driver.h"

#include <cstring>

#include "core/gpu/lookup.h"
#include "core/gpu/nvml.h"

namespace headroom::gpu {
namespace {

// CUdevice_attribute
enum Attribute : int {
    lanes = 10,
    multiprocessors = 16,
    integrated = 18,
    capability_major = 75,
    capability_minor = 76,
    shared_per_block_optin = 97,
    vmm = 102
};
constexpr int max_dynamic_shared_size_bytes = 8;  // CUfunction_attribute

#ifdef _WIN32
const std::vector<std::string> library_names = {"nvcuda.dll"};
const std::vector<std::filesystem::path> places;
#else
const std::vector<std::string> library_names = {"libcuda.so.1"};
const std::vector<std::filesystem::path> places = {"/usr/lib/wsl/lib"};  // where Windows hands it to its Linux
#endif

}  // namespace

Result<std::unique_ptr<Driver>> CudaDriver::load(const SearchPath& path) {
    HR_TRY(auto loaded, open(Backend::cuda, path, library_names, places));
    Own own;
    const auto& library = loaded.library;
    Lookup lookup(library);
    lookup.need(own.device_get, "cuDeviceGet");
    own.device_uuid = library.function<decltype(own.device_uuid)>(own.device_uuid_name);
    if (!own.device_uuid) lookup.need(own.device_uuid, own.device_uuid_name = "cuDeviceGetUuid");
    own.device_luid = library.function<decltype(own.device_luid)>("cuDeviceGetLuid");
    lookup.need(own.retain_context, "cuDevicePrimaryCtxRetain");
    lookup.need(own.release_context, "cuDevicePrimaryCtxRelease_v2");
    lookup.need(own.set_current, "cuCtxSetCurrent");
    lookup.need(own.error_name, "cuGetErrorName");
    own.launch_with = library.function<decltype(own.launch_with)>("cuLaunchKernelEx");
    own.upload_graph = library.function<decltype(own.upload_graph)>("cuGraphUpload");
    own.copy_batch = library.function<decltype(own.copy_batch)>("cuMemcpyBatchAsync");  // from CUDA 12.8 on
    lookup.need(own.set_function_attribute, "cuFuncSetAttribute");
    HR_CHECK(lookup.all_found());
    std::unique_ptr<CudaDriver> driver(new CudaDriver(std::move(loaded), own));
    HR_CHECK(driver->find_devices(path));
    return driver;
}

CudaDriver::CudaDriver(Loaded loaded, const Own& own) : Driver(Backend::cuda, std::move(loaded)), own_(own) {}

CudaDriver::~CudaDriver() {
    for (std::size_t i = 0; i < contexts_.size(); ++i) {
        // A second try where the first one fails: nothing else can be done here.
        if (contexts_[i] && own_.release_context(static_cast<int>(i)) != abi::success) own_.release_context(static_cast<int>(i));
    }
}

std::string CudaDriver::error_name(int code) const {
    const char* name = nullptr;
    return own_.error_name(code, &name) == abi::success && name ? name : "";
}

Result<> CudaDriver::find_devices(const SearchPath& path) {
    const int started = call_.init(0);
    if (started == abi::no_device) return fail(ErrorKind::not_found, "{} is there, but it finds no device", library());
    HR_CHECK(check("cuInit", started));
    int version = 0, count = 0;
    HR_CHECK(check("cuDriverGetVersion", call_.driver_version(&version)));
    HR_CHECK(check("cuDeviceGetCount", call_.device_count(&count)));
    if (count == 0) return fail(ErrorKind::not_found, "{} is there, but it finds no device", library());
    if (auto nvml = Nvml::load(path)) nvml_ = std::move(*nvml);
    const auto kernel_driver = nvml_ ? nvml_->driver_version() : std::string();
    for (int ordinal = 0; ordinal < count; ++ordinal) {
        int device = 0;
        HR_CHECK(check("cuDeviceGet", own_.device_get(&device, ordinal), ordinal));
        HR_TRY(auto info, describe(device));
        unsigned char uuid[16] = {};
        HR_CHECK(check(own_.device_uuid_name, own_.device_uuid(uuid, device), device));
        info.uuid = format_uuid(uuid);
        info.driver = kernel_driver;
        info.runtime = fmt::format("CUDA {}.{}", version / 1000, version % 1000 / 10);
        const auto attribute = [&](Attribute which) {
            int value = 0;
            return call_.device_attribute(&value, which, device) == abi::success ? value : 0;
        };
        info.architecture = fmt::format("sm_{}{}", attribute(capability_major), attribute(capability_minor));
        info.multiprocessors = attribute(multiprocessors);
        info.lanes = attribute(lanes);
        info.shared_per_block = static_cast<unsigned>(attribute(shared_per_block_optin));
        info.integrated = attribute(integrated) != 0;
        info.vmm_attribute = attribute(vmm) != 0;
        char luid[8] = {};
        unsigned nodes = 0;
        if (own_.device_luid && own_.device_luid(luid, &nodes, device) == abi::success) {
            std::uint64_t value = 0;
            std::memcpy(&value, luid, sizeof value);
            info.luid = value;
        }
        devices_.push_back(std::move(info));
    }
    contexts_.resize(devices_.size());
    return {};
}

Result<> CudaDriver::make_current(int device) {
    if (device < 0 || static_cast<std::size_t>(device) >= devices_.size()) return fail(ErrorKind::not_found, "there is no device cuda:{}", device);
    Context context = nullptr;
    {
        const std::scoped_lock lock(mutex_);
        Context& kept = contexts_[static_cast<std::size_t>(device)];
        if (!kept) HR_CHECK(check("cuDevicePrimaryCtxRetain", own_.retain_context(&kept, device), device));
        context = kept;
    }
    return check("cuCtxSetCurrent", own_.set_current(context), device);
}

Result<> CudaDriver::release_context(int device) {
    const std::scoped_lock lock(mutex_);
    Context& kept = contexts_[static_cast<std::size_t>(device)];
    if (!kept) return {};
    HR_CHECK(check("cuCtxSetCurrent", own_.set_current(nullptr), device));
    HR_CHECK(check("cuDevicePrimaryCtxRelease", own_.release_context(device), device));
    kept = nullptr;
    return {};
}

Result<> CudaDriver::prepare_graph(GraphExecHandle graph, StreamHandle stream) {
    return own_.upload_graph == nullptr ? Result<>{} : check("cuGraphUpload", own_.upload_graph(graph, stream));
}

// CUmemcpyAttributes of cuda.h.
struct CudaDriver::CopyAttributes {
    int source_access_order;  // 1: as the stream's order says
    int source_location[2], target_location[2];
    unsigned flags;
};

Result<> CudaDriver::copy_all_to_device(std::span<const HostPiece> pieces, StreamHandle stream) {
    if (pieces.size() < 2 || own_.copy_batch == nullptr || !batches_.load(std::memory_order_relaxed)) return Driver::copy_all_to_device(pieces, stream);
    std::vector<DevicePointer> to, from;
    std::vector<std::size_t> bytes;
    for (const HostPiece& piece : pieces) {
        to.push_back(piece.to);
        from.push_back(reinterpret_cast<DevicePointer>(piece.from));
        bytes.push_back(piece.bytes);
    }
    CopyAttributes attributes{.source_access_order = 1, .source_location = {}, .target_location = {}, .flags = 0};
    static_assert(sizeof(CopyAttributes) == 24);
    std::size_t first = 0, failed = 0;
    if (own_.copy_batch(to.data(), from.data(), bytes.data(), pieces.size(), &attributes, &first, 1, &failed, stream) == abi::success) return {};
    batches_.store(false, std::memory_order_relaxed);  // one by one the driver says what is wrong, if anything is
    return Driver::copy_all_to_device(pieces, stream);
}

// CUlaunchAttribute and CUlaunchConfig of cuda.h.
struct CudaDriver::LaunchAttribute {
    int id = 0;
    char padding[4] = {};
    union {
        int value;
        char bytes[64];
    };
};
struct CudaDriver::LaunchConfiguration {
    unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
    StreamHandle stream;
    LaunchAttribute* attributes;
    unsigned attribute_count;
};

Result<> CudaDriver::launch_overlapping(FunctionHandle function, Grid grid, Grid block, unsigned shared_bytes, StreamHandle stream, void** parameters) {
    if (own_.launch_with == nullptr) return launch(function, grid, block, shared_bytes, stream, parameters);  // before CUDA 11.8
    constexpr int programmatic_stream_serialization = 6;
    LaunchAttribute attribute{};
    attribute.id = programmatic_stream_serialization;
    attribute.value = 1;
    static_assert(sizeof(LaunchAttribute) == 72 && sizeof(LaunchConfiguration) == 56);
    const LaunchConfiguration configuration{grid.x, grid.y, grid.z, block.x, block.y, block.z, shared_bytes, stream, &attribute, 1};
    return check("cuLaunchKernelEx", own_.launch_with(&configuration, function, parameters, nullptr));
}

Result<> CudaDriver::allow_shared_memory(FunctionHandle function, unsigned bytes) {
    return check("cuFuncSetAttribute", own_.set_function_attribute(function, max_dynamic_shared_size_bytes, static_cast<int>(bytes)));
}

}  // namespace headroom::gpu
