#pragma once

// Decoding one token: products of one row of activations with weights of one type of 256-wide superblocks, known at compile time. What
// dot.h does for any types and several tokens, here with the next blocks of weights always on the way while the current ones are multiplied.
// The order of the additions is the same.

#include "kernels/dot.h"

namespace headroom::device {

// Two rows that a warp multiplies.
struct RowPair {
    const std::uint8_t* rows[2];
};

// What a lane holds of four neighbouring superblocks of both rows.
template <class Weights>
struct PairBlocks {
    typename Weights::Raw raw[2];

    HR_DEVICE void load(const RowPair& pair, int base, int blocks) {
        const int l = lane() & 7, group = lane() >> 3;
        const int b = base + group < blocks ? base + group : blocks - 1;
        HR_UNROLL
        for (int r = 0; r < 2; ++r) raw[r] = Weights::load(pair.rows[r] + static_cast<std::int64_t>(b) * Weights::kBytes, l);
    }
};

// The value of the lane's group's superblock: of the first row in lanes 0 to 3 of the group, of the second in the others. x: in shared memory.
template <class Weights>
HR_DEVICE float value_of(const PairBlocks<Weights>& item, int base, int blocks, const Quantized& x) {
    const int l = lane() & 7, group = lane() >> 3;
    const int b = base + group < blocks ? base + group : blocks - 1;
    Words4 codes[2];
    int sums[2];
    HR_UNROLL
    for (int c = 0; c < 2; ++c) {
        const int at = b * 256 + Weights::offset(l, c);
        codes[c] = load_16(x.codes + at);
        sums[c] = Weights::kMinima || Weights::kBias != 0 ? x.sums[at / 16] : 0;
    }
    int products[2], minima[2];
    HR_UNROLL
    for (int r = 0; r < 2; ++r) {
        Share w;
        Weights::unpack(item.raw[r], l, w);
        products[r] = w.scale[0] * dot_16(w.q[0], codes[0], -Weights::kBias * sums[0]) + w.scale[1] * dot_16(w.q[1], codes[1], -Weights::kBias * sums[1]);
        if constexpr (Weights::kMinima) minima[r] = w.minimum[0] * sums[0] + w.minimum[1] * sums[1];
    }
    const std::uint32_t halves = l >= 4 ? Weights::factors(item.raw[1]) : Weights::factors(item.raw[0]);
    const auto product = static_cast<float>(sum_of_8(products, l));
    const float scale = x.scales[b];
    float value;
    if constexpr (Weights::kMinima) {
        const auto minimum = static_cast<float>(sum_of_8(minima, l));
        value = scale * fma(low_half(halves), product, -(high_half(halves) * minimum));
    } else {
        value = scale * (low_half(halves) * product);
    }
    return base + group < blocks ? value : 0.0F;
}

// The pairs number, number + step, … below `count`: locate(n) says which rows pair n is, finish(n, products) gets its two products, which are
// right in lane 0. item: the first four superblocks of the first pair, if there is one. x: the quantized row, of `blocks` superblocks.
template <class Weights, class Locate, class Finish>
HR_DEVICE void multiply_pairs(int number, int step, int count, int blocks, PairBlocks<Weights>& item, const Quantized& x, Locate locate, Finish finish) {
    if (number >= count) return;
    RowPair pair = locate(number);
    for (;;) {
        float accumulator = 0;
        RowPair next_pair = pair;
        for (int base = 0; base < blocks; base += 4) {
            const bool last = base + 4 >= blocks;
            if (last && number + step < count) next_pair = locate(number + step);
            PairBlocks<Weights> next = item;
            if (!last || number + step < count) next.load(next_pair, last ? 0 : base + 4, blocks);
            accumulator = accumulator + value_of(item, base, blocks, x);
            item = next;
        }
        accumulator = accumulator + shuffle_xor(accumulator, 16);
        accumulator = accumulator + shuffle_xor(accumulator, 8);
        finish(number, Pair{accumulator, shuffle_xor(accumulator, 4)});
        number += step;
        if (number >= count) return;
        pair = next_pair;
    }
}

// Shared memory for the quantized form of n elements in groups of 256 (row_bytes of row.cpp says how much).
HR_DEVICE Quantized take_groups_256(unsigned char* from, int n) {
    auto* codes = reinterpret_cast<std::int8_t*>(from);
    auto* scales = reinterpret_cast<float*>(codes + n);
    return {codes, scales, reinterpret_cast<std::int16_t*>(scales + (n / 256 + 3) / 4 * 4)};
}

}  // namespace headroom::device
