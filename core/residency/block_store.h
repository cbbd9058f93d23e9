#pragma once

// Where blocks lie on a device. A block (an expert of a mixture) has a slot or none; slots of one size share a shelf: the neighbouring
// segments of an arena that come and go together. Addresses of slots never change; which block has which slot does.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/base/error.h"
#include "core/gpu/resources.h"
#include "core/vmm/arena.h"
#include "core/vmm/segment_pool.h"
#include "core/vmm/verdict.h"

namespace headroom::residency {

using Block = std::uint32_t;
using Slot = std::uint32_t;

// Keeps the books and maps shelves; copies nothing and knows nothing of who reads a block. One thread at a time, with the device current.
class BlockStore {
public:
    // block_bytes: of each block. Reserves addresses for all of them, maps nothing. Errors: those of vmm::create_arena.
    [[nodiscard]] static Result<std::unique_ptr<BlockStore>> elastic(vmm::SegmentPool& pool, const vmm::Verdict& verdict,
                                                                     std::span<const std::uint64_t> block_bytes);
    // For devices whose memory does not come and go: allocates room for these blocks the plain way, and gives each its slot.
    [[nodiscard]] static Result<std::unique_ptr<BlockStore>> plain(gpu::Driver& driver, std::span<const std::uint64_t> block_bytes,
                                                                   std::span<const Block> wanted);

    [[nodiscard]] std::size_t blocks() const noexcept { return slot_of_.size(); }
    [[nodiscard]] bool has_slot(Block block) const noexcept { return slot_of_[block] != kNowhere; }
    [[nodiscard]] gpu::DevicePointer address(Block block) const noexcept { return has_slot(block) ? slot_address(slot_of_[block]) : 0; }
    [[nodiscard]] std::uint64_t block_bytes(Block block) const noexcept { return kinds_[kind_of_[block]].block_bytes; }
    [[nodiscard]] std::uint64_t mapped_bytes() const noexcept;
    // With every shelf mapped.
    [[nodiscard]] std::uint64_t full_bytes() const noexcept;

    // What has to happen so that shelves of at least `bytes` can go (or all of them): blocks lose their slots, and hot ones among them
    // take the slots of colder ones, which lose theirs.
    struct Leaving {
        std::vector<std::size_t> shelves;
        struct Move {
            Block block;
            Slot to;
            Block instead;  // the block that has that slot until then, or none: kNowhere
        };
        std::vector<Move> moves;
        std::vector<Block> out;       // without those that move, but with those whose slots are taken
        std::uint64_t bytes = 0;      // of the shelves
    };
    // heat: of each block, larger is hotter. At most `most_moved` bytes are moved.
    [[nodiscard]] Leaving plan_leaving(std::uint64_t bytes, std::span<const float> heat, std::uint64_t most_moved) const;

    // Slots for blocks that have none: `wanted` in this order, until `most_copied` bytes of blocks have one, or shelves of `room` bytes
    // would be mapped.
    struct Coming {
        std::vector<std::size_t> shelves;  // to be mapped first
        std::vector<std::pair<Block, Slot>> blocks;
        std::uint64_t mapping = 0;         // bytes of the shelves
        std::uint64_t copying = 0;         // bytes of the blocks
        std::size_t looked_at = 0;         // how many of `wanted`
    };
    [[nodiscard]] Coming plan_coming(std::span<const Block> wanted, std::uint64_t most_copied, std::uint64_t room) const;

    void place(Block block, Slot slot) noexcept;  // a free one
    void remove(Block block) noexcept;            // its slot is free then
    [[nodiscard]] gpu::DevicePointer slot_address(Slot slot) const noexcept;
    [[nodiscard]] Slot slot_of(Block block) const noexcept { return slot_of_[block]; }
    [[nodiscard]] bool usable(Slot slot) const noexcept { return mapped(shelf_of(slot)); }

    // Maps shelves one after the other; stops at the first that cannot be. Returns how many were; `error` says why not all.
    [[nodiscard]] std::size_t map(std::span<const std::size_t> shelves, std::optional<Error>& error);
    // Unmaps empty shelves: their segments are the pool's then. All are tried; `error` is that of the first that could not be.
    void unmap(std::span<const std::size_t> shelves, std::optional<Error>& error);
    // Shelves without a block, of which something is mapped.
    [[nodiscard]] std::vector<std::size_t> empty_shelves() const;

    static constexpr std::uint32_t kNowhere = 0xffffffffU;

private:
    struct Kind {
        std::uint64_t block_bytes = 0;
        std::uint64_t slot_bytes = 0;
        std::size_t first_shelf = 0;
        std::size_t shelves = 0;
        std::uint32_t per_shelf = 0;   // slots
    };
    struct Shelf {
        std::size_t kind = 0;
        Slot first_slot = 0;
        std::size_t first_segment = 0;  // elastic
        std::size_t segments = 0;
        std::uint64_t bytes = 0;
        gpu::DevicePointer address = 0;
        gpu::Buffer memory;             // plain
        std::uint32_t used = 0;         // slots
        bool unusable = false;          // some of its segments could not be mapped, or not be unmapped
    };
    void find_kinds(std::span<const std::uint64_t> block_bytes);
    [[nodiscard]] bool mapped(const Shelf& shelf) const noexcept;   // whole, and its slots can be used
    [[nodiscard]] bool touched(const Shelf& shelf) const noexcept;  // some of its segments are there
    [[nodiscard]] const Shelf& shelf_of(Slot slot) const noexcept { return shelves_[shelf_of_slot_[slot]]; }

    std::vector<Kind> kinds_;
    std::vector<std::uint32_t> kind_of_;   // [blocks]
    std::vector<Shelf> shelves_;
    std::vector<std::uint32_t> shelf_of_slot_;
    std::vector<Slot> slot_of_;            // [blocks]
    std::vector<Block> block_in_;          // [slots]
    std::unique_ptr<vmm::Arena> arena_;    // null: plain
};

}  // namespace headroom::residency
