#pragma once

// Tiles of int8 codes on matrix units, where the device has those of NVIDIA's generation 8.0 and later: HR_CODE_TILES is defined there. What the
// emulator has in their place is here too.
//
// A tile's product is 16 rows by 8 columns. Of it a lane has rows lane / 4 and lane / 4 + 8 (out[0], out[1] and out[2], out[3]) in columns
// 2 (lane % 4) and the next. The sums are exact, so it does not matter which codes of a row a lane contributes, as long as the four lanes
// that share a row or a column divide them in the same way.

#include "kernels/portable.h"

#if defined(HR_EMULATED)
#define HR_CODE_TILES 1

namespace headroom::device {

// left: of rows lane / 4 (words 0, 2) and lane / 4 + 8 (1, 3), right: of column lane / 4.
inline void multiply_codes(const int (&left)[4], int right0, int right1, int (&out)[4], Site at = Site::current()) {
    struct Parts {
        int left[4], right[2];
    };
    const auto parts = emulated::lanes(Parts{{left[0], left[1], left[2], left[3]}, {right0, right1}}, at);
    for (int i = 0; i < 4; ++i) {
        out[i] = 0;
        for (int k = 0; k < 4; ++k) {
            const Parts a = parts[lane() / 4 * 4 + k], b = parts[(lane() % 4 * 2 + i % 2) * 4 + k];
            out[i] = dot4(a.left[i / 2], b.right[0], dot4(a.left[i / 2 + 2], b.right[1], out[i]));
        }
    }
}

// Adds the product to out.
inline void add_codes(const int (&left)[4], int right0, int right1, int (&out)[4], Site at = Site::current()) {
    int product[4];
    multiply_codes(left, right0, right1, product, at);
    for (int i = 0; i < 4; ++i) out[i] += product[i];
}

// The same with columns of unsigned codes.
inline void add_unsigned_codes(const int (&left)[4], int right0, int right1, int (&out)[4], Site at = Site::current()) {
    struct Parts {
        int left[4], right[2];
    };
    const auto parts = emulated::lanes(Parts{{left[0], left[1], left[2], left[3]}, {right0, right1}}, at);
    for (int i = 0; i < 4; ++i) {
        for (int k = 0; k < 32; ++k) {
            const Parts a = parts[lane() / 4 * 4 + k / 8], b = parts[(lane() % 4 * 2 + i % 2) * 4 + k / 8];
            const int word = k / 4 % 2, shift = k % 4 * 8;
            out[i] += static_cast<std::int8_t>(a.left[i / 2 + 2 * word] >> shift) * static_cast<std::uint8_t>(b.right[word] >> shift);
        }
    }
}

// Turns a tile of 8 x 8 16-bit values: a lane has values 2 (lane % 4) and the next of row lane / 4, then of column lane / 4.
inline std::uint32_t turn_tile(std::uint32_t two, Site at = Site::current()) {
    const auto all = emulated::lanes(two, at);
    const auto value = [&](int row, int column) { return (all[row * 4 + column / 2] >> (column % 2 * 16)) & 0xffffU; };
    return value(lane() % 4 * 2, lane() / 4) | value(lane() % 4 * 2 + 1, lane() / 4) << 16;
}

// Bytes 0 to 3 are those of low, 4 to 7 those of high: the four that the digits of `which` name, the last digit first.
inline std::uint32_t pick_bytes(std::uint32_t low, std::uint32_t high, std::uint32_t which) {
    const std::uint64_t both = low | std::uint64_t{high} << 32;
    std::uint32_t picked = 0;
    for (int i = 0; i < 4; ++i) picked |= static_cast<std::uint32_t>(both >> ((which >> (4 * i) & 7) * 8) & 255U) << (8 * i);
    return picked;
}

// multiply_codes with one word of each row, and columns of 16-bit values, four in two words.
inline void multiply_sums(int left0, int left1, const int (&right)[2], int (&out)[4], Site at = Site::current()) {
    struct Parts {
        int left[2], right[2];
    };
    const auto parts = emulated::lanes(Parts{{left0, left1}, {right[0], right[1]}}, at);
    for (int i = 0; i < 4; ++i) {
        out[i] = 0;
        for (int k = 0; k < 16; ++k) {
            const Parts a = parts[lane() / 4 * 4 + k / 4], b = parts[(lane() % 4 * 2 + i % 2) * 4 + k / 4];
            out[i] += static_cast<std::int8_t>(a.left[i / 2] >> (k % 4 * 8)) * static_cast<std::int16_t>(b.right[k % 4 / 2] >> (k % 2 * 16));
        }
    }
}

}  // namespace headroom::device

#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define HR_CODE_TILES 1

namespace headroom::device {

HR_DEVICE void multiply_codes(const int (&left)[4], int right0, int right1, int (&out)[4]) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %10, %10, %10};"
        : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
        : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right0), "r"(right1), "r"(0));
}

HR_DEVICE void add_codes(const int (&left)[4], int right0, int right1, int (&out)[4]) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+r"(out[0]), "+r"(out[1]), "+r"(out[2]), "+r"(out[3])
        : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right0), "r"(right1));
}

HR_DEVICE void add_unsigned_codes(const int (&left)[4], int right0, int right1, int (&out)[4]) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+r"(out[0]), "+r"(out[1]), "+r"(out[2]), "+r"(out[3])
        : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right0), "r"(right1));
}

HR_DEVICE std::uint32_t turn_tile(std::uint32_t two) {
    std::uint32_t turned;
    asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(turned) : "r"(two));
    return turned;
}

HR_DEVICE std::uint32_t pick_bytes(std::uint32_t low, std::uint32_t high, std::uint32_t which) { return __byte_perm(low, high, which); }

// The 16-bit values are split into an unsigned low and a signed high byte.
HR_DEVICE void multiply_sums(int left0, int left1, const int (&right)[2], int (&out)[4]) {
    const auto low = static_cast<int>(__byte_perm(static_cast<unsigned>(right[0]), static_cast<unsigned>(right[1]), 0x6420U));
    const auto high = static_cast<int>(__byte_perm(static_cast<unsigned>(right[0]), static_cast<unsigned>(right[1]), 0x7531U));
    int upper[4];
    asm("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %7, %7, %7};"
        : "=r"(upper[0]), "=r"(upper[1]), "=r"(upper[2]), "=r"(upper[3])
        : "r"(left0), "r"(left1), "r"(high), "r"(0));
    asm("mma.sync.aligned.m16n8k16.row.col.s32.s8.u8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %8, %9, %10};"
        : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
        : "r"(left0), "r"(left1), "r"(low), "r"(upper[0] << 8), "r"(upper[1] << 8), "r"(upper[2] << 8), "r"(upper[3] << 8));
}

}  // namespace headroom::device

#endif
