#pragma once

// Keys and values of one session, in pages of 256 positions for all layers, allocated as the session grows: half floats, or int8
// codes with scales.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "core/base/error.h"
#include "core/compute/cpu/ops.h"

namespace headroom::model {

struct KvShape {
    std::int64_t layers = 0;
    std::int64_t kv_heads = 0;
    std::int64_t head_dim = 0;
    std::int64_t head_dim_v = 0;
    cpu::KvType type = cpu::KvType::f16;

    // Of a layer's keys in a page, behind which its values lie. Of one page (all layers), and of all pages for `positions`.
    [[nodiscard]] std::uint64_t key_bytes() const noexcept;
    [[nodiscard]] std::uint64_t page_bytes() const noexcept;
    [[nodiscard]] std::uint64_t bytes(std::int64_t positions) const noexcept;
};

// Used from one thread at a time.
class KvCache {
public:
    KvCache() = default;
    explicit KvCache(const KvShape& shape) : shape_(shape) {}

    // Positions whose keys and values are complete in every layer.
    [[nodiscard]] std::int64_t length() const noexcept { return length_; }
    [[nodiscard]] std::uint64_t allocated_bytes() const noexcept { return pages_.size() * shape_.page_bytes(); }

    // Makes room for `positions` in all; what is there stays. Error: out_of_memory.
    [[nodiscard]] Result<> reserve(std::int64_t positions);
    // After every layer has stored `positions` in all.
    void set_length(std::int64_t positions) noexcept { length_ = positions; }
    // Forgets what lies behind `positions` (<= length()) and gives pages that hold none of the rest back.
    void truncate(std::int64_t positions) noexcept;

    // Becomes a copy of the first `positions` (<= length()) of another one of the same shape. Error: out_of_memory.
    [[nodiscard]] Result<> copy(const KvCache& from, std::int64_t positions);

    // Makes it one for the first `layers` layers: what it holds of those that stay is kept, what is new holds anything. Error: out_of_memory;
    // then it is what it was.
    [[nodiscard]] Result<> set_layers(std::int64_t layers);
    // One layer's part of a page: its K, then its V behind it, as cpu::KvView says.
    [[nodiscard]] std::byte* page(std::int64_t layer, std::size_t page) const noexcept { return layers_[static_cast<std::size_t>(layer)].k[page]; }

    // One layer's pages; valid until the next reserve or truncate.
    [[nodiscard]] cpu::KvView view(std::int64_t layer) const noexcept;

private:
    struct Free {
        void operator()(std::byte* page) const noexcept { ::operator delete(page, std::align_val_t{64}); }
    };
    struct LayerPages {
        std::vector<std::byte*> k;
        std::vector<std::byte*> v;
    };
    KvShape shape_;
    std::int64_t length_ = 0;
    std::vector<std::unique_ptr<std::byte, Free>> pages_;  // each: for every layer its K, then its V
    std::vector<LayerPages> layers_;                           // where each layer's part of each page begins
};

}  // namespace headroom::model
