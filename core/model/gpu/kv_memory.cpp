#include "core/model/gpu/kv_memory.h"

#include <algorithm>

#include "core/base/bytes.h"

namespace headroom::model {
namespace {

constexpr std::uint64_t kLargestSegment = 32 * MiB;
constexpr std::int64_t kShareOfContext = 8;

}  // namespace

std::uint64_t KvMemory::segment_bytes(const KvShape& shape, std::int64_t context_pages, std::uint64_t granularity) noexcept {
    const std::uint64_t page = shape.page_bytes();
    const std::uint64_t wanted = std::min(kLargestSegment, page * static_cast<std::uint64_t>((context_pages + kShareOfContext - 1) / kShareOfContext));
    return (std::max(wanted, page) + granularity - 1) / granularity * granularity;
}

Result<KvMemory> KvMemory::create(gpu::Driver& driver, vmm::SegmentPool* pool, const vmm::Verdict* verdict, const KvShape& shape, std::size_t layers,
                                  std::int64_t pages, std::int64_t context_pages) {
    KvMemory memory;
    memory.page_bytes_ = shape.page_bytes();
    memory.layers_ = layers;
    memory.pages_ = pages;
    if (pool == nullptr) {
        memory.layer_bytes_ = memory.page_bytes_ * static_cast<std::uint64_t>(pages);
        HR_TRY(memory.plain_, gpu::Buffer::create(driver, memory.layer_bytes_ * layers));
        return memory;
    }
    memory.segment_bytes_ = segment_bytes(shape, context_pages, verdict->granularity_recommended);
    memory.of_layer_ = memory.segments_for(pages);
    memory.layer_bytes_ = memory.of_layer_ * memory.segment_bytes_;
    HR_TRY(memory.arena_, vmm::Arena::create(*pool, {.bytes = memory.layer_bytes_ * layers, .segment_bytes = memory.segment_bytes_,
                                                     .granularity = verdict->granularity_recommended, .access = verdict->access,
                                                     .host_access = verdict->host_access}));
    return memory;
}

std::size_t KvMemory::segments_for(std::int64_t pages) const noexcept {
    return static_cast<std::size_t>((static_cast<std::uint64_t>(pages) * page_bytes_ + segment_bytes_ - 1) / segment_bytes_);
}

std::int64_t KvMemory::backed(std::size_t first) const noexcept {
    if (!arena_) return pages_;
    std::int64_t pages = pages_;
    for (std::size_t layer = first; layer < layers_; ++layer) {
        std::size_t segments = 0;
        while (segments < of_layer_ && arena_->mapped(layer * of_layer_ + segments)) ++segments;
        pages = std::min(pages, static_cast<std::int64_t>(segments * segment_bytes_ / page_bytes_));
    }
    return pages;
}

std::uint64_t KvMemory::cost(std::size_t first, std::int64_t pages) const noexcept {
    std::uint64_t bytes = 0;
    for (std::size_t layer = first; layer < layers_; ++layer) bytes += layer_cost(layer, pages);
    return bytes;
}

std::uint64_t KvMemory::layer_cost(std::size_t layer, std::int64_t pages) const noexcept {
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; arena_ && i < segments_for(pages); ++i) bytes += arena_->mapped(layer * of_layer_ + i) ? 0 : segment_bytes_;
    return bytes;
}

std::uint64_t KvMemory::layer_held(std::size_t layer) const noexcept {
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; arena_ && i < of_layer_; ++i) bytes += arena_->mapped(layer * of_layer_ + i) ? segment_bytes_ : 0;
    return bytes;
}

Result<> KvMemory::extend(std::size_t first, std::int64_t pages) {
    for (std::size_t layer = first; layer < layers_; ++layer) HR_CHECK(extend_layer(layer, pages));
    return {};
}

Result<> KvMemory::extend_layer(std::size_t layer, std::int64_t pages) {
    for (std::size_t i = 0; arena_ && i < segments_for(pages); ++i) {
        if (!arena_->mapped(layer * of_layer_ + i)) HR_CHECK(arena_->map(layer * of_layer_ + i));
    }
    return {};
}

void KvMemory::shrink(std::size_t first, std::int64_t pages, std::optional<Error>& error) {
    if (!arena_) return;
    for (std::size_t layer = 0; layer < layers_; ++layer) {
        for (std::size_t i = layer < first ? 0 : segments_for(pages); i < of_layer_; ++i) {
            if (!arena_->mapped(layer * of_layer_ + i)) continue;
            if (auto done = arena_->unmap(layer * of_layer_ + i); !done && !error) error = std::move(done.error());
        }
    }
}

}  // namespace headroom::model
