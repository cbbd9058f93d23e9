#pragma once

// The KV pool as q8_0: int8 codes with a half for each 32 elements of a head (cpu::KvView has where what lies).

#include "kernels/heads.h"

namespace headroom::device {

inline constexpr int kCodeBlock = 32;  // elements with one scale

// Codes and scales of one KV head in a page: of keys [256, width] and [256, width / 32], of values [8 strips, width, 32] and [8, width / 32, 32].
// A strip has 32 widths of codes and as many scales as the width.
struct PageCodes {
    std::uint8_t* codes;
    std::uint16_t* scales;

    HR_DEVICE PageCodes(const KvPool& pool, int page, int kv_head, std::uint64_t offset, int width) {
        std::uint8_t* begin = pool.base + static_cast<std::uint64_t>(page) * pool.page_bytes + offset;
        codes = begin + kv_head * kPage * width;
        scales = reinterpret_cast<std::uint16_t*>(begin + pool.kv_heads * kPage * width) + kv_head * kPage * (width / kCodeBlock);
    }
    // Elements i … i + 3 of position `row`, a key's or a value's; the scale with the first of a block.
    HR_DEVICE void put_key(int width, int row, int i, std::uint32_t four, std::uint16_t scale) const {
        *reinterpret_cast<std::uint32_t*>(codes + row * width + i) = four;
        if (i % kCodeBlock == 0) scales[(row * width + i) / kCodeBlock] = scale;
    }
    HR_DEVICE void put_value(int width, int row, int i, std::uint32_t four, std::uint16_t scale) const {
        const int first = row / 32 * width + i, position = row % 32;
        for (int e = 0; e < 4; ++e) codes[(first + e) * 32 + position] = static_cast<std::uint8_t>(four >> (8 * e));
        if (i % kCodeBlock == 0) scales[first + position] = scale;
    }
};
template <int W>
HR_DEVICE PageCodes key_codes(const KvPool& pool, int page, int kv_head) {
    return {pool, page, kv_head, pool.k_offset, width_or<W>(pool.head_dim)};
}
template <int W>
HR_DEVICE PageCodes value_codes(const KvPool& pool, int page, int kv_head) {
    return {pool, page, kv_head, pool.v_offset, width_or<W>(pool.head_dim_v)};
}

// ---- Quantization: four neighbouring elements to a lane, a block to eight lanes ----

HR_DEVICE float largest_of_block(const Floats<4>& x) {
    float largest = 0;
    HR_UNROLL
    for (int i = 0; i < 4; ++i) largest = max_of(largest, x.x[i] < 0 ? -x.x[i] : x.x[i]);
    HR_UNROLL
    for (int d = 1; d < 8; d *= 2) largest = max_of(largest, shuffle_xor(largest, d));
    return largest;
}
HR_DEVICE std::uint32_t codes_of(const Floats<4>& x, float inverse) {
    std::uint32_t codes = 0;
    HR_UNROLL
    for (int i = 0; i < 4; ++i) {
        const float code = rint(x.x[i] * inverse);
        const int limited = static_cast<int>(code < -127.0F ? -127.0F : code < 127.0F ? code : 127.0F);
        codes |= static_cast<std::uint32_t>(limited & 255) << (8 * i);
    }
    return codes;
}

// Quantizes a head of K or V as it is kept (cpu::reference::quantize_kv). keep(i, codes, scale): elements i … i + 3; the scale, a half, is that of their block.
template <class Keep>
HR_DEVICE void quantize_kept(const float* x, int width, Keep keep) {
#pragma unroll 1
    for (int first = 0; first < width; first += 4 * kWarp) {
        const int i = first + 4 * lane();
        const Floats<4> four = i < width ? *reinterpret_cast<const Floats<4>*>(x + i) : Floats<4>{};
        const std::uint16_t scale = float_to_half(largest_of_block(four) / 127.0F);
        const float d = half_to_float(scale);
        if (i < width) keep(i, codes_of(four, d > 0 ? 1.0F / d : 0.0F), scale);
    }
}

}  // namespace headroom::device
