#pragma once

// Decoding one token: products of one row of activations with weights of one type of 256-wide superblocks, known at compile time. What
// dot.h does for any types and several tokens, with fewer registers, so that many warps wait for their weights at once, and the next rows on
// their way to the cache. The order of the additions is the same.

#include "kernels/dot.h"

namespace headroom::device {

// The rows that a warp multiplies together: 8 lanes to a superblock, four superblocks of each row at a time. Of a row's sum over the 8 lanes
// kLanes of them have a copy: those of row r begin with lane r * kLanes.
inline constexpr int kRows = 2;
inline constexpr int kLanes = 8 / kRows;
struct RowGroup {
    const std::uint8_t* rows[kRows];
};

// What a lane holds of four neighbouring superblocks of all rows.
template <class Weights>
struct GroupBlocks {
    typename Weights::Raw raw[kRows];

    // offset: where the lane's superblock begins in its row.
    HR_DEVICE void load(const RowGroup& group, int offset, int l) {
        HR_UNROLL
        for (int r = 0; r < kRows; ++r) raw[r] = Weights::template load<true>(group.rows[r] + offset, l);
    }
};

// Starts the way of four superblocks of both rows, from block `first` on, from the memory to the second-level cache. A warp keeps a few of these
// steps ahead of itself: whole rows of all warps would not fit the cache together.
template <class Weights>
HR_DEVICE void prefetch_step(const RowGroup& group, int first, int blocks) {
#if defined(HR_CUDA)
    static_assert(kRows == 2 && 4 * Weights::kBytes <= 16 * 128);
    const std::uint8_t* row = lane() < 16 ? group.rows[0] : group.rows[1];
    const int at = first * Weights::kBytes + (lane() & 15) * 128;
    if (at < (first + 4 < blocks ? first + 4 : blocks) * Weights::kBytes) asm volatile("prefetch.global.L2 [%0];" ::"l"(row + at));
#else
    (void)group, (void)first, (void)blocks;
#endif
}
inline constexpr int kStepsAhead = 2;

// The value of superblock b: of row l / kLanes in lane l of the 8 lanes that share it. x: in shared memory.
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
    const std::uint32_t halves = l >= kLanes ? Weights::factors(item.raw[1]) : Weights::factors(item.raw[0]);
    const auto product = static_cast<float>(sum_of_8(products, l));
    const float scale = x.scales[b];
    if constexpr (Weights::kMinima) {
        const auto minimum = static_cast<float>(sum_of_8(minima, l));
        return scale * fma(low_half(halves), product, -(high_half(halves) * minimum));
    } else {
        return scale * (low_half(halves) * product);
    }
}

// The groups number, number + step, … below `count`: locate(n) says which rows group n is, finish(n, product) gets the product of row
// l / kLanes in lane l, l below 8. x(n): the quantized row that group n is multiplied with, of `blocks` superblocks.
template <class Weights, class Locate, class Input, class Finish>
HR_DEVICE void multiply_groups(int number, int step, int count, int blocks, Input x, Locate locate, Finish finish) {
    if (number >= count) return;
    const int l = lane() & 7, mine = lane() >> 3;
    RowGroup group = locate(number);
    for (;;) {
        float accumulator = 0;
        const bool more = number + step < count;
        const RowGroup next_group = more ? locate(number + step) : group;
        const Quantized row = x(number);
        for (int base = 0; base < blocks; base += 4) {
            const int ahead = base + 4 * (blocks > 4 ? kStepsAhead : 1), behind = (blocks + 3) / 4 * 4;
            if (ahead < behind) prefetch_step<Weights>(group, ahead, blocks);
            else if (more) prefetch_step<Weights>(next_group, ahead - behind, blocks);
            const int b = base + mine < blocks ? base + mine : blocks - 1;
            GroupBlocks<Weights> item;
            item.load(group, b * Weights::kBytes, l);
            const float value = value_of(item, b, l, row);
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

// The first steps of group `number`, if there is one, towards the cache.
template <class Weights, class Locate>
HR_DEVICE void begin_groups(int number, int count, int blocks, Locate locate) {
    if (number >= count) return;
    const RowGroup group = locate(number);
    for (int i = 0; i < kStepsAhead && 4 * i < blocks; ++i) prefetch_step<Weights>(group, 4 * i, blocks);
}

// A group of rows that kWarps neighbouring warps of a block multiply together, each with every fourth superblock, of which a row has at most kMostBlocks: where groups are so few. All
// that a lane needs of them is on its way at once.
template <class Weights>
struct SharedGroup {
    static constexpr int kWarps = 4, kMostBlocks = 4 * kWarps;
    GroupBlocks<Weights> item;
    int blocks, block;

    HR_DEVICE static bool takes(int groups, int all_warps, int of_row) { return kWarps * groups <= all_warps && of_row <= kMostBlocks; }
    HR_DEVICE static int number() { return warp() / kWarps * grid_x() + block_x(); }
    HR_DEVICE void load(const RowGroup& group, int of_row) {
        blocks = of_row;
        block = lane() / 8 * kWarps + warp() % kWarps;
        item.load(group, (block < blocks ? block : blocks - 1) * Weights::kBytes, lane() & 7);
    }
    // The warp's part of the product of row l / kLanes in lane l, l below 8: what multiply_groups has in lanes 8 (warp % 4) … before it adds them up.
    HR_DEVICE float part(const Quantized& x) const {
        const int l = lane() & 7;
        const float product = value_of(item, block < blocks ? block : blocks - 1, l, x), value = block < blocks ? product : 0.0F;
        float accumulator = 0;
        HR_UNROLL
        for (int step = 0; step < 4; ++step) {
            const float next = shuffle(value, step * 8 + l);
            if (step * kWarps < blocks) accumulator = accumulator + next;
        }
        return accumulator;
    }
};

// Shared memory for the quantized form of n elements in groups of 256 (row_bytes of shapes.h says how much).
HR_DEVICE Quantized take_groups_256(unsigned char* from, int n) {
    auto* codes = reinterpret_cast<std::int8_t*>(from);
    auto* scales = reinterpret_cast<float*>(codes + n);
    return {codes, scales, reinterpret_cast<std::int16_t*>(scales + (n / 256 + 3) / 4 * 4)};
}

}  // namespace headroom::device
