#pragma once

// One interface to a GPU driver. CUDA's driver and HIP's runtime stand behind it; each is a library that is loaded at run time.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/dynamic_library.h"
#include "core/base/error.h"
#include "core/gpu/device.h"
#include "core/gpu/entry_points.h"
#include "core/gpu/search_path.h"

namespace headroom::gpu {

struct Grid {
    unsigned x = 1, y = 1, z = 1;
};

struct Granularity {
    std::uint64_t minimum = 0;
    std::uint64_t recommended = 0;
};

// A loaded driver with its devices. Errors of its functions are ErrorKind::device (out_of_memory for that code) and name the call, the
// driver's own name of the code, the code and the device: "cuMemCreate on cuda:0 (NVIDIA H200) failed: CUDA_ERROR_OUT_OF_MEMORY (2)".
//
// Threads: any thread may call; functions without a `device` argument act on the device that this thread made current. Enqueueing on
// one stream from two threads at once is up to the caller to order. Handles are the driver's; whoever made one destroys it.
class Driver {
public:
    // Loads the library of this backend, starts it and lists its devices; no context is made yet (that costs time and VRAM).
    // Errors: not_found (no library, or a library without a device), device (the driver refuses to start), unsupported (a library that
    // lacks basic functions). The message is a sentence that fits behind "CUDA: " or "HIP: ".
    [[nodiscard]] static Result<std::unique_ptr<Driver>> load(Backend backend, const SearchPath& path);
    virtual ~Driver() = default;
    Driver(const Driver&) = delete;
    Driver& operator=(const Driver&) = delete;

    [[nodiscard]] Backend backend() const noexcept { return backend_; }
    [[nodiscard]] const std::string& library() const noexcept { return library_.name(); }
    [[nodiscard]] std::filesystem::path library_file() const { return library_.file(); }  // empty where the system does not tell
    [[nodiscard]] std::span<const DeviceInfo> devices() const noexcept { return devices_; }

    // Makes the device current in this thread; its context is made at the first call and lives as long as the driver.
    [[nodiscard]] virtual Result<> make_current(int device) = 0;
    // Gives the device's context back with everything that is left in it: this process holds nothing on the device then. Everything that was made
    // there has to be gone, and no other thread may be at work with it; make_current makes a new one. Errors: unsupported (HIP, where the
    // runtime keeps its own), those of the driver.
    [[nodiscard]] virtual Result<> release_context(int device) = 0;
    [[nodiscard]] Result<> synchronize();                     // waits for all work of the current device
    [[nodiscard]] Result<MemoryInfo> memory_info();           // as the runtime sees it: see MemoryCounter for the driver's own figure

    // Plain memory. bytes > 0.
    [[nodiscard]] Result<DevicePointer> allocate(std::uint64_t bytes);
    [[nodiscard]] Result<> free(DevicePointer pointer);
    [[nodiscard]] Result<void*> allocate_host(std::uint64_t bytes);  // pinned, visible to every device
    [[nodiscard]] Result<> free_host(void* pointer);
    // Pins memory that is there already. read_only: for mapped files. Never register a private mapping of a file: the driver may hang.
    [[nodiscard]] Result<> register_host(const void* pointer, std::uint64_t bytes, bool read_only);
    [[nodiscard]] Result<> unregister_host(const void* pointer);
    [[nodiscard]] Result<DevicePointer> host_device_pointer(void* host);  // where kernels see pinned memory

    // Copies and fills, in stream order (null: the default stream). Copies from memory that is not pinned wait for the copy.
    [[nodiscard]] Result<> copy_to_device(DevicePointer to, const void* from, std::uint64_t bytes, StreamHandle stream = nullptr);
    // Many copies from pinned memory, in any order among themselves: in one call where the driver has it, so that small ones leave no gaps. On
    // failure some of them may have been enqueued.
    struct HostPiece {
        DevicePointer to = 0;
        const void* from = nullptr;
        std::uint64_t bytes = 0;
    };
    [[nodiscard]] virtual Result<> copy_all_to_device(std::span<const HostPiece> pieces, StreamHandle stream);
    [[nodiscard]] Result<> copy_to_host(void* to, DevicePointer from, std::uint64_t bytes, StreamHandle stream = nullptr);
    [[nodiscard]] Result<> copy_on_device(DevicePointer to, DevicePointer from, std::uint64_t bytes, StreamHandle stream = nullptr);
    [[nodiscard]] Result<> fill(DevicePointer to, std::uint8_t value, std::uint64_t bytes, StreamHandle stream = nullptr);

    // Streams do not wait for the default stream.
    [[nodiscard]] Result<StreamHandle> create_stream();
    [[nodiscard]] Result<> destroy_stream(StreamHandle stream);
    [[nodiscard]] Result<> synchronize_stream(StreamHandle stream);
    [[nodiscard]] Result<bool> stream_done(StreamHandle stream);
    [[nodiscard]] Result<> wait_event(StreamHandle stream, EventHandle event);

    [[nodiscard]] Result<EventHandle> create_event(bool timing);
    [[nodiscard]] Result<> destroy_event(EventHandle event);
    [[nodiscard]] Result<> record_event(EventHandle event, StreamHandle stream);
    [[nodiscard]] Result<> synchronize_event(EventHandle event);
    [[nodiscard]] Result<bool> event_done(EventHandle event);
    [[nodiscard]] Result<float> elapsed_ms(EventHandle from, EventHandle to);

