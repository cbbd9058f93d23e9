#pragma once

// The state behind the simulated drivers: devices, address ranges, segments, work, faults.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/gpu/entry_points.h"
#include "tests/simgpu/control.h"
#include "tests/simgpu/memory.h"

namespace sim {

using headroom::gpu::DevicePointer;
namespace abi = headroom::gpu::abi;

enum class Kind { cuda, hip };

enum Code : int {
    ok = 0,
    invalid_value = 1,
    out_of_memory = 2,
    not_initialized = 3,
    no_device = 100,
    invalid_device = 101,
    invalid_image = 200,
    invalid_context = 201,
    invalid_handle = 400,
    not_found = 500,
    not_ready = 600,
    illegal_address = 700,
    launch_failed = 719,
    not_supported = 801,
    capture_unsupported = 900,
};

// Letters and numbers as in the project's table of known faults (docs/virtual-memory.md).
struct Faults {
    bool later_segments_alias = false;       // H2: every segment but the first one mapped shows the first one's pages
    bool access_only_from_base = false;      // H3: set-access refuses a range that does not start at its reservation's base
    bool access_single_mapping = false;      // H4: set-access refuses a range of two mappings
    bool release_keeps_memory = false;       // H7: memory comes back only when the addresses are freed
    bool open_file_per_segment = false;      // H8
    bool spanning_unmap_breaks_free = false; // H9: one unmap over two mappings, or a release while mapped, breaks the address free
    bool double_map_stale = false;           // H10: the second mapping of a segment is a copy that does not follow
    bool fresh_memory_dirty = false;         // H11: new segments hold old data
    std::uint64_t zeros_after_unmaps = 0;    // H12: after so many unmaps the oldest mapped segment turns to zeros
    bool rdma_access_fails = false;          // C2: set-access refuses a range whose segments were made for GPUDirect RDMA
    std::uint64_t paged_out_mib = 0;         // C5: so much of what a program holds was moved to RAM; nothing but the counters tells
    bool small_copies_fail = false;          // H14: copies to the host of up to 1 MiB fail unless the host was granted access
    std::uint64_t reserve_limit_mib = 0;     // C1: larger reservations fail
    bool allocations_spill = false;          // C3: creating succeeds although the card is full
    std::int64_t runtime_free_extra_mib = 0; // C4: the runtime's figure for free memory is off by this
    bool middle_replacement_lost = false;    // a segment mapped where another one was keeps showing the old one
    bool unmap_wants_quiet = false;          // unmapping while the device has work fails, and so does all work behind it
};

struct Device {
    std::string name, uuid, bus, architecture;
    std::uint64_t total = 0, other = 0, own = 0, paged_out = 0;
    std::uint64_t granularity_min = 2 << 20, granularity_rec = 2 << 20;
    bool integrated = false, vmm = true;
    std::shared_ptr<std::ofstream> used_file;  // its counter in sysfs
    [[nodiscard]] std::uint64_t resident() const { return own - std::min(own, paged_out); }
    [[nodiscard]] std::uint64_t used() const { return std::min(total, other + resident()); }
};

struct Segment {
    Kind kind;
    int device;
    std::uint64_t bytes;
    Block* block;
    std::uint64_t mapped = 0;   // how many mappings
    bool released = false;
    bool rdma = false;          // made for GPUDirect RDMA
    int file = -1;              // H8
};

struct Mapping {
    std::uint64_t bytes;
    std::uint64_t segment;      // id
    Block* shown;               // the segment's block, except under faults
    bool owns_shown = false;
    bool access = false, host_access = false;
    std::uint64_t order = 0;    // of mapping
};

struct Range {
    std::uint64_t bytes;
    std::map<DevicePointer, Mapping> mappings;
    std::map<DevicePointer, Block*> seen;  // for middle_replacement_lost
    std::uint64_t withheld = 0; // H7
    Kind kind = Kind::cuda;
    int withheld_device = 0;
    bool broken = false;        // H9
    bool carved = false;        // a part of adjacent_
};

struct Allocation {
    Kind kind;
    int device;
    std::uint64_t bytes, rounded;
    Block* block;
};

struct Kernel {
    SimKernel run;
    std::vector<std::size_t> sizes;
};

struct Module {
    std::string names;          // the image's bytes
    bool all = false;           // an image that does not show its names
    std::map<std::string, std::unique_ptr<std::pair<std::string, const Kernel*>>> functions;
};

using Work = std::function<int()>;
struct Graph {
    std::shared_ptr<std::vector<Work>> work = std::make_shared<std::vector<Work>>();  // in the order of the calls; shared with those under way
};
struct Stream {
    Kind kind;
    int device;
    std::shared_ptr<Graph> capture;  // shared by the streams that take part in it
    std::deque<Work> queue;          // asynchronous mode: what is still to be done
    int at_work = 0;                 // pieces of work that are being done
};
// One recording of an event: passed once its stream has come so far.
struct Fence {
    Stream* stream;
    std::atomic<bool> passed = false;
    std::chrono::steady_clock::time_point time{};
};
struct Event {
    std::shared_ptr<Fence> fence;    // of the last recording; null: never recorded
    std::weak_ptr<Graph> capture;    // where that was while capturing
};

struct Rule {
    std::string function;
    std::uint64_t call = 0;
    std::string action;
    int code = invalid_value;
};

inline constexpr std::uint64_t adjacent_room = 1 << 30;

class Simulator {
public:
    [[nodiscard]] static Simulator& instance();

