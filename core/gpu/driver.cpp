#include "core/gpu/driver.h"

#include <algorithm>
#include <cctype>
#include <type_traits>

#include "core/gpu/cuda/cuda_driver.h"
#include "core/gpu/hip/hip_driver.h"
#include "core/gpu/lookup.h"

namespace headroom::gpu {
namespace {

struct EntryPointNames {
#define HR_GPU_NAMES(group, member, cuda, hip, parameters) const char* member[2] = {cuda, hip};
    HR_GPU_ENTRY_POINTS(HR_GPU_NAMES)
#undef HR_GPU_NAMES
};
constexpr EntryPointNames names;

constexpr std::size_t side(Backend backend) noexcept { return backend == Backend::cuda ? 0 : 1; }

}  // namespace

// The call and, for its error, the name it has in this backend.
#define HR_GPU_CALL(member, device, ...) check(names.member[side(backend_)], call_.member(__VA_ARGS__), device)

Result<std::unique_ptr<Driver>> Driver::load(Backend backend, const SearchPath& path) {
    return backend == Backend::cuda ? CudaDriver::load(path) : HipDriver::load(path);
}

Driver::Driver(Backend backend, Loaded loaded)
    : backend_(backend), library_(std::move(loaded.library)), call_(loaded.call), missing_vmm_(std::move(loaded.missing_vmm)) {}

Result<Driver::Loaded> Driver::open(Backend backend, const SearchPath& path, const std::vector<std::string>& library_names,
                                    const std::vector<std::filesystem::path>& places) {
    Loaded loaded;
    HR_TRY(loaded.library, open_first(path, library_names, places));
    enum Group { basic, vmm };
    Lookup lookup(loaded.library);
    const auto find = [&](Group group, auto& function, const char* name) {
        if (group == basic) return lookup.need(function, name);
        function = loaded.library.function<std::remove_reference_t<decltype(function)>>(name);
        if (!function) loaded.missing_vmm.emplace_back(name);
    };
#define HR_GPU_LOAD(group, member, cuda, hip, parameters) find(group, loaded.call.member, names.member[side(backend)]);
    HR_GPU_ENTRY_POINTS(HR_GPU_LOAD)
#undef HR_GPU_LOAD
    HR_CHECK(lookup.all_found());
    return loaded;
}

Result<> Driver::check(const char* function, int code, int device) const {
    if (code == abi::success) [[likely]]
        return {};
    if (device < 0) {
        int current = -1;
        if (call_.current_device(&current) == abi::success) device = current;
    }
    std::string where = std::string(to_string(backend_));
    if (device >= 0) where += fmt::format(":{}", device);
    if (device >= 0 && device < static_cast<int>(devices_.size())) where += fmt::format(" ({})", devices_[static_cast<std::size_t>(device)].name);
    const std::string name = error_name(code);
    const ErrorKind kind = code == abi::out_of_memory ? ErrorKind::out_of_memory : ErrorKind::device;
    if (name.empty()) return fail(kind, "{} on {} failed: error {}", function, where, code);
    return fail(kind, "{} on {} failed: {} ({})", function, where, name, code);
}

Result<DeviceInfo> Driver::describe(int device) const {
    DeviceInfo info;
    info.backend = backend_;
    info.index = device;
    info.id = fmt::format("{}:{}", to_string(backend_), device);
    char text[256] = {};
    HR_CHECK(HR_GPU_CALL(device_name, device, text, static_cast<int>(sizeof text) - 1, device));
    info.name = text;
    char bus[64] = {};
    HR_CHECK(HR_GPU_CALL(device_bus, device, bus, static_cast<int>(sizeof bus) - 1, device));
    info.bus = bus;
    std::ranges::transform(info.bus, info.bus.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    std::size_t total = 0;
    HR_CHECK(HR_GPU_CALL(device_total_memory, device, &total, device));
    info.total_bytes = total;
    return info;
}

Result<> Driver::synchronize() { return HR_GPU_CALL(synchronize, -1); }

Result<MemoryInfo> Driver::memory_info() {
    std::size_t free = 0, total = 0;
    HR_CHECK(HR_GPU_CALL(memory_info, -1, &free, &total));
    return MemoryInfo{.free = free, .total = total};
}

Result<DevicePointer> Driver::allocate(std::uint64_t bytes) {
    DevicePointer pointer = 0;
    HR_CHECK(HR_GPU_CALL(allocate, -1, &pointer, bytes));
    return pointer;
}

Result<> Driver::free(DevicePointer pointer) { return HR_GPU_CALL(free, -1, pointer); }

Result<void*> Driver::allocate_host(std::uint64_t bytes) {
    void* pointer = nullptr;
    HR_CHECK(HR_GPU_CALL(allocate_host, -1, &pointer, bytes, abi::host_portable | abi::host_mapped));
    return pointer;
}

Result<> Driver::free_host(void* pointer) { return HR_GPU_CALL(free_host, -1, pointer); }

Result<> Driver::register_host(const void* pointer, std::uint64_t bytes, bool read_only) {
    unsigned flags = abi::host_portable | abi::host_mapped;
    if (read_only && backend_ == Backend::cuda) flags |= abi::host_register_read_only;
    return HR_GPU_CALL(register_host, -1, const_cast<void*>(pointer), bytes, flags);
}

Result<> Driver::unregister_host(const void* pointer) { return HR_GPU_CALL(unregister_host, -1, const_cast<void*>(pointer)); }

Result<DevicePointer> Driver::host_device_pointer(void* host) {
    DevicePointer pointer = 0;
    HR_CHECK(HR_GPU_CALL(host_device_pointer, -1, &pointer, host, 0));
    return pointer;
}

Result<> Driver::copy_to_device(DevicePointer to, const void* from, std::uint64_t bytes, StreamHandle stream) {
    return HR_GPU_CALL(copy_to_device, -1, to, from, bytes, stream);
}
Result<> Driver::copy_all_to_device(std::span<const HostPiece> pieces, StreamHandle stream) {
    for (const HostPiece& piece : pieces) HR_CHECK(copy_to_device(piece.to, piece.from, piece.bytes, stream));
    return {};
}
Result<> Driver::copy_to_host(void* to, DevicePointer from, std::uint64_t bytes, StreamHandle stream) {
    return HR_GPU_CALL(copy_to_host, -1, to, from, bytes, stream);
}
Result<> Driver::copy_on_device(DevicePointer to, DevicePointer from, std::uint64_t bytes, StreamHandle stream) {
    return HR_GPU_CALL(copy_on_device, -1, to, from, bytes, stream);
}
Result<> Driver::fill(DevicePointer to, std::uint8_t value, std::uint64_t bytes, StreamHandle stream) {
    return HR_GPU_CALL(fill, -1, to, value, bytes, stream);
}

Result<StreamHandle> Driver::create_stream() {
    StreamHandle stream = nullptr;
    HR_CHECK(HR_GPU_CALL(create_stream, -1, &stream, abi::stream_non_blocking));
    return stream;
}
Result<> Driver::destroy_stream(StreamHandle stream) { return HR_GPU_CALL(destroy_stream, -1, stream); }
Result<> Driver::synchronize_stream(StreamHandle stream) { return HR_GPU_CALL(synchronize_stream, -1, stream); }
Result<bool> Driver::stream_done(StreamHandle stream) {
    const int code = call_.query_stream(stream);
    if (code == abi::not_ready) return false;
    HR_CHECK(check(names.query_stream[side(backend_)], code));
    return true;
}
Result<> Driver::wait_event(StreamHandle stream, EventHandle event) { return HR_GPU_CALL(wait_event, -1, stream, event, 0); }

Result<EventHandle> Driver::create_event(bool timing) {
    EventHandle event = nullptr;
    HR_CHECK(HR_GPU_CALL(create_event, -1, &event, timing ? 0 : abi::event_disable_timing));
    return event;
}
Result<> Driver::destroy_event(EventHandle event) { return HR_GPU_CALL(destroy_event, -1, event); }
Result<> Driver::record_event(EventHandle event, StreamHandle stream) { return HR_GPU_CALL(record_event, -1, event, stream); }
Result<> Driver::synchronize_event(EventHandle event) { return HR_GPU_CALL(synchronize_event, -1, event); }
Result<bool> Driver::event_done(EventHandle event) {
    const int code = call_.query_event(event);
    if (code == abi::not_ready) return false;
    HR_CHECK(check(names.query_event[side(backend_)], code));
    return true;
}
Result<float> Driver::elapsed_ms(EventHandle from, EventHandle to) {
    float milliseconds = 0;
    HR_CHECK(HR_GPU_CALL(elapsed, -1, &milliseconds, from, to));
    return milliseconds;
}

Result<ModuleHandle> Driver::load_module(const void* image) {
    ModuleHandle module = nullptr;
    HR_CHECK(HR_GPU_CALL(load_module, -1, &module, image));
    return module;
}
Result<> Driver::unload_module(ModuleHandle module) { return HR_GPU_CALL(unload_module, -1, module); }
Result<FunctionHandle> Driver::function(ModuleHandle module, const char* name) {
    FunctionHandle function = nullptr;
    HR_CHECK(HR_GPU_CALL(module_function, -1, &function, module, name));
    return function;
}
Result<> Driver::launch(FunctionHandle function, Grid grid, Grid block, unsigned shared_bytes, StreamHandle stream, void** parameters) {
    return HR_GPU_CALL(launch, -1, function, grid.x, grid.y, grid.z, block.x, block.y, block.z, shared_bytes, stream, parameters, nullptr);
}

Result<> Driver::begin_capture(StreamHandle stream) { return HR_GPU_CALL(begin_capture, -1, stream, abi::capture_thread_local); }
Result<GraphHandle> Driver::end_capture(StreamHandle stream) {
    GraphHandle graph = nullptr;
    HR_CHECK(HR_GPU_CALL(end_capture, -1, stream, &graph));
    return graph;
}
Result<GraphExecHandle> Driver::instantiate_graph(GraphHandle graph) {
    GraphExecHandle exec = nullptr;
    HR_CHECK(HR_GPU_CALL(instantiate_graph, -1, &exec, graph, 0));
    return exec;
}
Result<> Driver::launch_graph(GraphExecHandle graph, StreamHandle stream) { return HR_GPU_CALL(launch_graph, -1, graph, stream); }
Result<> Driver::destroy_graph(GraphHandle graph) { return HR_GPU_CALL(destroy_graph, -1, graph); }
Result<> Driver::destroy_graph_exec(GraphExecHandle graph) { return HR_GPU_CALL(destroy_graph_exec, -1, graph); }

Result<Granularity> Driver::granularity(int device) {
    const abi::AllocationProperties properties{.location = {.id = device}};
    std::size_t minimum = 0, recommended = 0;
    HR_CHECK(HR_GPU_CALL(granularity, device, &minimum, &properties, abi::granularity_minimum));
    HR_CHECK(HR_GPU_CALL(granularity, device, &recommended, &properties, abi::granularity_recommended));
    return Granularity{.minimum = minimum, .recommended = recommended};
}
Result<DevicePointer> Driver::reserve(int device, std::uint64_t bytes) {
    DevicePointer pointer = 0;
    HR_CHECK(HR_GPU_CALL(reserve, device, &pointer, bytes, 0, 0, 0));
    return pointer;
}
Result<> Driver::free_addresses(int device, DevicePointer pointer, std::uint64_t bytes) {
    return HR_GPU_CALL(free_addresses, device, pointer, bytes);
}
Result<SegmentHandle> Driver::create_segment(int device, std::uint64_t bytes) {
    const abi::AllocationProperties properties{.location = {.id = device}};
    SegmentHandle segment = 0;
    HR_CHECK(HR_GPU_CALL(create_segment, device, &segment, bytes, &properties, 0));
    return segment;
}
Result<> Driver::release_segment(int device, SegmentHandle segment) { return HR_GPU_CALL(release_segment, device, segment); }
Result<> Driver::map(int device, DevicePointer pointer, std::uint64_t bytes, SegmentHandle segment) {
    return HR_GPU_CALL(map, device, pointer, bytes, 0, segment, 0);
}
Result<> Driver::unmap(int device, DevicePointer pointer, std::uint64_t bytes) { return HR_GPU_CALL(unmap, device, pointer, bytes); }
Result<> Driver::set_access(int device, DevicePointer pointer, std::uint64_t bytes, bool host_too) {
    const abi::AccessDescription access[2] = {{.location = {.id = device}}, {.location = {.type = abi::location_host}}};
    return HR_GPU_CALL(set_access, device, pointer, bytes, access, host_too ? 2 : 1);
}

std::string format_uuid(const unsigned char (&bytes)[16]) {
    const bool letters = std::ranges::all_of(bytes, [](unsigned char c) { return std::isxdigit(c) != 0; });
    if (letters) return "GPU-" + std::string(bytes, bytes + 16);
    std::string text = "GPU-";
    for (int i = 0; i < 16; ++i) {
        if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
        text += fmt::format("{:02x}", bytes[i]);
    }
    return text;
}

}  // namespace headroom::gpu
