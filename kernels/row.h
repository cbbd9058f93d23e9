#pragma once

// Decoding one token: products of one row of activations with weights of one type of 256-wide superblocks, known at compile time. What
// dot.h does for any types and several tokens, here four rows at a time, with the next blocks of weights on the way while the current ones
// are multiplied. The order of the additions is the same.

#include "kernels/dot.h"

namespace headroom::device {

// Four rows that a warp multiplies: 8 lanes to a superblock, four superblocks of each row at a time.
inline constexpr int kRows = 4;
struct RowGroup {
    const std::uint8_t* rows[kRows];
};

// What a lane holds of four neighbouring superblocks of all rows.
template <class Weights>
struct GroupBlocks {
    typename Weights::Raw raw[kRows];

    // Whether the next ones are loaded while these are multiplied: registers are short for the larger types, whose next rows only come
    // nearer (prefetch_group).
    static constexpr bool kAhead = sizeof(typename Weights::Raw) <= 32;

    // offset: where the lane's superblock begins in its row.
    HR_DEVICE void load(const RowGroup& group, int offset, int l) {
        HR_UNROLL
        for (int r = 0; r < kRows; ++r) raw[r] = Weights::load(group.rows[r] + offset, l);
    }
};

// Starts the rows' way from the memory to the second-level cache.
template <class Weights>
HR_DEVICE void prefetch_group(const RowGroup& group, int blocks) {
    HR_UNROLL
    for (int r = 0; r < kRows; ++r) prefetch(group.rows[r], static_cast<std::int64_t>(blocks) * Weights::kBytes);
}

// The value of superblock b: of row l / 2 in lane l of the 8 lanes that share it. x: in shared memory.
template <class Weights>
HR_DEVICE float value_of(const GroupBlocks<Weights>& item, int b, int l, const Quantized& x) {
    Words4 codes[2];
    int sums[2];
    HR_UNROLL
    for (int c = 0; c < 2; ++c) {
        const int at = b * 256 + Weights::offset(l, c);
        codes[c] = load_16(x.codes + at);
        sums[c] = Weights::kMinima || Weights::kBias != 0 ? x.sums[at / 16] : 0;
    }
    int products[kRows], minima[kRows];
    HR_UNROLL
    for (int r = 0; r < kRows; ++r) {
        Share w;
        Weights::unpack(item.raw[r], l, w);
        products[r] = w.scale[0] * dot_16(w.q[0], codes[0], -Weights::kBias * sums[0]) + w.scale[1] * dot_16(w.q[1], codes[1], -Weights::kBias * sums[1]);
        if constexpr (Weights::kMinima) minima[r] = w.minimum[0] * sums[0] + w.minimum[1] * sums[1];
    }
    const std::uint32_t low = (l & 2) != 0 ? Weights::factors(item.raw[1]) : Weights::factors(item.raw[0]);
    const std::uint32_t high = (l & 2) != 0 ? Weights::factors(item.raw[3]) : Weights::factors(item.raw[2]);
    const std::uint32_t halves = (l & 4) != 0 ? high : low;
    const auto product = static_cast<float>(sum_of_8(products, l));
    const float scale = x.scales[b];
    if constexpr (Weights::kMinima) {
        const auto minimum = static_cast<float>(sum_of_8(minima, l));
        return scale * fma(low_half(halves), product, -(high_half(halves) * minimum));
    } else {
        return scale * (low_half(halves) * product);
    }
}

// The groups number, number + step, … below `count`: locate(n) says which rows group n is, finish(n, product) gets the product of row l / 2 in
// lane l, l below 8. item: the first four superblocks of the first group, if there is one. x: the quantized row, of `blocks` superblocks.
template <class Weights, class Locate, class Finish>
HR_DEVICE void multiply_groups(int number, int step, int count, int blocks, GroupBlocks<Weights>& item, const Quantized& x, Locate locate,
                               Finish finish) {
    if (number >= count) return;
    const int l = lane() & 7, mine = lane() >> 3;
    RowGroup group = locate(number);
    for (;;) {
        float accumulator = 0;
        const bool more = number + step < count;
        RowGroup next_group = group;
        if (more) {
            next_group = locate(number + step);
            prefetch_group<Weights>(next_group, blocks);
        }
        for (int base = 0; base < blocks; base += 4) {
            const bool last = base + 4 >= blocks;
            const int b = base + mine < blocks ? base + mine : blocks - 1;
            float value;
            if constexpr (GroupBlocks<Weights>::kAhead) {
                const GroupBlocks<Weights> current = item;
                if (!last) {
                    item.load(group, (b + 4 < blocks ? b + 4 : blocks - 1) * Weights::kBytes, l);
                } else if (more) {
                    item.load(next_group, (mine < blocks ? mine : blocks - 1) * Weights::kBytes, l);
                }
                value = value_of(current, b, l, x);
            } else {
                item.load(group, b * Weights::kBytes, l);
                value = value_of(item, b, l, x);
            }
            accumulator = accumulator + (base + mine < blocks ? value : 0.0F);
        }
        accumulator = accumulator + shuffle_xor(accumulator, 16);
        accumulator = accumulator + shuffle_xor(accumulator, 8);
        finish(number, accumulator);
        if (!more) return;
        number += step;
        group = next_group;
    }
}

// The first four superblocks of group `number`, if there is one, and the rest of it towards the cache.
template <class Weights, class Locate>
HR_DEVICE void begin_groups(int number, int count, int blocks, GroupBlocks<Weights>& item, Locate locate) {
    if (number >= count) return;
    const RowGroup group = locate(number);
    const int mine = lane() >> 3;
    if constexpr (GroupBlocks<Weights>::kAhead) item.load(group, (mine < blocks ? mine : blocks - 1) * Weights::kBytes, lane() & 7);
    if (blocks > 4 || !GroupBlocks<Weights>::kAhead) prefetch_group<Weights>(group, blocks);
}

// Shared memory for the quantized form of n elements in groups of 256 (row_bytes of shapes.h says how much).
HR_DEVICE Quantized take_groups_256(unsigned char* from, int n) {
    auto* codes = reinterpret_cast<std::int8_t*>(from);
    auto* scales = reinterpret_cast<float*>(codes + n);
    return {codes, scales, reinterpret_cast<std::int16_t*>(scales + (n / 256 + 3) / 4 * 4)};
}

}  // namespace headroom::device
