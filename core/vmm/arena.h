#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/base/error.h"
#include "core/vmm/address_range.h"
#include "core/vmm/segment_pool.h"

namespace headroom::vmm {

// How access is granted after a mapping. Some runtimes refuse one or the other (docs/virtual-memory.md); the verdict finds out.
enum class AccessStyle : std::uint8_t {
    per_mapping,  // for each new mapping alone
    from_base,    // from the base of the reservation over everything that is mapped without a gap
};

struct ArenaOptions {
    std::uint64_t bytes = 0;          // wanted, any size: the last slot is rounded up to the granularity
    std::uint64_t segment_bytes = 0;  // of a slot; a multiple of the granularity. At least `bytes`: one slot
    std::uint64_t granularity = 0;
    AccessStyle access = AccessStyle::per_mapping;
    bool host_access = false;         // the processor is granted access too
};

// An address range divided into slots of equal size (the last one may be smaller). Each slot is empty, or a segment is mapped there.
// Addresses never move. Contents of a freshly mapped slot are anything.
// One thread at a time, with the device current in it (gpu::Driver::make_current). Callers wait for work that uses a slot before they
// unmap or move it.
class Arena {
public:
    [[nodiscard]] static Result<std::unique_ptr<Arena>> create(SegmentPool& pool, const ArenaOptions& options);
    ~Arena();  // closes; a failure is tried once more and then logged
    Arena(const Arena&) = delete;
    Arena& operator=(const Arena&) = delete;

    [[nodiscard]] std::size_t slot_count() const noexcept { return slots_.size(); }
    [[nodiscard]] std::uint64_t slot_bytes(std::size_t slot) const noexcept;
    [[nodiscard]] gpu::DevicePointer base() const noexcept { return range_.base(); }
    [[nodiscard]] gpu::DevicePointer address(std::size_t slot) const noexcept { return range_.base() + slot * options_.segment_bytes; }
    [[nodiscard]] std::uint64_t bytes() const noexcept { return options_.bytes; }           // as wanted
    [[nodiscard]] std::uint64_t reserved_bytes() const noexcept { return range_.bytes(); }  // rounded up
    [[nodiscard]] std::uint64_t mapped_bytes() const noexcept { return mapped_bytes_; }
    [[nodiscard]] bool mapped(std::size_t slot) const noexcept { return slots_[slot].has_value(); }

    // Backs these empty slots with segments of the pool and grants access: all of them, or (on failure) none. Slots that were mapped
    // before are not touched. Errors: invalid_argument (a slot that is mapped, unknown or named twice), those of the driver.
    [[nodiscard]] Result<> map(std::span<const std::size_t> which);
    [[nodiscard]] Result<> map(std::size_t slot) { return map(std::span(&slot, 1)); }
    // Takes the segments away from these mapped slots and gives them to the pool (which keeps them until it is trimmed). On failure the
    // slots before the one in question are empty, the others still mapped.
    [[nodiscard]] Result<> unmap(std::span<const std::size_t> which);
    [[nodiscard]] Result<> unmap(std::size_t slot) { return unmap(std::span(&slot, 1)); }
    // Shows the memory of one slot, with its contents, at another, empty slot of the same size. On failure it is back where it was; where
    // even that fails, its segment is with the pool and both slots are empty.
    [[nodiscard]] Result<> move(std::size_t from, std::size_t to);

    // Unmaps everything and frees the addresses. On failure what could not be undone is still there and close() may be called again.
    [[nodiscard]] Result<> close();

    [[nodiscard]] AccessStyle access_style() const noexcept { return options_.access; }
    void set_access_style(AccessStyle style) noexcept { options_.access = style; }
    // Whether the last map() or move() that failed did so because the driver refused access, rather than memory or a mapping.
    [[nodiscard]] bool access_refused() const noexcept { return access_refused_; }

private:
    Arena(SegmentPool& pool, const ArenaOptions& options, AddressRange range, std::size_t count);
    [[nodiscard]] Result<> check_slots(std::span<const std::size_t> which, bool mapped) const;
    [[nodiscard]] Result<> grant_access(std::span<const std::size_t> which);
    [[nodiscard]] Result<> put(std::size_t slot, Segment segment);  // maps; the pool has the segment again where that fails
    [[nodiscard]] Result<Segment> take(std::size_t slot);           // unmaps

    SegmentPool* pool_;
    ArenaOptions options_;
    AddressRange range_;
    std::vector<std::optional<Segment>> slots_;
    std::uint64_t mapped_bytes_ = 0;
    bool access_refused_ = false;
};

}  // namespace headroom::vmm