    bool reset(const char* description);  // and writes the counters of HIP devices, as the first HIP call does elsewhere
    SimCounters counters();

    // Counts the call and obeys the rules for it: nothing, or the code it has to fail with. Does not return where it has to hang.
    std::optional<int> enter(const char* function);

    // Each of the following is one driver call, for both backends.
    int init(Kind kind);
    int device_count(Kind kind, int* count);
    Device* device(Kind kind, int index);
    int memory_info(Kind kind, std::size_t* free, std::size_t* total);
    int allocate(Kind kind, DevicePointer* pointer, std::size_t bytes);
    int free(DevicePointer pointer);
    int allocate_host(void** pointer, std::size_t bytes);
    int free_host(void* pointer);
    int register_host(void* pointer, std::size_t bytes);
    int unregister_host(void* pointer);

    int granularity(Kind kind, std::size_t* bytes, const abi::AllocationProperties* properties, int option);
    int reserve(Kind kind, DevicePointer* pointer, std::size_t bytes);
    int free_range(DevicePointer pointer, std::size_t bytes);
    int create_segment(Kind kind, std::uint64_t* segment, std::size_t bytes, const abi::AllocationProperties* properties);
    int release_segment(std::uint64_t segment);
    int map(DevicePointer pointer, std::size_t bytes, std::uint64_t segment);
    int unmap(DevicePointer pointer, std::size_t bytes);
    int set_access(DevicePointer pointer, std::size_t bytes, const abi::AccessDescription* access, std::size_t count);

    int copy_to_device(DevicePointer to, const void* from, std::size_t bytes);
    int copy_to_host(void* to, DevicePointer from, std::size_t bytes);
    int copy_on_device(DevicePointer to, DevicePointer from, std::size_t bytes);
    int fill(DevicePointer to, unsigned char value, std::size_t bytes);
    // The same on a stream.
    int enqueue_copy_to_device(Stream* stream, DevicePointer to, const void* from, std::size_t bytes);
    int enqueue_copy_to_host(Stream* stream, void* to, DevicePointer from, std::size_t bytes);
    int enqueue_copy_on_device(Stream* stream, DevicePointer to, DevicePointer from, std::size_t bytes);
    int enqueue_fill(Stream* stream, DevicePointer to, unsigned char value, std::size_t bytes);

    // The stream that a call names: null is the default stream of the current device. Null where there is none such.
    Stream* stream(Kind kind, Stream* named);
    // Does the work now; or keeps it, where the stream is being captured or the simulator is asynchronous.
    int enqueue(Stream* stream, Work work);

