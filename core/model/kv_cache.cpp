#include "core/model/kv_cache.h"

#include <algorithm>
#include <cstring>

#include "core/base/bytes.h"

namespace headroom::model {
namespace {

// Pages for so many positions.
std::int64_t pages_for(std::int64_t positions) noexcept { return (positions + cpu::kPagePositions - 1) / cpu::kPagePositions; }

}  // namespace

std::uint64_t KvShape::key_bytes() const noexcept { return static_cast<std::uint64_t>(cpu::kv_part_bytes(type, kv_heads, head_dim)); }

std::uint64_t KvShape::page_bytes() const noexcept {
    return static_cast<std::uint64_t>(layers) * (key_bytes() + static_cast<std::uint64_t>(cpu::kv_part_bytes(type, kv_heads, head_dim_v)));
}

std::uint64_t KvShape::bytes(std::int64_t positions) const noexcept {
    return checked_mul(static_cast<std::uint64_t>(pages_for(positions)), page_bytes()).value_or(UINT64_MAX);
}

Result<> KvCache::reserve(std::int64_t positions) try {
    const auto count = static_cast<std::size_t>(pages_for(positions));
    if (count <= pages_.size()) return {};
    layers_.resize(static_cast<std::size_t>(shape_.layers));
    pages_.reserve(count);
    KvShape one = shape_;
    one.layers = 1;
    const std::uint64_t layer_bytes = one.page_bytes();
    for (LayerPages& layer : layers_) {
        layer.k.reserve(count);
        layer.v.reserve(count);
    }
    while (pages_.size() < count) {
        auto* page = static_cast<std::byte*>(::operator new(shape_.page_bytes(), std::align_val_t{64}, std::nothrow));
        if (page == nullptr) {
            return fail(ErrorKind::out_of_memory,
                        "There is not enough memory for the conversation: {} for positions {} to {} were refused; close other "
                        "programs or set a smaller context",
                        format_bytes(shape_.page_bytes()), pages_.size() * cpu::kPagePositions,
                        (pages_.size() + 1) * cpu::kPagePositions - 1);
        }
        pages_.emplace_back(page);
        for (LayerPages& layer : layers_) {
            layer.k.push_back(page);
            layer.v.push_back(page + shape_.key_bytes());
            page += layer_bytes;
        }
    }
    return {};
} catch (const std::bad_alloc&) {
    return fail(ErrorKind::out_of_memory, "There is not enough memory for the conversation's table of pages");
}

Result<> KvCache::set_layers(std::int64_t layers) {
    KvShape shape = shape_;
    shape.layers = layers;
    KvCache other(shape);
    const std::int64_t kept = std::min(layers, shape_.layers);
    shape.layers = kept;
    if (layers > 0) HR_CHECK(other.reserve(static_cast<std::int64_t>(pages_.size()) * cpu::kPagePositions));
    for (std::size_t p = 0; kept > 0 && p < pages_.size(); ++p) std::memcpy(other.pages_[p].get(), pages_[p].get(), shape.page_bytes());
    other.length_ = length_;
    *this = std::move(other);
    return {};
}

Result<> KvCache::copy(const KvCache& from, std::int64_t positions) {
    HR_CHECK(reserve(positions));
    const auto count = static_cast<std::size_t>(pages_for(positions));
    for (std::size_t p = 0; p < count; ++p) std::memcpy(pages_[p].get(), from.pages_[p].get(), shape_.page_bytes());
    length_ = positions;
    return {};
}

void KvCache::truncate(std::int64_t positions) noexcept {
    if (positions >= length_) return;
    length_ = positions;
    const auto count = static_cast<std::size_t>(pages_for(positions));
    if (count >= pages_.size()) return;
    pages_.resize(count);
    for (LayerPages& layer : layers_) {
        layer.k.resize(count);
        layer.v.resize(count);
    }
}

cpu::KvView KvCache::view(std::int64_t layer) const noexcept {
    const LayerPages& pages = layers_[static_cast<std::size_t>(layer)];
    return {.k_pages = pages.k.data(), .v_pages = pages.v.data(), .kv_heads = shape_.kv_heads, .head_dim = shape_.head_dim,
            .head_dim_v = shape_.head_dim_v, .type = shape_.type};
}

}  // namespace headroom::model
