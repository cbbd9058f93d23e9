#pragma once

// Where the keys and values of one layer lie. The GPU's kernels read and write the same bytes (KvPool, kernels/arguments.h): pages move between
// the two as they are.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace headroom::cpu {

// Positions to a page of the KV cache, and to a strip of one; pages to a section: the steps of the attention's arithmetic.
inline constexpr std::int64_t kPagePositions = 256;
inline constexpr std::int64_t kStripPositions = 32;
inline constexpr std::int64_t kSectionPages = 2;

// How keys and values are kept. f16: IEEE half floats. q8_0: int8 codes with a half for each block of kKvBlock elements of a head; every head's
// width has to be a multiple of kKvBlock, at most kMostQuantizedWidth.
enum class KvType : std::uint8_t { f16, q8_0 };
inline constexpr std::int64_t kKvBlock = 32;
inline constexpr std::int64_t kMostQuantizedWidth = 256;

// "f16", "q8_0".
[[nodiscard]] constexpr std::string_view to_string(KvType type) noexcept { return type == KvType::f16 ? "f16" : "q8_0"; }
[[nodiscard]] constexpr std::optional<KvType> kv_type_from(std::string_view name) noexcept {
    for (const KvType type : {KvType::f16, KvType::q8_0}) {
        if (name == to_string(type)) return type;
    }
    return std::nullopt;
}

[[nodiscard]] constexpr bool can_quantize_kv(std::int64_t head_dim, std::int64_t head_dim_v) noexcept {
    const auto fits = [](std::int64_t width) { return width > 0 && width <= kMostQuantizedWidth && width % kKvBlock == 0; };
    return fits(head_dim) && fits(head_dim_v);
}

// Bytes of a layer's keys (or values) in a page: of so many heads, each so many elements wide.
[[nodiscard]] constexpr std::int64_t kv_part_bytes(KvType type, std::int64_t kv_heads, std::int64_t width) noexcept {
    const std::int64_t elements = kv_heads * kPagePositions * width;
    return type == KvType::f16 ? 2 * elements : elements + elements / kKvBlock * 2;
}

// One layer's K and V of one session, in pages of kPagePositions positions. Page p holds positions [256 p, 256 p + 256). What k_pages[p] and
// v_pages[p] point to (aligned to 2 bytes):
//   f16   K: half [kv_heads, 256, head_dim]
//         V: half [kv_heads, 256, head_dim_v]
//   q8_0  K: int8 [kv_heads, 256, head_dim], then the scales, half [kv_heads, 256, head_dim / 32]
//         V: int8 [kv_heads, 8 strips, head_dim_v, 32 positions], then half [kv_heads, 8 strips, head_dim_v / 32, 32 positions]: an element's
//            values of a strip lie together, ready for a sum over positions
struct KvView {
    std::byte* const* k_pages = nullptr;
    std::byte* const* v_pages = nullptr;
    std::int64_t kv_heads = 0;
    std::int64_t head_dim = 0;
    std::int64_t head_dim_v = 0;
    KvType type = KvType::f16;
};

// A KV head's 256 positions in what a page pointer of KvView points to; width: of the head's keys or of its values.
inline std::uint16_t* kv_halves(std::byte* page, std::int64_t kv_head, std::int64_t width) noexcept {
    return reinterpret_cast<std::uint16_t*>(page) + kv_head * kPagePositions * width;
}
struct KvCodes {
    std::int8_t* codes;
    std::uint16_t* scales;
};
inline KvCodes kv_codes(std::byte* page, std::int64_t kv_heads, std::int64_t kv_head, std::int64_t width) noexcept {
    const std::int64_t head = kPagePositions * width;
    return {reinterpret_cast<std::int8_t*>(page) + kv_head * head,
            reinterpret_cast<std::uint16_t*>(page + kv_heads * head) + kv_head * (head / kKvBlock)};
}

// Where in those a value's code and its scale are: element d of position i of the page. A key's are simply [256, width] and [256, width / 32].
[[nodiscard]] constexpr std::int64_t value_code_at(std::int64_t i, std::int64_t d, std::int64_t width) noexcept {
    return (i / kStripPositions * width + d) * kStripPositions + i % kStripPositions;
}
[[nodiscard]] constexpr std::int64_t value_scale_at(std::int64_t i, std::int64_t block, std::int64_t width) noexcept {
    return value_code_at(i, block, width / kKvBlock);
}

}  // namespace headroom::cpu