    // image: PTX text (zero-terminated), a cubin or fatbin; for HIP a code object or a bundle of them.
    [[nodiscard]] Result<ModuleHandle> load_module(const void* image);
    [[nodiscard]] Result<> unload_module(ModuleHandle module);
    [[nodiscard]] Result<FunctionHandle> function(ModuleHandle module, const char* name);
    // parameters: one pointer per kernel parameter, as cuLaunchKernel takes them; copied before the call returns.
    [[nodiscard]] Result<> launch(FunctionHandle function, Grid grid, Grid block, unsigned shared_bytes, StreamHandle stream, void** parameters);
    // The same, but the device may start the kernel's blocks while the kernel before on the stream is still at work: the kernel itself waits
    // for that one before it touches what it wrote (CUDA's programmatic dependent launch, compute capability 9.0 and later; see
    // kernels/portable.h). For kernels that do so alone. Elsewhere it is an ordinary launch.
    [[nodiscard]] virtual Result<> launch_overlapping(FunctionHandle function, Grid grid, Grid block, unsigned shared_bytes, StreamHandle stream,
                                                      void** parameters) {
        return launch(function, grid, block, shared_bytes, stream, parameters);
    }
    // Allows a kernel more dynamic shared memory than the usual 48 KiB; does nothing where no permission is needed (HIP).
    [[nodiscard]] virtual Result<> allow_shared_memory(FunctionHandle function, unsigned bytes) = 0;

    [[nodiscard]] Result<> begin_capture(StreamHandle stream);
    [[nodiscard]] Result<GraphHandle> end_capture(StreamHandle stream);
    [[nodiscard]] Result<GraphExecHandle> instantiate_graph(GraphHandle graph);
    [[nodiscard]] Result<> launch_graph(GraphExecHandle graph, StreamHandle stream);
    // Takes what the device needs for the first launch there ahead, in stream order; where the driver has no such call the first launch does.
    [[nodiscard]] virtual Result<> prepare_graph(GraphExecHandle, StreamHandle) { return {}; }
    [[nodiscard]] Result<> destroy_graph(GraphHandle graph);
    [[nodiscard]] Result<> destroy_graph_exec(GraphExecHandle graph);

    // Virtual memory. Sizes and addresses are multiples of the granularity. docs/virtual-memory.md has the rules; core/vmm keeps them.
    [[nodiscard]] const std::vector<std::string>& missing_vmm_functions() const noexcept { return missing_vmm_; }
    [[nodiscard]] Result<Granularity> granularity(int device);
    [[nodiscard]] Result<DevicePointer> reserve(int device, std::uint64_t bytes);
    [[nodiscard]] Result<> free_addresses(int device, DevicePointer pointer, std::uint64_t bytes);
    [[nodiscard]] Result<SegmentHandle> create_segment(int device, std::uint64_t bytes);
    [[nodiscard]] Result<> release_segment(int device, SegmentHandle segment);
    [[nodiscard]] Result<> map(int device, DevicePointer pointer, std::uint64_t bytes, SegmentHandle segment);
    [[nodiscard]] Result<> unmap(int device, DevicePointer pointer, std::uint64_t bytes);
    // Whether unmap() neither waits for work of the device that does not use that memory, nor does it harm (docs/virtual-memory.md). Else it is
    // called while the device has none.
    [[nodiscard]] virtual bool unmaps_beside_work() const noexcept = 0;
    // host_too: the processor may read and write through the same addresses (needed where small copies go that way).
    [[nodiscard]] Result<> set_access(int device, DevicePointer pointer, std::uint64_t bytes, bool host_too);

protected:
    // What a loaded library gave so far.
    struct Loaded {
        DynamicLibrary library;
        EntryPoints call;
        std::vector<std::string> missing_vmm;
    };

    Driver(Backend backend, Loaded loaded);

    // Opens the library and fills the table.
    [[nodiscard]] static Result<Loaded> open(Backend backend, const SearchPath& path, const std::vector<std::string>& names,
                                             const std::vector<std::filesystem::path>& places);
    // What the runtime calls an error code ("CUDA_ERROR_INVALID_VALUE"); empty where it does not know it.
    [[nodiscard]] virtual std::string error_name(int code) const = 0;

    // Nothing, or the error of a call. device -1: the current one.
    [[nodiscard]] Result<> check(const char* function, int code, int device = -1) const;
    // The fields that both backends read in the same way. Errors: device.
    [[nodiscard]] Result<DeviceInfo> describe(int device) const;

    Backend backend_;
    DynamicLibrary library_;
    EntryPoints call_;
    std::vector<std::string> missing_vmm_;
    std::vector<DeviceInfo> devices_;
};

// A UUID's 16 bytes as the driver's tools show them: "GPU-9f9b4a3c-…" (NVIDIA); AMD's bytes are letters already: "GPU-4ff8a1b2c3d4e5f6".
[[nodiscard]] std::string format_uuid(const unsigned char (&bytes)[16]);

}  // namespace headroom::gpu
