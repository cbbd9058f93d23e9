// Virtual memory: ranges, segments, mappings, access, and the faults known of them.

#include <algorithm>
#include <cstring>

#ifndef _WIN32
#include <fcntl.h>
#include <unistd.h>
#endif

#include "tests/simgpu/simulator.h"

namespace sim {
namespace {

constexpr std::uint64_t MiB = 1 << 20;

void* address(DevicePointer pointer) { return reinterpret_cast<void*>(pointer); }

// Writes to a block that may be mapped nowhere or without access, through addresses of its own.
void fill_block(Block* block, std::size_t bytes, int value) {
    void* at = reserve_addresses(bytes);
    if (!at) return;
    if (map_block(at, bytes, block)) {
        allow_access(at, bytes);
        std::memset(at, value, bytes);
        unmap_block(at, bytes);
    }
    free_addresses(at, bytes);
}

Block* copy_block(Block* block, std::size_t bytes) {
    Block* copy = create_block(bytes);
    void* from = reserve_addresses(bytes);
    void* to = reserve_addresses(bytes);
    if (map_block(from, bytes, block) && map_block(to, bytes, copy)) {
        allow_access(from, bytes);
        allow_access(to, bytes);
        std::memcpy(to, from, bytes);
        unmap_block(from, bytes);
        unmap_block(to, bytes);
    }
    free_addresses(from, bytes);
    free_addresses(to, bytes);
    return copy;
}

}  // namespace

int Simulator::granularity(Kind kind, std::size_t* bytes, const abi::AllocationProperties* properties, int option) {
    const Device* d = device(kind, properties->location.id);
    if (!d) return invalid_device;
    *bytes = option == abi::granularity_recommended ? d->granularity_rec : d->granularity_min;
    return ok;
}

int Simulator::reserve(Kind kind, DevicePointer* pointer, std::size_t bytes) {
    const std::scoped_lock lock(mutex);
    constexpr std::uint64_t page = 64 << 10;
    if (bytes == 0 || bytes % page != 0) return invalid_value;
    if (faults.reserve_limit_mib != 0 && bytes > faults.reserve_limit_mib * MiB) return out_of_memory;
    Range range{};
    if (adjacent_ranges) {
        if (adjacent_ == 0) adjacent_ = reinterpret_cast<DevicePointer>(reserve_addresses(adjacent_room));
        if (adjacent_ == 0 || bytes > adjacent_room - adjacent_used_) return out_of_memory;
        *pointer = adjacent_ + adjacent_used_;
        adjacent_used_ += bytes;
        range.carved = true;
    } else {
        void* at = reserve_addresses(bytes);
        if (!at) return out_of_memory;
        *pointer = reinterpret_cast<DevicePointer>(at);
    }
    range.bytes = bytes;
    range.kind = kind;
    ranges_[*pointer] = std::move(range);
    return ok;
}

int Simulator::free_range(DevicePointer pointer, std::size_t bytes) {
    const std::scoped_lock lock(mutex);
    const auto found = ranges_.find(pointer);
    // Whole, exactly as reserved, and with nothing mapped.
    if (found == ranges_.end() || found->second.bytes != bytes || !found->second.mappings.empty() || found->second.broken) return invalid_value;
    if (found->second.withheld) charge(found->second.kind, found->second.withheld_device, -static_cast<std::int64_t>(found->second.withheld));
    if (!found->second.carved) free_addresses(address(pointer), bytes);
    ranges_.erase(found);
    return ok;
}

int Simulator::create_segment(Kind kind, std::uint64_t* segment, std::size_t bytes, const abi::AllocationProperties* p) {
    const std::scoped_lock lock(mutex);
    const Device* d = device(kind, p->location.id);
    if (!d) return invalid_device;
    if (p->type != 1 || p->location.type != 1 || p->requested_handles != 0) return not_supported;
    if (bytes == 0 || bytes % d->granularity_min != 0) return invalid_value;
    if (bytes > d->total - d->used() && !faults.allocations_spill) return out_of_memory;
    Segment s{kind, p->location.id, bytes, nullptr};
#ifndef _WIN32
    if (faults.open_file_per_segment) {
        s.file = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (s.file < 0) return out_of_memory;  // what the runtime makes of "too many open files"
    }
#endif
    s.block = create_block(bytes);
    if (!s.block) return out_of_memory;
    if (faults.fresh_memory_dirty) fill_block(s.block, bytes, 0xA5);
    s.rdma = p->rdma != 0;
    rdma_segments_ += s.rdma;
    *segment = next_segment_++;
    segments_[*segment] = s;
    charge(kind, s.device, static_cast<std::int64_t>(bytes));
    return ok;
}

void Simulator::drop_segment(std::uint64_t id) {
    const Segment s = segments_[id];
    segments_.erase(id);
#ifndef _WIN32
    if (s.file >= 0) ::close(s.file);
#endif
    destroy_block(s.block);
    charge(s.kind, s.device, -static_cast<std::int64_t>(s.bytes));
}

int Simulator::release_segment(std::uint64_t id) {
    const std::scoped_lock lock(mutex);
    const auto found = segments_.find(id);
    if (found == segments_.end() || found->second.released) return invalid_value;
    if (found->second.mapped > 0) {  // the memory lives until the last mapping goes
        found->second.released = true;
        if (faults.spanning_unmap_breaks_free) {
            for (auto& [base, range] : ranges_) {
                for (auto& [at, mapping] : range.mappings) range.broken |= mapping.segment == id;
            }
        }
        return ok;
    }
    const Segment s = found->second;
    drop_segment(id);
    if (faults.release_keeps_memory && !ranges_.empty()) {
        Range& range = ranges_.begin()->second;
        range.withheld += s.bytes;
        range.withheld_device = s.device;
        charge(s.kind, s.device, static_cast<std::int64_t>(s.bytes));
    }
    return ok;
}

Range* Simulator::range_of(DevicePointer pointer, DevicePointer* base) {
    auto found = ranges_.upper_bound(pointer);
    if (found == ranges_.begin()) return nullptr;
    --found;
    if (pointer >= found->first + found->second.bytes) return nullptr;
    if (base) *base = found->first;
    return &found->second;
}

int Simulator::map(DevicePointer pointer, std::size_t bytes, std::uint64_t id) {
    const std::scoped_lock lock(mutex);
    DevicePointer base = 0;
    Range* range = range_of(pointer, &base);
    const auto found = segments_.find(id);
    if (!range || found == segments_.end() || found->second.released) return invalid_value;
    Segment& segment = found->second;
    const Device* d = device(segment.kind, segment.device);
    if (bytes != segment.bytes || (pointer - base) % d->granularity_min != 0 || pointer + bytes > base + range->bytes) return invalid_value;
    for (const auto& [at, mapping] : range->mappings) {
        if (pointer < at + mapping.bytes && at < pointer + bytes) return invalid_value;
    }
    Mapping mapping{bytes, id, segment.block};
    mapping.order = order_++;
    double_maps_ += segment.mapped > 0;
    if (segment.mapped > 0 && faults.double_map_stale) {
        mapping.shown = copy_block(segment.block, bytes);
        mapping.owns_shown = true;
    }
    if (faults.later_segments_alias) {
        const Mapping* first = nullptr;
        for (const auto& [start, other] : ranges_) {
            for (const auto& [at, m] : other.mappings) {
                if (!first || m.order < first->order) first = &m;
            }
        }
        if (first && first->bytes >= bytes) mapping.shown = first->shown;
    }
    if (faults.middle_replacement_lost) {
        const auto seen = range->seen.find(pointer);
        const auto shown = [&](const auto& s) { return s.second.block == seen->second && s.second.bytes >= bytes; };
        const bool alive = seen != range->seen.end() && std::ranges::any_of(segments_, shown);
        if (alive) mapping.shown = seen->second;
        range->seen[pointer] = mapping.shown;
    }
    if (!map_block(address(pointer), bytes, mapping.shown)) return out_of_memory;
    ++segment.mapped;
    range->mappings[pointer] = mapping;
    return ok;
}

int Simulator::unmap(DevicePointer pointer, std::size_t bytes) {
    const std::scoped_lock lock(mutex);
    Range* range = range_of(pointer);
    if (!range) return invalid_value;
    // Whole mappings only, and nothing but mappings.
    std::vector<DevicePointer> gone;
    DevicePointer at = pointer;
    while (at < pointer + bytes) {
        const auto mapping = range->mappings.find(at);
        if (mapping == range->mappings.end() || at + mapping->second.bytes > pointer + bytes) return invalid_value;
        gone.push_back(at);
        at += mapping->second.bytes;
    }
    if (!gone.empty() && has_work(range->kind, segments_[range->mappings[gone.front()].segment].device)) {
        ++unmaps_beside_work_;
        if (faults.unmap_wants_quiet) return work_error_ = launch_failed;
    }
    if (gone.size() > 1 && faults.spanning_unmap_breaks_free) range->broken = true;
    for (const auto start : gone) {
        const Mapping mapping = range->mappings[start];
        range->mappings.erase(start);
        unmap_block(address(start), mapping.bytes);
        if (mapping.owns_shown) destroy_block(mapping.shown);
        Segment& segment = segments_[mapping.segment];
        if (--segment.mapped == 0 && segment.released) drop_segment(mapping.segment);
        ++unmaps_;
    }
    if (faults.zeros_after_unmaps != 0 && unmaps_ >= faults.zeros_after_unmaps) {
        const Mapping* oldest = nullptr;
        for (const auto& [start, other] : ranges_) {
            for (const auto& [where, m] : other.mappings) {
                if (!oldest || m.order < oldest->order) oldest = &m;
            }
        }
        if (oldest) fill_block(oldest->shown, oldest->bytes, 0);
        unmaps_ = 0;
    }
    return ok;
}

int Simulator::set_access(DevicePointer pointer, std::size_t bytes, const abi::AccessDescription* access, std::size_t count) {
    const std::scoped_lock lock(mutex);
    DevicePointer base = 0;
    Range* range = range_of(pointer, &base);
    if (!range || count == 0) return invalid_value;
    if (faults.access_only_from_base && ranges_.size() >= 3 && pointer != base) return invalid_value;
    std::vector<Mapping*> mappings;
    std::vector<DevicePointer> starts;
    DevicePointer at = pointer;
    while (at < pointer + bytes) {
        const auto mapping = range->mappings.find(at);
        if (mapping == range->mappings.end() || at + mapping->second.bytes > pointer + bytes) return invalid_value;
        mappings.push_back(&mapping->second);
        starts.push_back(at);
        at += mapping->second.bytes;
    }
    if (faults.access_single_mapping && mappings.size() > 1) return invalid_value;
    const auto for_rdma = [&](const Mapping* m) { return segments_[m->segment].rdma; };
    if (faults.rdma_access_fails && std::ranges::any_of(mappings, for_rdma)) return not_supported;
    for (std::size_t i = 0; i < mappings.size(); ++i) {
        mappings[i]->access = true;
        mappings[i]->host_access = false;
        for (std::size_t k = 0; k < count; ++k) mappings[i]->host_access |= access[k].location.type == abi::location_host;
        allow_access(address(starts[i]), mappings[i]->bytes);
    }
    return ok;
}

bool Simulator::readable(DevicePointer pointer, std::size_t bytes, bool to_host) {
    const std::scoped_lock lock(mutex);
    auto plain = allocations_.upper_bound(pointer);
    if (plain != allocations_.begin()) {
        --plain;
        if (pointer + bytes <= plain->first + plain->second.bytes) return true;
    }
    Range* range = range_of(pointer);
    if (!range) return false;
    auto mapping = range->mappings.upper_bound(pointer);
    if (mapping == range->mappings.begin()) return false;
    --mapping;
    DevicePointer at = pointer;
    const DevicePointer end = pointer + bytes;
    for (; at < end && mapping != range->mappings.end(); ++mapping) {
        if (at < mapping->first || at >= mapping->first + mapping->second.bytes || !mapping->second.access) return false;
        if (to_host && faults.small_copies_fail && bytes <= MiB && !mapping->second.host_access) return false;
        at = mapping->first + mapping->second.bytes;
    }
    return at >= end;
}

}  // namespace sim
