#include "core/residency/block_store.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "core/vmm/create_arena.h"

namespace headroom::residency {
namespace {

constexpr std::uint64_t kAlignment = 256;  // of slots: what kernels may rely on

}  // namespace

void BlockStore::find_kinds(std::span<const std::uint64_t> block_bytes) {
    std::map<std::uint64_t, std::uint32_t> known;
    for (const std::uint64_t bytes : block_bytes) {
        const auto [found, fresh] = known.try_emplace(bytes, static_cast<std::uint32_t>(kinds_.size()));
        if (fresh) kinds_.push_back({.block_bytes = bytes, .slot_bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment});
        kind_of_.push_back(found->second);
    }
    slot_of_.assign(block_bytes.size(), kNowhere);
}

Result<std::unique_ptr<BlockStore>> BlockStore::elastic(vmm::SegmentPool& pool, const vmm::Verdict& verdict,
                                                        std::span<const std::uint64_t> block_bytes) {
    std::unique_ptr<BlockStore> store(new BlockStore);
    store->find_kinds(block_bytes);
    const std::uint64_t segment = verdict.segment_bytes;
    std::size_t segments = 0;
    for (std::size_t k = 0; k < store->kinds_.size(); ++k) {
        Kind& kind = store->kinds_[k];
        const auto blocks = static_cast<std::uint64_t>(std::ranges::count(store->kind_of_, static_cast<std::uint32_t>(k)));
        const std::size_t of_shelf = static_cast<std::size_t>((kind.slot_bytes + segment - 1) / segment);
        kind.per_shelf = static_cast<std::uint32_t>(of_shelf * segment / kind.slot_bytes);
        kind.shelves = static_cast<std::size_t>((blocks + kind.per_shelf - 1) / kind.per_shelf);
        kind.first_shelf = store->shelves_.size();
        for (std::size_t i = 0; i < kind.shelves; ++i, segments += of_shelf) {
            store->shelves_.push_back({.kind = k, .first_slot = static_cast<Slot>(store->block_in_.size()), .first_segment = segments,
                                       .segments = of_shelf, .bytes = of_shelf * segment, .address = 0, .memory = {}, .used = 0});
            store->block_in_.insert(store->block_in_.end(), kind.per_shelf, kNowhere);
            store->shelf_of_slot_.insert(store->shelf_of_slot_.end(), kind.per_shelf, static_cast<std::uint32_t>(store->shelves_.size() - 1));
        }
    }
    HR_TRY(store->arena_, vmm::create_arena(pool, verdict, segments * segment));
    for (Shelf& shelf : store->shelves_) shelf.address = store->arena_->address(shelf.first_segment);
    return store;
}

Result<std::unique_ptr<BlockStore>> BlockStore::plain(gpu::Driver& driver, std::span<const std::uint64_t> block_bytes,
                                                      std::span<const Block> wanted) {
    std::unique_ptr<BlockStore> store(new BlockStore);
    store->find_kinds(block_bytes);
    for (std::size_t k = 0; k < store->kinds_.size(); ++k) {
        Kind& kind = store->kinds_[k];
        kind.per_shelf = static_cast<std::uint32_t>(std::ranges::count_if(wanted, [&](Block block) { return store->kind_of_[block] == k; }));
        if (kind.per_shelf == 0) continue;
        Shelf shelf{.kind = k, .first_slot = static_cast<Slot>(store->block_in_.size()), .bytes = kind.per_shelf * kind.slot_bytes, .memory = {}};
        HR_TRY(shelf.memory, gpu::Buffer::create(driver, shelf.bytes));
        shelf.address = shelf.memory.address();
        kind.first_shelf = store->shelves_.size();
        kind.shelves = 1;
        store->block_in_.insert(store->block_in_.end(), kind.per_shelf, kNowhere);
        store->shelf_of_slot_.insert(store->shelf_of_slot_.end(), kind.per_shelf, static_cast<std::uint32_t>(store->shelves_.size()));
        store->shelves_.push_back(std::move(shelf));
    }
    for (const Block block : wanted) {
        const Shelf& shelf = store->shelves_[store->kinds_[store->kind_of_[block]].first_shelf];
        store->place(block, shelf.first_slot + shelf.used);
    }
    return store;
}

bool BlockStore::mapped(const Shelf& shelf) const noexcept {
    return !arena_ || (!shelf.unusable && arena_->mapped(shelf.first_segment));
}

bool BlockStore::touched(const Shelf& shelf) const noexcept {
    for (std::size_t i = 0; arena_ && i < shelf.segments; ++i) {
        if (arena_->mapped(shelf.first_segment + i)) return true;
    }
    return false;
}

std::uint64_t BlockStore::mapped_bytes() const noexcept { return arena_ ? arena_->mapped_bytes() : full_bytes(); }

std::uint64_t BlockStore::full_bytes() const noexcept {
    return std::accumulate(shelves_.begin(), shelves_.end(), std::uint64_t{0}, [](std::uint64_t sum, const Shelf& shelf) { return sum + shelf.bytes; });
}

gpu::DevicePointer BlockStore::slot_address(Slot slot) const noexcept {
    const Shelf& shelf = shelf_of(slot);
    return shelf.address + (slot - shelf.first_slot) * kinds_[shelf.kind].slot_bytes;
}

void BlockStore::place(Block block, Slot slot) noexcept {
    slot_of_[block] = slot;
    block_in_[slot] = block;
    ++shelves_[shelf_of_slot_[slot]].used;
}

void BlockStore::remove(Block block) noexcept {
    const Slot slot = slot_of_[block];
    if (slot == kNowhere) return;
    block_in_[slot] = kNowhere;
    slot_of_[block] = kNowhere;
    --shelves_[shelf_of_slot_[slot]].used;
}

BlockStore::Leaving BlockStore::plan_leaving(std::uint64_t bytes, std::span<const float> heat, std::uint64_t most_moved) const {
    Leaving leaving;
    // The coldest shelves; among equals the last ones.
    std::vector<std::pair<float, std::size_t>> order;
    for (std::size_t i = 0; i < shelves_.size(); ++i) {
        if (!mapped(shelves_[i])) continue;
        float sum = 0;
        for (Slot slot = shelves_[i].first_slot; slot < shelves_[i].first_slot + kinds_[shelves_[i].kind].per_shelf; ++slot) {
            if (block_in_[slot] != kNowhere) sum += heat[block_in_[slot]] + 1e-6F;
        }
        order.emplace_back(sum / static_cast<float>(shelves_[i].bytes), shelves_.size() - i);
    }
    std::ranges::sort(order);
    std::vector<bool> leaves(shelves_.size());
    for (const auto& [cold, from_end] : order) {
        if (leaving.bytes >= bytes) break;
        const std::size_t shelf = shelves_.size() - from_end;
        leaving.shelves.push_back(shelf);
        leaving.bytes += shelves_[shelf].bytes;
        leaves[shelf] = true;
    }
    // Of each kind: the hottest of those that lose their slots, against free slots and then the coldest of those that stay.
    std::uint64_t moved = 0;
    for (std::size_t k = 0; k < kinds_.size(); ++k) {
        std::vector<Block> going;
        std::vector<std::pair<Block, Slot>> places;  // kNowhere: a free slot
        for (std::size_t i = kinds_[k].first_shelf; i < kinds_[k].first_shelf + kinds_[k].shelves; ++i) {
            if (!mapped(shelves_[i])) continue;
            for (Slot slot = shelves_[i].first_slot; slot < shelves_[i].first_slot + kinds_[k].per_shelf; ++slot) {
                const Block block = block_in_[slot];
                if (!leaves[i]) places.emplace_back(block, slot);
                else if (block != kNowhere) going.push_back(block);
            }
        }
        const auto temperature = [&](Block block) { return block == kNowhere ? -1.0F : heat[block]; };
        std::ranges::stable_sort(going, [&](Block a, Block b) { return heat[a] > heat[b]; });
        std::ranges::stable_sort(places, [&](const auto& a, const auto& b) { return temperature(a.first) < temperature(b.first); });
        for (std::size_t i = 0; i < going.size(); ++i) {
            const bool worth = i < places.size() && moved + kinds_[k].block_bytes <= most_moved && heat[going[i]] > temperature(places[i].first);
            if (!worth) {
                leaving.out.insert(leaving.out.end(), going.begin() + static_cast<std::ptrdiff_t>(i), going.end());
                break;
            }
            leaving.moves.push_back({.block = going[i], .to = places[i].second, .instead = places[i].first});
            if (places[i].first != kNowhere) leaving.out.push_back(places[i].first);
            moved += kinds_[k].block_bytes;
        }
    }
    return leaving;
}

BlockStore::Coming BlockStore::plan_coming(std::span<const Block> wanted, std::uint64_t most_copied, std::uint64_t room) const {
    Coming coming;
    // The free slots of each kind: of mapped shelves, then of those that are taken on the way.
    std::vector<std::vector<Slot>> free(kinds_.size());
    std::vector<std::vector<std::size_t>> unmapped(kinds_.size());
    for (std::size_t i = shelves_.size(); i-- > 0;) {
        const Shelf& shelf = shelves_[i];
        if (shelf.unusable) continue;
        if (!mapped(shelf)) {
            unmapped[shelf.kind].push_back(i);
            continue;
        }
        for (Slot slot = shelf.first_slot + kinds_[shelf.kind].per_shelf; slot-- > shelf.first_slot;) {
            if (block_in_[slot] == kNowhere) free[shelf.kind].push_back(slot);
        }
    }
    for (const Block block : wanted) {
        if (coming.copying >= most_copied) break;
        ++coming.looked_at;
        if (has_slot(block)) continue;
        const std::uint32_t kind = kind_of_[block];
        if (free[kind].empty()) {
            if (unmapped[kind].empty()) continue;
            const std::size_t next = unmapped[kind].back();
            if (coming.mapping + shelves_[next].bytes > room) continue;
            unmapped[kind].pop_back();
            coming.shelves.push_back(next);
            coming.mapping += shelves_[next].bytes;
            for (Slot slot = shelves_[next].first_slot + kinds_[kind].per_shelf; slot-- > shelves_[next].first_slot;) free[kind].push_back(slot);
        }
        coming.blocks.emplace_back(block, free[kind].back());
        free[kind].pop_back();
        coming.copying += kinds_[kind].block_bytes;
    }
    return coming;
}

std::size_t BlockStore::map(std::span<const std::size_t> shelves, std::optional<Error>& error) {
    for (std::size_t i = 0; i < shelves.size(); ++i) {
        Shelf& shelf = shelves_[shelves[i]];
        std::vector<std::size_t> segments;
        for (std::size_t s = shelf.first_segment; s < shelf.first_segment + shelf.segments; ++s) {
            if (!arena_->mapped(s)) segments.push_back(s);
        }
        if (auto done = arena_->map(segments); !done) {
            shelf.unusable = touched(shelf);
            error = std::move(done.error());
            return i;
        }
    }
    return shelves.size();
}

void BlockStore::unmap(std::span<const std::size_t> shelves, std::optional<Error>& error) {
    for (const std::size_t shelf : shelves) {
        for (std::size_t segment = shelves_[shelf].first_segment; segment < shelves_[shelf].first_segment + shelves_[shelf].segments; ++segment) {
            if (!arena_->mapped(segment)) continue;
            if (auto done = arena_->unmap(segment); !done && !error) error = std::move(done.error());
        }
        shelves_[shelf].unusable = touched(shelves_[shelf]);
    }
}

std::vector<std::size_t> BlockStore::empty_shelves() const {
    std::vector<std::size_t> empty;
    for (std::size_t i = 0; i < shelves_.size(); ++i) {
        if (shelves_[i].used == 0 && touched(shelves_[i])) empty.push_back(i);
    }
    return empty;
}

}  // namespace headroom::residency
