#pragma once

// The paged KV pool as kernels see it, and small things that all of attention uses.

#include "kernels/arguments.h"
#include "kernels/arithmetic.h"

namespace headroom::device {

using kernels::AttentionArguments;
using kernels::KvPool;
using kernels::Places;

inline constexpr int kPage = 256;         // positions to a page
inline constexpr int kSection = 2;        // pages that the arithmetic takes together
inline constexpr int kMostWidth = 256;    // of a head
inline constexpr int kMostHeads = 8;      // of them that are worked on together
inline constexpr int kBlock = 256;        // threads of a block of attention_prefill and of attention on matrix units

HR_DEVICE int page_of(const Places& places, int token, int number) {
    return places.pages[static_cast<std::int64_t>(places.tables[token]) * places.pages_stride + number];
}
// The 256 rows of one KV head in a page.
HR_DEVICE std::uint16_t* keys(const KvPool& pool, int page, int kv_head) {
    std::uint8_t* begin = pool.base + static_cast<std::uint64_t>(page) * pool.page_bytes + pool.k_offset;
    return reinterpret_cast<std::uint16_t*>(begin) + kv_head * kPage * pool.head_dim;
}
HR_DEVICE std::uint16_t* values(const KvPool& pool, int page, int kv_head) {
    std::uint8_t* begin = pool.base + static_cast<std::uint64_t>(page) * pool.page_bytes + pool.v_offset;
    return reinterpret_cast<std::uint16_t*>(begin) + kv_head * kPage * pool.head_dim_v;
}

HR_DEVICE float max_of(float a, float b) { return __builtin_fmaxf(a, b); }

// The pages that a token sees, and in each the visible positions.
struct Visible {
    int first, position;

    HR_DEVICE Visible(int at, int window) : first(window > 0 && at >= window ? at - window + 1 : 0), position(at) {}
    HR_DEVICE int first_page() const { return first / kPage; }
    HR_DEVICE int pages() const { return position / kPage + 1 - first_page(); }
    HR_DEVICE int sections() const { return position / kPage / kSection + 1 - first_page() / kSection; }
    HR_DEVICE int begin(int page) const { return page == first_page() ? first % kPage : 0; }
    HR_DEVICE int end(int page) const { return page == position / kPage ? position % kPage + 1 : kPage; }
};

// N neighbouring halves, kept as they are loaded.
template <int N>
struct alignas(2 * N) Halves {
    std::uint32_t x[N / 2];
    HR_DEVICE float value(int i) const { return i % 2 == 0 ? low_half_to_float(x[i / 2]) : high_half_to_float(x[i / 2]); }
};
template <>
struct Halves<1> {
    std::uint16_t x;
    HR_DEVICE float value(int) const { return half_to_float(x); }
};
template <int N>
struct alignas(4 * N) Floats {
    float x[N];
};

}  // namespace headroom::device