    int create_stream(Kind kind, Stream** stream);
    int destroy_stream(Stream* stream);
    int synchronize(Kind kind);  // the current device
    int synchronize_stream(Stream* stream);
    int query_stream(Stream* stream);
    int wait_event(Stream* stream, Event* event);
    int synchronize_event(Event* event);
    int query_event(Event* event);
    int begin_capture(Stream* stream);
    int end_capture(Stream* stream, Graph** graph);
    int instantiate(Graph** exec, const Graph* graph);
    int launch_graph(const Graph* exec, Stream* stream);
    int destroy_graph(Graph* graph);
    int create_event(Event** event);
    int destroy_event(Event* event);
    int record(Event* event, Stream* stream);
    int load_module(Module** module, const void* image);
    int unload_module(Module* module);
    int module_function(const std::pair<std::string, const Kernel*>** function, Module* module, const char* name);
    int launch(const std::pair<std::string, const Kernel*>* function, const SimLaunch& launch, Stream* stream, void** parameters);

    void make_sysfs();   // the counters of HIP devices; the caller holds the mutex
    void write_sysfs();  // the counters of HIP devices; the caller holds the mutex
    void register_kernel(const char* name, SimKernel kernel, std::vector<std::size_t> sizes);

    std::mutex mutex;
    std::vector<Device> cuda, hip;
    Faults faults;
    int cuda_version = 13000, hip_version = 70100000;
    std::string driver_version = "580.10", sysfs;
    double bandwidth_gbps = 0;
    bool asynchronous = false, adjacent_ranges = false;
    std::vector<Rule> rules;
    std::vector<std::string> trace;
    std::map<std::string, std::uint64_t> calls;
    std::map<int, int> contexts;  // CUDA devices with a primary context, and how often it was retained
    static thread_local int current[2];  // by kind

private:
    Simulator();
    bool take(const char* description);
    void register_kernels();  // the simulator's own, in place of all others
    std::vector<Device>& devices(Kind kind) { return kind == Kind::cuda ? cuda : hip; }
    void charge(Kind kind, int device, std::int64_t bytes);  // takes VRAM, or gives it
    [[nodiscard]] bool readable(DevicePointer pointer, std::size_t bytes, bool to_host);
    [[nodiscard]] Range* range_of(DevicePointer pointer, DevicePointer* base = nullptr);
    void drop_segment(std::uint64_t id);
    [[nodiscard]] bool has_work(Kind kind, int device) const;  // the caller holds the mutex
    int do_work(Stream& stream, const Work& work);
    [[nodiscard]] bool deferring(const Stream* stream);                        // asynchronous, and not capturing
    [[nodiscard]] bool pinned(const void* host, std::size_t bytes);
    bool run_one(Stream& stream);                                              // false: its queue is empty
    void run_until(const Fence& fence);
    int work_result();                                                         // the error of work that failed, or ok
    void pace(std::size_t bytes) const;  // waits as long as a copy over the bus takes
    void clear();

    std::map<DevicePointer, Range> ranges_;
    std::map<std::uint64_t, Segment> segments_;
    std::map<DevicePointer, Allocation> allocations_;
    std::map<void*, std::size_t> host_allocations_, host_registrations_;
    std::map<Stream*, std::unique_ptr<Stream>> streams_;
    std::map<std::pair<Kind, int>, Stream> default_streams_;
    std::set<Event*> events_;
    std::set<Module*> modules_;
    std::set<Graph*> graphs_;
    std::map<std::string, Kernel> kernels_;
    std::uint64_t next_segment_ = 1, order_ = 0, unmaps_ = 0, double_maps_ = 0, rdma_segments_ = 0, unmaps_beside_work_ = 0;
    DevicePointer adjacent_ = 0;          // addresses that ranges are cut from, if they are to lie side by side
    std::uint64_t adjacent_used_ = 0;
    std::recursive_mutex running_;  // held while queued work runs: one piece of it at a time
    int work_error_ = ok;           // after work has failed nothing runs in the asynchronous mode and every call about work says so, as on a card
};

// The kernels of the verdict's pattern test (core/vmm), on the processor.
void register_pattern_kernels(Simulator& simulator);

}  // namespace sim
