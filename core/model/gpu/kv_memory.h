#pragma once

// The keys and values of a part's layers on its device: for each layer an array of pages, of which the first so many have memory behind
// them. Addresses are there for all pages that may come and never change.

#include <cstdint>
#include <memory>
#include <optional>

#include "core/gpu/resources.h"
#include "core/model/kv_cache.h"
#include "core/vmm/arena.h"
#include "core/vmm/segment_pool.h"
#include "core/vmm/verdict.h"

namespace headroom::model {

// One thread at a time, with the device current.
class KvMemory {
public:
    // shape: of one layer. pool null: all pages are there from the start, and stay. Else none is.
    [[nodiscard]] static Result<KvMemory> create(gpu::Driver& driver, vmm::SegmentPool* pool, const vmm::Verdict* verdict, const KvShape& shape,
                                                 std::size_t layers, std::int64_t pages, std::int64_t context_pages);
    // Bytes of a segment: a part of a session's share of a layer, so that a short conversation takes little, in few pieces.
    [[nodiscard]] static std::uint64_t segment_bytes(const KvShape& shape, std::int64_t context_pages, std::uint64_t granularity) noexcept;

    [[nodiscard]] gpu::DevicePointer address(std::size_t layer) const noexcept { return base() + layer * layer_bytes_; }
    [[nodiscard]] std::uint64_t page_bytes() const noexcept { return page_bytes_; }  // of a layer
    [[nodiscard]] std::int64_t pages() const noexcept { return pages_; }             // that may come
    // Pages behind which there is memory in every layer from `first` on.
    [[nodiscard]] std::int64_t backed(std::size_t first) const noexcept;
    [[nodiscard]] std::uint64_t held_bytes() const noexcept { return arena_ ? arena_->mapped_bytes() : plain_.bytes(); }
    // What extend() would map; the same for one layer; what a layer has.
    [[nodiscard]] std::uint64_t cost(std::size_t first, std::int64_t pages) const noexcept;
    [[nodiscard]] std::uint64_t layer_cost(std::size_t layer, std::int64_t pages) const noexcept;
    [[nodiscard]] std::uint64_t layer_held(std::size_t layer) const noexcept;

    // Puts memory behind the first `pages` pages of the layers from `first` on. On failure what could be mapped stays.
    [[nodiscard]] Result<> extend(std::size_t first, std::int64_t pages);
    [[nodiscard]] Result<> extend_layer(std::size_t layer, std::int64_t pages);
    // Takes the memory behind the first `pages` pages away where whole segments are free of them: of the layers from `first` on; and all
    // memory of the layers before. Nothing may use it. `error`: the first failure; the rest is tried nevertheless.
    void shrink(std::size_t first, std::int64_t pages, std::optional<Error>& error);

private:
    [[nodiscard]] gpu::DevicePointer base() const noexcept { return arena_ ? arena_->base() : plain_.address(); }
    [[nodiscard]] std::size_t segments_for(std::int64_t pages) const noexcept;

    std::uint64_t page_bytes_ = 0;
    std::uint64_t layer_bytes_ = 0;      // of addresses
    std::uint64_t segment_bytes_ = 0;
    std::size_t of_layer_ = 0;           // segments
    std::size_t layers_ = 0;
    std::int64_t pages_ = 0;
    gpu::Buffer plain_;
    std::unique_ptr<vmm::Arena> arena_;
};

}  // namespace headroom::model
