#pragma once

#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/gpu/driver.h"

namespace headroom::vmm {

// One physical allocation on a device. It has one owner at a time (the pool, or the slot of an arena), so no segment is ever mapped
// twice. Whoever holds one gives it back to its pool: the object itself releases nothing.
class Segment {
public:
    Segment(gpu::SegmentHandle handle, std::uint64_t bytes) noexcept : handle_(handle), bytes_(bytes) {}
    Segment(Segment&& other) noexcept : handle_(other.handle_), bytes_(std::exchange(other.bytes_, 0)) {}
    Segment& operator=(Segment&& other) noexcept {
        std::swap(handle_, other.handle_);
        std::swap(bytes_, other.bytes_);
        return *this;
    }
    Segment(const Segment&) = delete;
    Segment& operator=(const Segment&) = delete;
    ~Segment() = default;

    [[nodiscard]] gpu::SegmentHandle handle() const noexcept { return handle_; }
    [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }  // of physical memory

private:
    gpu::SegmentHandle handle_;
    std::uint64_t bytes_;
};

// Makes, keeps and releases the segments of one device, for any number of arenas. Used from one thread at a time. The driver has to
// outlive it, and it has to outlive its arenas.
class SegmentPool {
public:
    // Called before memory of its arenas is unmapped: the device has no work then, and gets none while what was returned lives. For devices
    // whose driver wants that (gpu::Driver::unmaps_beside_work); empty: work goes on meanwhile.
    using Quiet = std::function<std::shared_ptr<void>()>;

    SegmentPool(gpu::Driver& driver, int device, Quiet quiet = {}) noexcept : driver_(&driver), device_(device), quiet_(std::move(quiet)) {}
    SegmentPool(const SegmentPool&) = delete;
    SegmentPool& operator=(const SegmentPool&) = delete;
    ~SegmentPool();  // releases the spare ones; a failure is tried once more and then logged

    // A spare segment of exactly this size, or a new one. bytes: a multiple of the granularity. Its contents are anything.
    [[nodiscard]] Result<Segment> take(std::uint64_t bytes);
    // Takes a segment back, unmapped, as a spare one: its memory stays with this process until trim().
    void give_back(Segment segment);
    // Releases spare segments to the driver until at most `keep` bytes of them are left. Returns the bytes released; on failure the
    // segment in question stays spare, and those before it are gone.
    [[nodiscard]] Result<std::uint64_t> trim(std::uint64_t keep = 0);

    [[nodiscard]] std::shared_ptr<void> quiet() const { return quiet_ ? quiet_() : nullptr; }
    [[nodiscard]] gpu::Driver& driver() const noexcept { return *driver_; }
    [[nodiscard]] int device() const noexcept { return device_; }
    [[nodiscard]] std::uint64_t spare_bytes() const noexcept { return spare_bytes_; }
    [[nodiscard]] std::uint64_t total_bytes() const noexcept { return total_bytes_; }  // of all its segments, mapped or spare

private:
    gpu::Driver* driver_;
    int device_;
    Quiet quiet_;
    std::map<std::uint64_t, std::vector<Segment>> spare_;  // by size
    std::uint64_t spare_bytes_ = 0, total_bytes_ = 0;
};

}  // namespace headroom::vmm
