#pragma once

// Products of superblocks on matrix units for a few tokens: a tile is 16 rows by 8 columns, a token each (kernels/code_tiles.h). A weight is taken apart
// once for all of them, by the lane that loaded it. Of each 32 bytes of codes the four lanes of a row take 8 neighbouring ones each, and the same
// of every token's codes.

#include "kernels/code_tiles.h"
#include "kernels/dot.h"

#if defined(HR_CODE_TILES)

namespace headroom::device {

// The tokens' codes as a lane reads them. The eight columns' words should lie in different banks.
struct Columns {
    const std::int8_t* codes;   // of column lane / 4
    const std::int16_t* sums;   // the same
    const float* scales[2];     // of columns 2 (lane % 4) and the next
    int scale_step;             // from a superblock's scale to the next one's
};

// The integers of a lane's four outputs (kernels/code_tiles.h), and the factors of its two rows.
struct Integers {
    int products[4];
    int minima[4];
};

HR_DEVICE int byte_of(int word, int number) { return (word >> (8 * number)) & 255; }
HR_DEVICE int signed_byte_of(int word, int number) { return static_cast<std::int8_t>(word >> (8 * number)); }

// Types with 32 codes to a scale. Raw: what a lane loads of a superblock of both of its rows; codes(raw, j, …): the codes of sub-blocks 2 j and
// 2 j + 1 as multiply_codes takes them.
struct FewQ4K {
    using Layout = cpu::Q4K;
    static constexpr int kBytes = Layout::kBytes;
    static constexpr bool kMinima = true;
    struct Raw {
        Words4 head[2];
        Words2 low[2][4];
    };
    static HR_DEVICE Raw load(const std::uint8_t* const (&rows)[2], int offset) {
        Raw raw;
        HR_UNROLL
        for (int r = 0; r < 2; ++r) {
            const std::uint8_t* block = rows[r] + offset;
            raw.head[r] = load_16(block);
            HR_UNROLL
            for (int j = 0; j < 4; ++j) raw.low[r][j] = load_8(block + Layout::kLow + 32 * j + 8 * (lane() & 3));
        }
        return raw;
    }
    static HR_DEVICE std::uint32_t factors(const Raw& raw, int r) { return static_cast<std::uint32_t>(raw.head[r].w[0]); }
    static HR_DEVICE void codes(const Raw& raw, int j, int (&first)[4], int (&second)[4]) {
        HR_UNROLL
        for (int i = 0; i < 4; ++i) {
            const int low = raw.low[i % 2][j].w[i / 2];
            first[i] = low & 0x0f0f0f0f;
            second[i] = (low >> 4) & 0x0f0f0f0f;
        }
    }
};

struct FewQ5K {
    using Layout = cpu::Q5K;
    static constexpr int kBytes = Layout::kBytes;
    static constexpr bool kMinima = true;
    struct Raw {
        Words4 head[2];
        Words2 high[2];
        Words2 low[2][4];
    };
    static HR_DEVICE Raw load(const std::uint8_t* const (&rows)[2], int offset) {
        Raw raw;
        HR_UNROLL
        for (int r = 0; r < 2; ++r) {
            const std::uint8_t* block = rows[r] + offset;
            raw.head[r] = load_16(block);
            raw.high[r] = load_8(block + Layout::kHigh + 8 * (lane() & 3));
            HR_UNROLL
            for (int j = 0; j < 4; ++j) raw.low[r][j] = load_8(block + Layout::kLow + 32 * j + 8 * (lane() & 3));
        }
        return raw;
    }
    static HR_DEVICE std::uint32_t factors(const Raw& raw, int r) { return static_cast<std::uint32_t>(raw.head[r].w[0]); }
    static HR_DEVICE void codes(const Raw& raw, int j, int (&first)[4], int (&second)[4]) {
        HR_UNROLL
        for (int i = 0; i < 4; ++i) {
            const int low = raw.low[i % 2][j].w[i / 2], high = raw.high[i % 2].w[i / 2] >> (2 * j);
            first[i] = (low & 0x0f0f0f0f) | ((high & 0x01010101) << 4);
            second[i] = ((low >> 4) & 0x0f0f0f0f) | ((high & 0x02020202) << 3);
        }
    }
};

// The integers of Q4_K's and Q5_K's superblock b.
template <class Weights>
HR_DEVICE void integers_of(const typename Weights::Raw& raw, int b, const Columns& x, Integers& out) {
    const int part = lane() & 3;
    const std::int8_t* codes = x.codes + b * 256 + 8 * part;
    int scales[2][2], minima[2];
    HR_UNROLL
    for (int r = 0; r < 2; ++r) {
        const Words4& head = raw.head[r];
        scales[r][0] = head.w[1] & 0x3f3f3f3f;
        scales[r][1] = (head.w[3] & 0x0f0f0f0f) | ((head.w[1] >> 2) & 0x30303030);
        // The minima of this lane's four runs of 16 elements: those of sub-blocks 2 part and 2 part + 1, twice each.
        const int four = part < 2 ? head.w[2] & 0x3f3f3f3f : ((head.w[3] >> 4) & 0x0f0f0f0f) | ((head.w[2] >> 2) & 0x30303030);
        const int two = four >> (16 * (part & 1));
        minima[r] = (two & 0xff) * 0x0101 + ((two >> 8) & 0xff) * 0x01010000;
    }
    HR_UNROLL
    for (int i = 0; i < 4; ++i) out.products[i] = 0;
    HR_UNROLL
    for (int j = 0; j < 4; ++j) {
        int left[2][4];
        Weights::codes(raw, j, left[0], left[1]);
        HR_UNROLL
        for (int c = 0; c < 2; ++c) {
            const Words2 right = load_8(codes + 64 * j + 32 * c);
            int dot[4];
            multiply_codes(left[c], right.w[0], right.w[1], dot);
            HR_UNROLL
            for (int i = 0; i < 4; ++i) out.products[i] += byte_of(scales[i / 2][j / 2], 2 * j % 4 + c) * dot[i];
        }
    }
    const Words2 sums = load_8(x.sums + b * 16 + 4 * part);
    multiply_sums(minima[0], minima[1], sums.w, out.minima);
}

// Four codes of Q6_K: of quarter `quarter` of a half, the low bits in `low`, the two high ones in `high`.
HR_DEVICE int codes_q6_k(int low, int high, int quarter) {
    const int above = quarter < 2 ? high << (4 - 2 * quarter) : high >> (2 * quarter - 4);
    return ((quarter < 2 ? low : low >> 4) & 0x0f0f0f0f) | (above & 0x30303030);
}

// 16 codes to a scale: the lanes of a row's first half of 32 codes and those of the second are multiplied one after the other, with zeros in the
// others' place.
struct FewQ6K {
    using Layout = cpu::Q6K;
    static constexpr int kBytes = Layout::kBytes;
    static constexpr bool kMinima = false;
    struct Raw {
        int low[2][4][2], high[2][2][2];
        int scales[2][4];
        int d[2];
    };
    static HR_DEVICE Raw load(const std::uint8_t* const (&rows)[2], int offset) {
        Raw raw;
        HR_UNROLL
        for (int r = 0; r < 2; ++r) {
            const std::uint8_t* block = rows[r] + offset;
            HR_UNROLL
            for (int j = 0; j < 4; ++j) load_words(block + Layout::kLow + 32 * j + 8 * (lane() & 3), raw.low[r][j]);
            HR_UNROLL
            for (int j = 0; j < 2; ++j) load_words(block + Layout::kHigh + 32 * j + 8 * (lane() & 3), raw.high[r][j]);
            load_words(block + Layout::kScales, raw.scales[r]);
            raw.d[r] = load_2(block + Layout::kD);
        }
        return raw;
    }
    static HR_DEVICE std::uint32_t factors(const Raw& raw, int r) { return static_cast<std::uint32_t>(raw.d[r]); }
};

template <>
HR_DEVICE void integers_of<FewQ6K>(const FewQ6K::Raw& raw, int b, const Columns& x, Integers& out) {
    const int part = lane() & 3;
    const std::int8_t* codes = x.codes + b * 256 + 8 * part;
    const int of_first = part < 2 ? -1 : 0;
    // The codes are 32 too large: scale times sum of the tokens' codes is what that makes.
    const auto own = [&](const int (&words)[4]) { return part < 2 ? (part == 0 ? words[0] : words[1]) : (part == 2 ? words[2] : words[3]); };
    const Words2 sums = load_8(x.sums + b * 16 + 4 * part);
    multiply_sums(own(raw.scales[0]), own(raw.scales[1]), sums.w, out.products);
    HR_UNROLL
    for (int i = 0; i < 4; ++i) out.products[i] = -32 * out.products[i];
    HR_UNROLL
    for (int j = 0; j < 8; ++j) {  // 32 codes: quarter j % 4 of half j / 4
        int left[4];
        HR_UNROLL
        for (int i = 0; i < 4; ++i) {
            left[i] = codes_q6_k(raw.low[i % 2][j / 4 * 2 + j % 2][i / 2], raw.high[i % 2][j / 4][i / 2], j % 4);
        }
        const Words2 right = load_8(codes + 32 * j);
        HR_UNROLL
        for (int c = 0; c < 2; ++c) {
            const int mask = c == 0 ? of_first : ~of_first;
            int dot[4];
            multiply_codes(left, right.w[0] & mask, right.w[1] & mask, dot);
            HR_UNROLL
            for (int i = 0; i < 4; ++i) out.products[i] += signed_byte_of(raw.scales[i / 2][j / 2], 2 * j % 4 + c) * dot[i];
        }
    }
}

template <class Weights>
HR_DEVICE void add_superblock(const typename Weights::Raw& raw, int b, const Columns& x, float (&accumulators)[4]) {
    Integers integers;
    integers_of<Weights>(raw, b, x, integers);
    HR_UNROLL
    for (int i = 0; i < 4; ++i) {
        const float scale = x.scales[i % 2][b * x.scale_step];
        const std::uint32_t halves = Weights::factors(raw, i / 2);
        const auto product = static_cast<float>(integers.products[i]);
        float value;
        if constexpr (Weights::kMinima) {
            value = scale * fma(low_half(halves), product, -(high_half(halves) * static_cast<float>(integers.minima[i])));
        } else {
            value = scale * (low_half(halves) * product);
        }
        accumulators[i] = accumulators[i] + value;
    }
}

// ---- One token alone ----
//
// Seven of eight columns would be empty: they take the runs of codes that have a scale of their own, column c the c-th of eight. So a lane multiplies
// the scales of two runs alone, and the four lanes of a row add up what they have.

// The token's codes, in shared memory.
struct Column {
    const std::int8_t* codes;
    const std::int16_t* sums;
    const float* scales;
};

// The sums of both rows over the four lanes of a row: of row lane % 2.
HR_DEVICE int sum_of_row(const int (&rows)[2]) {
    const bool second = (lane() & 1) != 0;
    int sum = second ? rows[1] : rows[0];
    sum += shuffle_xor(second ? rows[0] : rows[1], 1);
    return sum + shuffle_xor(sum, 2);
}

HR_DEVICE int first_sum(int two) { return static_cast<std::int16_t>(two); }
HR_DEVICE int second_sum(int two) { return two >> 16; }

// Adds superblock b of row lane / 4 (even lanes) or lane / 4 + 8 (odd ones) to the accumulator. rows: of lane / 4 and lane / 4 + 8.
template <class Weights>
HR_DEVICE void add_superblock_alone(const std::uint8_t* const (&rows)[2], int b, const Column& x, float& accumulator) {
    const typename Weights::Raw raw = Weights::load(rows, b * Weights::kBytes);
    const int column = lane() >> 2, part = lane() & 3;
    const Words2 own = load_8(x.codes + b * 256 + 32 * column + 8 * part);
    int dots[2][4] = {};  // of the even columns, of the odd ones
    HR_UNROLL
    for (int j = 0; j < 4; ++j) {
        int left[2][4];
        Weights::codes(raw, j, left[0], left[1]);
        HR_UNROLL
        for (int c = 0; c < 2; ++c) {
            const bool mine = column == 2 * j + c;
            add_codes(left[c], mine ? own.w[0] : 0, mine ? own.w[1] : 0, dots[c]);
        }
    }
    const Words2 two = load_8(x.sums + b * 16 + 4 * part);
    const int sums[2] = {first_sum(two.w[0]) + second_sum(two.w[0]), first_sum(two.w[1]) + second_sum(two.w[1])};
    int products[2], minima[2];
    HR_UNROLL
    for (int r = 0; r < 2; ++r) {
        const Words4& head = raw.head[r];
        const bool plain = part < 2;  // the scales of sub-blocks 2 part and 2 part + 1
        const int scales = (plain ? head.w[1] & 0x3f3f3f3f : (head.w[3] & 0x0f0f0f0f) | ((head.w[1] >> 2) & 0x30303030)) >> (16 * (part & 1));
        const int smallest = (plain ? head.w[2] & 0x3f3f3f3f : ((head.w[3] >> 4) & 0x0f0f0f0f) | ((head.w[2] >> 2) & 0x30303030)) >> (16 * (part & 1));
        products[r] = byte_of(scales, 0) * dots[0][2 * r] + byte_of(scales, 1) * dots[1][2 * r + 1];
        minima[r] = byte_of(smallest, 0) * sums[0] + byte_of(smallest, 1) * sums[1];
    }
    const auto product = static_cast<float>(sum_of_row(products)), minimum = static_cast<float>(sum_of_row(minima));
    const std::uint32_t halves = (lane() & 1) != 0 ? Weights::factors(raw, 1) : Weights::factors(raw, 0);
    accumulator = accumulator + x.scales[b] * fma(low_half(halves), product, -(high_half(halves) * minimum));
}

template <>
HR_DEVICE void add_superblock_alone<FewQ6K>(const std::uint8_t* const (&rows)[2], int b, const Column& x, float& accumulator) {
    using Layout = cpu::Q6K;
    const int column = lane() >> 2, part = lane() & 3;
    const bool belongs = (part >> 1) == (column & 1);  // of 32 codes the lane's are of an even or an odd run
    int products[2] = {0, 0};
    HR_UNROLL
    for (int half = 0; half < 2; ++half) {
        int low[2][2][2], high[2][2];
        HR_UNROLL
        for (int r = 0; r < 2; ++r) {
            const std::uint8_t* block = rows[r] + b * Layout::kBytes;
            HR_UNROLL
            for (int i = 0; i < 2; ++i) load_words(block + Layout::kLow + 64 * half + 32 * i + 8 * part, low[r][i]);
            load_words(block + Layout::kHigh + 32 * half + 8 * part, high[r]);
        }
        const Words2 own = load_8(x.codes + b * 256 + 128 * half + 32 * (column >> 1) + 8 * part);
        int dots[4] = {};
        HR_UNROLL
        for (int j = 0; j < 4; ++j) {
            int left[4];
            HR_UNROLL
            for (int i = 0; i < 4; ++i) left[i] = codes_q6_k(low[i % 2][j % 2][i / 2], high[i % 2][i / 2], j);
            const bool mine = belongs && column >> 1 == j;
            add_codes(left, mine ? own.w[0] : 0, mine ? own.w[1] : 0, dots);
        }
        const int two = load_4(x.sums + b * 16 + 8 * half + 2 * part);
        const int sums[2] = {-32 * first_sum(two), -32 * second_sum(two)};  // the codes are 32 too large
        HR_UNROLL
        for (int r = 0; r < 2; ++r) {
            const int scales = load_2(rows[r] + b * Layout::kBytes + Layout::kScales + 8 * half + 2 * part);
            products[r] += signed_byte_of(scales, 0) * (dots[2 * r] + sums[0]) + signed_byte_of(scales, 1) * (dots[2 * r + 1] + sums[1]);
        }
    }
    const auto product = static_cast<float>(sum_of_row(products));
    const std::uint8_t* own_row = (lane() & 1) != 0 ? rows[1] : rows[0];
    const float d = low_half(static_cast<std::uint32_t>(load_2(own_row + b * Layout::kBytes + Layout::kD)));
    accumulator = accumulator + x.scales[b] * (d * product);
}

}  // namespace headroom::device

#endif
