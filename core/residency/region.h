#pragma once

#include <cstdint>
#include <memory>

#include "core/base/error.h"
#include "core/gpu/resources.h"
#include "core/vmm/arena.h"
#include "core/vmm/segment_pool.h"
#include "core/vmm/verdict.h"

namespace headroom::residency {

// Addresses on a device for one thing that comes and goes whole (a layer's matrices). They never change; memory is behind them or not.
// One thread at a time, with the device current.
class Region {
public:
    Region() = default;
    // pool null: a plain allocation, always there. Else addresses alone. bytes 0: an empty region.
    [[nodiscard]] static Result<Region> create(gpu::Driver& driver, vmm::SegmentPool* pool, const vmm::Verdict* verdict, std::uint64_t bytes);

    [[nodiscard]] gpu::DevicePointer address() const noexcept { return arena_ ? arena_->base() : plain_.address(); }
    [[nodiscard]] std::uint64_t held_when_backed() const noexcept { return arena_ ? arena_->reserved_bytes() : plain_.bytes(); }
    [[nodiscard]] bool backed() const noexcept { return !arena_ || arena_->mapped(0); }
    // Contents are anything afterwards. Errors: those of the driver.
    [[nodiscard]] Result<> back() { return backed() ? Result<>{} : arena_->map(0); }
    // Its segment is the pool's then. Nothing may be at work with it.
    [[nodiscard]] Result<> drop() { return arena_ && arena_->mapped(0) ? arena_->unmap(0) : Result<>{}; }

private:
    gpu::Buffer plain_;
    std::unique_ptr<vmm::Arena> arena_;
};

}  // namespace headroom::residency
