#include "tests/simgpu/simulator.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <sstream>
#include <thread>

#include <nlohmann/json.hpp>

#include "tests/simgpu/model_kernels.h"

namespace sim {
namespace {

using nlohmann::json;
constexpr std::uint64_t MiB = 1 << 20;

Device read_device(const json& from, Kind kind, int index) {
    Device device;
    device.name = from.value("name", kind == Kind::cuda ? "Simulated CUDA card" : "Simulated HIP card");
    device.uuid = from.value("uuid", kind == Kind::cuda ? "00112233445566778899aabbccddee0" + std::to_string(index) : "51ab0c0ffee0000" + std::to_string(index));
    device.bus = from.value("bus", std::string("0000:") + (kind == Kind::cuda ? "0" : "8") + std::to_string(index + 1) + ":00.0");
    device.architecture = from.value("architecture", kind == Kind::cuda ? "8.9" : "gfx1100");
    device.total = from.value("total_mib", std::uint64_t(4096)) * MiB;
    device.other = from.value("other_mib", std::uint64_t(0)) * MiB;
    device.integrated = from.value("integrated", false);
    device.vmm = from.value("vmm", true);
    device.granularity_min = from.value("granularity_min", std::uint64_t(2 * MiB));
    device.granularity_rec = from.value("granularity_rec", std::uint64_t(2 * MiB));
    return device;
}

Faults read_faults(const json& from) {
    Faults f;
    f.later_segments_alias = from.value("later_segments_alias", false);
    f.access_only_from_base = from.value("access_only_from_base", false);
    f.access_single_mapping = from.value("access_single_mapping", false);
    f.release_keeps_memory = from.value("release_keeps_memory", false);
    f.open_file_per_segment = from.value("open_file_per_segment", false);
    f.spanning_unmap_breaks_free = from.value("spanning_unmap_breaks_free", false);
    f.double_map_stale = from.value("double_map_stale", false);
    f.fresh_memory_dirty = from.value("fresh_memory_dirty", false);
    f.zeros_after_unmaps = from.value("zeros_after_unmaps", std::uint64_t(0));
    f.rdma_access_fails = from.value("rdma_access_fails", false);
    f.paged_out_mib = from.value("paged_out_mib", std::uint64_t(0));
    f.small_copies_fail = from.value("small_copies_fail", false);
    f.reserve_limit_mib = from.value("reserve_limit_mib", std::uint64_t(0));
    f.allocations_spill = from.value("allocations_spill", false);
    f.runtime_free_extra_mib = from.value("runtime_free_extra_mib", std::int64_t(0));
    f.middle_replacement_lost = from.value("middle_replacement_lost", false);
    f.unmap_wants_quiet = from.value("unmap_wants_quiet", false);
    return f;
}

}  // namespace

thread_local int Simulator::current[2] = {-1, 0};  // HIP has a current device from the start, CUDA a context only when one was made

Simulator& Simulator::instance() {
    static Simulator simulator;
    return simulator;
}

Simulator::Simulator() {
    register_kernels();
    if (const char* path = std::getenv("SIMGPU_CONFIG"); path && *path) {
        std::ifstream in(path, std::ios::binary);
        std::stringstream text;
        text << in.rdbuf();
        take(text.str().c_str());
    }
}

void Simulator::clear() {
    for (auto& [base, range] : ranges_) {
        for (auto& [at, mapping] : range.mappings) {
            unmap_block(reinterpret_cast<void*>(at), mapping.bytes);
            if (mapping.owns_shown) destroy_block(mapping.shown);
        }
        if (!range.carved) free_addresses(reinterpret_cast<void*>(base), range.bytes);
    }
    ranges_.clear();
    if (adjacent_ != 0) free_addresses(reinterpret_cast<void*>(adjacent_), adjacent_room);
    adjacent_ = adjacent_used_ = 0;
    while (!segments_.empty()) drop_segment(segments_.begin()->first);
    while (!allocations_.empty()) free(allocations_.begin()->first);
    for (auto& [pointer, bytes] : host_allocations_) ::free(pointer);
    for (auto* event : events_) delete event;
    for (auto* module : modules_) delete module;
    for (auto* graph : graphs_) delete graph;
    host_allocations_.clear();
    host_registrations_.clear();
    streams_.clear();
    default_streams_.clear();
    work_error_ = ok;
    events_.clear();
    modules_.clear();
    graphs_.clear();
    contexts.clear();
    rules.clear();
    trace.clear();
    calls.clear();
    unmaps_ = double_maps_ = rdma_segments_ = unmaps_beside_work_ = 0;
    current[0] = -1;
    current[1] = 0;
}

bool Simulator::reset(const char* description) {
    if (!take(description)) return false;
    register_kernels();
    const std::scoped_lock lock(mutex);
    make_sysfs();
    return true;
}

void Simulator::register_kernels() {
    {
        const std::scoped_lock lock(mutex);
        kernels_.clear();
    }
    register_pattern_kernels(*this);
    register_model_kernels(*this);
}

bool Simulator::take(const char* description) {
    const json config = json::parse(description, nullptr, false);
    if (!config.is_object()) return false;
    const std::scoped_lock lock(mutex);
    clear();
    cuda.clear();
    hip.clear();
    for (const auto& device : config.value("cuda", json::array())) cuda.push_back(read_device(device, Kind::cuda, static_cast<int>(cuda.size())));
    for (const auto& device : config.value("hip", json::array())) hip.push_back(read_device(device, Kind::hip, static_cast<int>(hip.size())));
    faults = read_faults(config.value("faults", json::object()));
    cuda_version = config.value("cuda_version", 13000);
    hip_version = config.value("hip_version", 70100000);
    driver_version = config.value("driver_version", "580.10");
    sysfs = config.value("sysfs", "");
    bandwidth_gbps = config.value("bandwidth_gbps", 0.0);
    asynchronous = config.value("asynchronous", false);
    adjacent_ranges = config.value("adjacent_ranges", false);
    for (auto* list : {&cuda, &hip}) {
        for (auto& d : *list) d.paged_out = faults.paged_out_mib * MiB;
    }
    for (const auto& rule : config.value("calls", json::array())) {
        rules.push_back({rule.value("function", ""), rule.value("call", std::uint64_t(0)), rule.value("action", "fail"), rule.value("code", 1)});
    }
    return true;
}

SimCounters Simulator::counters() {
    const std::scoped_lock lock(mutex);
    SimCounters c{};
    c.ranges = ranges_.size();
    c.segments = segments_.size();
    for (const auto& [base, range] : ranges_) c.mappings += range.mappings.size();
    c.allocations = allocations_.size();
    c.host_allocations = host_allocations_.size();
    c.host_registrations = host_registrations_.size();
    c.contexts = contexts.size();
    c.streams = streams_.size();
    c.events = events_.size();
    c.modules = modules_.size();
    c.graphs = graphs_.size();
    c.double_maps = double_maps_;
    c.rdma_segments = rdma_segments_;
    c.unmaps_beside_work = unmaps_beside_work_;
    return c;
}

std::optional<int> Simulator::enter(const char* function) {
    std::string action;
    int code = ok;
    {
        const std::scoped_lock lock(mutex);
        trace.emplace_back(function);
        const std::uint64_t count = ++calls[function];
        for (const auto& rule : rules) {
            if (rule.function == function && (rule.call == 0 || rule.call == count)) {
                action = rule.action;
                code = rule.code;
            }
        }
    }
    if (action == "crash") std::abort();
    if (action == "wait") std::this_thread::sleep_for(std::chrono::milliseconds(code));
    while (action == "hang") std::this_thread::sleep_for(std::chrono::hours(1));
    return action == "fail" ? std::optional(code) : std::nullopt;
}

int Simulator::init(Kind kind) {
    const std::scoped_lock lock(mutex);
    // Not when the library is loaded: a process that uses CUDA alone must not touch the counters that another one is using.
    if (kind == Kind::hip) make_sysfs();
    return devices(kind).empty() ? no_device : ok;
}

int Simulator::device_count(Kind kind, int* count) {
    *count = static_cast<int>(devices(kind).size());
    return *count == 0 && kind == Kind::hip ? no_device : ok;
}

Device* Simulator::device(Kind kind, int index) {
    auto& list = devices(kind);
    return index >= 0 && static_cast<std::size_t>(index) < list.size() ? &list[static_cast<std::size_t>(index)] : nullptr;
}

int Simulator::memory_info(Kind kind, std::size_t* free, std::size_t* total) {
    const std::scoped_lock lock(mutex);
    const Device* d = device(kind, current[static_cast<int>(kind)]);
    if (!d) return invalid_context;
    *total = d->total;
    const std::int64_t seen = static_cast<std::int64_t>(d->total - d->used()) + faults.runtime_free_extra_mib * static_cast<std::int64_t>(MiB);
    *free = static_cast<std::size_t>(std::max<std::int64_t>(0, seen));
    return ok;
}

void Simulator::charge(Kind kind, int index, std::int64_t bytes) {
    Device* d = device(kind, index);
    if (!d) return;
    d->own = static_cast<std::uint64_t>(static_cast<std::int64_t>(d->own) + bytes);
    if (kind == Kind::hip) write_sysfs();
}

void Simulator::write_sysfs() {
    for (auto& d : hip) {
        if (!d.used_file) continue;
        d.used_file->seekp(0);
        *d.used_file << std::setw(20) << d.used() << std::endl;
    }
}

void Simulator::make_sysfs() {
    if (sysfs.empty() || hip.empty()) return;
    std::error_code code;
    const std::filesystem::path root = sysfs;
    std::filesystem::create_directories(root / "module/amdgpu", code);
    std::ofstream(root / "module/amdgpu/version") << driver_version << '\n';
    for (auto& d : hip) {
        const auto folder = root / "bus/pci/devices" / d.bus;
        std::filesystem::create_directories(folder, code);
        std::ofstream(folder / "mem_info_vram_total") << d.total << '\n';
        d.used_file = std::make_shared<std::ofstream>(folder / "mem_info_vram_used");
    }
    write_sysfs();
}

int Simulator::allocate(Kind kind, DevicePointer* pointer, std::size_t bytes) {
    constexpr std::uint64_t page = 64 << 10;
    const std::scoped_lock lock(mutex);
    const int index = current[static_cast<int>(kind)];
    const Device* d = device(kind, index);
    if (!d) return invalid_context;
    if (bytes == 0) return invalid_value;
    const std::uint64_t rounded = (bytes + page - 1) / page * page;
    if (rounded > d->total - d->used() && !faults.allocations_spill) return out_of_memory;
    Block* block = create_block(rounded);
    if (!block) return out_of_memory;
    // On Windows another thread's allocation may come to lie at the addresses before the block does.
    void* at = nullptr;
    for (int tries = 0; tries < 8; ++tries) {
        at = reserve_addresses(rounded);
        if (!at) break;
        if (map_block(at, rounded, block)) break;
        free_addresses(at, rounded);
        at = nullptr;
    }
    if (!at) {
        destroy_block(block);
        return out_of_memory;
    }
    allow_access(at, rounded);
    *pointer = reinterpret_cast<DevicePointer>(at);
    allocations_[*pointer] = {kind, index, bytes, rounded, block};
    charge(kind, index, static_cast<std::int64_t>(rounded));
    return ok;
}

int Simulator::free(DevicePointer pointer) {
    const auto found = allocations_.find(pointer);
    if (found == allocations_.end()) return pointer == 0 ? ok : invalid_value;
    const Allocation a = found->second;
    allocations_.erase(found);
    unmap_block(reinterpret_cast<void*>(pointer), a.rounded);
    free_addresses(reinterpret_cast<void*>(pointer), a.rounded);
    destroy_block(a.block);
    charge(a.kind, a.device, -static_cast<std::int64_t>(a.rounded));
    return ok;
}

int Simulator::allocate_host(void** pointer, std::size_t bytes) {
    const std::scoped_lock lock(mutex);
    *pointer = std::malloc(bytes);
    if (!*pointer) return out_of_memory;
    host_allocations_[*pointer] = bytes;
    return ok;
}

int Simulator::free_host(void* pointer) {
    const std::scoped_lock lock(mutex);
    if (host_allocations_.erase(pointer) == 0) return invalid_value;
    std::free(pointer);
    return ok;
}

int Simulator::register_host(void* pointer, std::size_t bytes) {
    const std::scoped_lock lock(mutex);
    constexpr std::uintptr_t page = 4096;
    const auto first_page = [](const void* at) { return reinterpret_cast<std::uintptr_t>(at) / page; };
    const auto last_page = [](const void* at, std::size_t size) { return (reinterpret_cast<std::uintptr_t>(at) + size - 1) / page; };
    const auto shares_pages = [&](const auto& other) {
        return first_page(pointer) <= last_page(other.first, other.second) && first_page(other.first) <= last_page(pointer, bytes);
    };
    if (std::ranges::any_of(host_registrations_, shares_pages)) return 712;  // already registered
    host_registrations_.emplace(pointer, bytes);
    return ok;
}

int Simulator::unregister_host(void* pointer) {
    const std::scoped_lock lock(mutex);
    return host_registrations_.erase(pointer) ? ok : 713;  // not registered
}

}  // namespace sim
