#pragma once

// Parts of mapped files that are registered with a driver, so that copies from them run at the speed of the bus.

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <stop_token>
#include <vector>

#include "core/gpu/driver.h"

namespace headroom::residency {

// One device's registrations. register_all and the destructor need the device current; stretch() may be called by any thread.
class PinnedSpans {
public:
    // Where a system refuses, or the registered part would take more than this share of the RAM, copies are staged instead.
    static constexpr double kMostOfRam = 0.75;

    explicit PinnedSpans(gpu::Driver& driver) noexcept : driver_(&driver) {}
    ~PinnedSpans();
    PinnedSpans(const PinnedSpans&) = delete;
    PinnedSpans& operator=(const PinnedSpans&) = delete;

    // Registers the pages of these spans of shared, read-only file mappings, piece by piece; takes some 40 ms a GiB, and as long as the disk
    // needs where the file is not in memory. Ends at the first refusal, which is logged, or when it is told to.
    void register_all(std::span<const std::span<const std::byte>> spans, const std::stop_token& stop);
    // How many of these bytes, from the first on, are alike: in one registered piece, or in none.
    struct Stretch {
        std::uint64_t bytes = 0;
        bool registered = false;
    };
    [[nodiscard]] Stretch stretch(const void* from, std::uint64_t bytes) const;
    // Where kernels see these bytes; 0 where they do not: not all of them are registered, or not behind one another there.
    [[nodiscard]] gpu::DevicePointer on_device(const void* from, std::uint64_t bytes) const;

private:
    gpu::Driver* driver_;
    mutable std::mutex mutex_;
    struct Piece {
        std::uint64_t bytes = 0;
        gpu::DevicePointer device = 0;  // 0: kernels do not see it
    };
    std::map<std::uintptr_t, Piece> pieces_;  // by address
};

}  // namespace headroom::residency
