#pragma once

// Products of two rows of weights with one to eight tokens, by one warp: the heart of decoding. docs/arithmetic.md has the order of the
// additions; every type and every number of tokens keeps it.

#include "kernels/quants.h"
#include "kernels/shares.h"

namespace headroom::device {

using gguf::TensorType;

// Up to T neighbouring rows of activations: as products read them, in global or in shared memory.
template <int T>
struct Inputs {
    const float* x;  // floats for float weights
    Quantized groups_256;
    Quantized groups_32;
    int cols;
    int last;  // the last row there is, at most T - 1; those behind it are read as this one

    HR_DEVICE int row(int t) const { return T == 1 || t < last ? t : last; }
};

// The groups that begin with element `at` of all rows (a multiple of the groups' width).
HR_DEVICE Quantized from(const Quantized& groups, std::int64_t at, int width) {
    if (groups.codes == nullptr) return groups;
    return {groups.codes + at, groups.scales + at / width, groups.sums + at / 16};
}

// What a lane has of a warp's results: the products of both rows with the token that is its own.
struct Pair {
    float first, second;
};
// The lane's own token, and whether it is the one lane to store its products.
template <int T>
HR_DEVICE int own_token() {
    return T == 1 ? 0 : T == 2 ? (lane() >> 1) & 1 : T == 4 ? lane() & 3 : lane() & 7;
}
template <int T>
HR_DEVICE bool stores_own(const Inputs<T>& x) {
    return (T == 1 ? lane() == 0 : T == 2 ? lane() == 0 || lane() == 2 : lane() < T) && own_token<T>() <= x.last;
}

// The value, in a way that keeps the compiler from working out ahead of a loop, for each of fifteen types, what follows from it: that would
// need far more registers than any one of them.
HR_DEVICE int unforeseen(int value) {
#if defined(HR_HIP)
    asm volatile("" : "+v"(value));
#else
    asm volatile("" : "+r"(value));
#endif
    return value;
}

// The lanes' sums of N values over a group of 8 lanes. With N of 2 or more each lane keeps N / 8 of them, at least one: lane l of the group
// has sum l * N / 8.
template <int N>
HR_DEVICE int sum_of_8(const int (&v)[N], int l, int mask = 4) {
    if constexpr (N == 1) {
        int sum = v[0];
        for (; mask > 0; mask >>= 1) sum += shuffle_xor(sum, mask);
        return sum;
    } else {
        const bool upper = (l & mask) != 0;
        int kept[N / 2];
        HR_UNROLL
        for (int i = 0; i < N / 2; ++i) kept[i] = (upper ? v[i + N / 2] : v[i]) + shuffle_xor(upper ? v[i] : v[i + N / 2], mask);
        return sum_of_8(kept, l, mask >> 1);
    }
}

HR_DEVICE int dot_16(const int (&q)[4], const Words4& x, int start) {
    int sum = start;
    HR_UNROLL
    for (int i = 0; i < 4; ++i) sum = dot4(q[i], x.w[i], sum);
    return sum;
}

// 256-wide superblocks: 8 lanes to each, four at a time; group g of lanes adds into accumulator g.
template <class Weights, int T>
HR_DEVICE Pair dot_superblocks(const std::uint8_t* const (&rows)[2], const Inputs<T>& x) {
    // Four tokens at a time: with two rows eight sums, one for each lane of a group. Set by set a lane keeps row l / 4 and token l mod 4 (or
    // l / 2 mod 2, or 0).
    constexpr int kSets = T == 8 ? 2 : 1;
    constexpr int kTokens = T / kSets;
    const int in_warp = unforeseen(lane());
    const int l = in_warp & 7, group = in_warp >> 3;
    const int blocks = x.cols / 256;
    const bool second = l >= 4;
    float accumulators[kSets] = {};

    for (int base = 0; base < blocks; base += 4) {
        const int b = base + group < blocks ? base + group : blocks - 1;
        typename Weights::Raw raw[2];
        HR_UNROLL
        for (int r = 0; r < 2; ++r) raw[r] = Weights::load(rows[r] + static_cast<std::int64_t>(b) * Weights::kBytes, l);
        const std::uint32_t halves = second ? Weights::factors(raw[1]) : Weights::factors(raw[0]);
        Share first, other;  // of both rows
        HR_UNROLL
        for (int set = 0; set < kSets; ++set) {
            int products[2 * kTokens];
            int minima[2 * kTokens];
            const auto multiply = [&](const Share& w, int i, const Words4(&codes)[2], const int(&sums)[2]) {
                products[i] = w.scale[0] * dot_16(w.q[0], codes[0], -Weights::kBias * sums[0]) +
                              w.scale[1] * dot_16(w.q[1], codes[1], -Weights::kBias * sums[1]);
                if constexpr (Weights::kMinima) minima[i] = w.minimum[0] * sums[0] + w.minimum[1] * sums[1];
            };
            const auto load = [&](int t, Words4(&codes)[2], int(&sums)[2]) {
                const int at = x.row(set * kTokens + t) * x.cols + b * 256;
                HR_UNROLL
                for (int c = 0; c < 2; ++c) {
                    codes[c] = load_16(x.groups_256.codes + at + Weights::offset(l, c));
                    sums[c] = Weights::kMinima || Weights::kBias != 0 ? x.groups_256.sums[(at + Weights::offset(l, c)) / 16] : 0;
                }
            };
            if constexpr (T <= 2) {
                // The tokens are kept and the rows taken apart one after the other; with more tokens it is the other way round.
                Words4 codes[T][2];
                int sums[T][2];
                HR_UNROLL
                for (int t = 0; t < T; ++t) load(t, codes[t], sums[t]);
                Weights::unpack(raw[0], l, first);
                HR_UNROLL
                for (int t = 0; t < T; ++t) multiply(first, t, codes[t], sums[t]);
                Weights::unpack(raw[1], l, other);
                HR_UNROLL
                for (int t = 0; t < T; ++t) multiply(other, T + t, codes[t], sums[t]);
            } else {
                if (set == 0) {
                    Weights::unpack(raw[0], l, first);
                    Weights::unpack(raw[1], l, other);
                }
                HR_UNROLL
                for (int t = 0; t < kTokens; ++t) {
                    Words4 codes[2];
                    int sums[2];
                    load(t, codes, sums);
                    multiply(first, t, codes, sums);
                    multiply(other, kTokens + t, codes, sums);
                }
            }
            const int token = T == 8 ? set * kTokens + (l & 3) : own_token<T>();
            const float scale = x.groups_256.scales[x.row(token) * blocks + b];
            const auto product = static_cast<float>(sum_of_8(products, l));
            float value;
            if constexpr (Weights::kMinima) {
                const auto minimum = static_cast<float>(sum_of_8(minima, l));
                value = scale * fma(low_half(halves), product, -(high_half(halves) * minimum));
            } else {
                value = scale * (low_half(halves) * product);
            }
            if (base + group < blocks) accumulators[set] = accumulators[set] + value;
        }
    }
    HR_UNROLL
    for (int set = 0; set < kSets; ++set) {
        accumulators[set] = accumulators[set] + shuffle_xor(accumulators[set], 16);
        accumulators[set] = accumulators[set] + shuffle_xor(accumulators[set], 8);
    }
    // The lane's own token is of its own row's half of the group, or, with 8 tokens, of the set that is named after it.
    const float mine = T == 8 && second ? accumulators[kSets - 1] : accumulators[0];
    const float others = shuffle_xor(T == 8 && second ? accumulators[0] : accumulators[kSets - 1], 4);
    return {second ? others : mine, second ? mine : others};
}

// Every lane has every sum and picks those of its own token.
template <int T>
HR_DEVICE Pair pair_of(const float (&sums)[2][T]) {
    Pair pair = {sums[0][0], sums[1][0]};
    HR_UNROLL
    for (int t = 1; t < T; ++t) {
        const float first = sums[0][t], second = sums[1][t];
        pair.first = own_token<T>() == t ? first : pair.first;
        pair.second = own_token<T>() == t ? second : pair.second;
    }
    return pair;
}

// 32-wide blocks: a lane to each. Lane l then adds up those of accumulator l mod 4, in ascending order.
template <class Weights, int T>
HR_DEVICE Pair dot_blocks(const std::uint8_t* const (&rows)[2], const Inputs<T>& x) {
    const int blocks = x.cols / 32;
    const int in_warp = unforeseen(lane());
    const int flip = (in_warp >> 2) & 1;  // which half is read first: see offset in quants.h
    constexpr int kSets = T == 8 ? 2 : 1;  // four tokens at a time: registers are short
    constexpr int kTokens = T / kSets;
    float sums[2][T] = {};
    for (int base = 0; base < blocks; base += 32) {
        const bool there = base + in_warp < blocks;
        const int b = there ? base + in_warp : blocks - 1;
        Share w[2];
        float d[2], m[2];
        HR_UNROLL
        for (int r = 0; r < 2; ++r) {
            const typename Weights::Raw raw = Weights::load(rows[r] + static_cast<std::int64_t>(b) * Weights::kBytes, 0);
            Weights::unpack(raw, 0, w[r]);
            d[r] = low_half(Weights::factors(raw));
            m[r] = Weights::kMinima ? high_half(Weights::factors(raw)) : 0.0F;
        }
        HR_UNROLL
        for (int set = 0; set < kSets; ++set) {
            float values[2][kTokens];
            HR_UNROLL
            for (int t = 0; t < kTokens; ++t) {
                const int at = x.row(set * kTokens + t) * x.cols + b * 32;
                const Words4 one = load_16(x.groups_32.codes + at + 16 * flip), two = load_16(x.groups_32.codes + at + 16 * (flip ^ 1));
                Words4 codes[2];
                HR_UNROLL
                for (int i = 0; i < 4; ++i) {
                    codes[0].w[i] = flip != 0 ? two.w[i] : one.w[i];
                    codes[1].w[i] = flip != 0 ? one.w[i] : two.w[i];
                }
                const float scale = x.groups_32.scales[at / 32];
                const int sum = Weights::kMinima || Weights::kBias != 0 ? x.groups_32.sums[at / 16] + x.groups_32.sums[at / 16 + 1] : 0;
                HR_UNROLL
                for (int r = 0; r < 2; ++r) {
                    const auto product = static_cast<float>(dot_16(w[r].q[1], codes[1], dot_16(w[r].q[0], codes[0], -Weights::kBias * sum)));
                    const float value = Weights::kMinima ? scale * fma(d[r], product, m[r] * static_cast<float>(sum)) : (d[r] * scale) * product;
                    values[r][t] = there ? value : 0.0F;
                }
            }
            HR_UNROLL
            for (int i = 0; i < 8; ++i) {
                HR_UNROLL
                for (int t = 0; t < kTokens; ++t) {
                    HR_UNROLL
                    for (int r = 0; r < 2; ++r) {
                        float& sum = sums[r][set * kTokens + t];
                        sum = sum + shuffle(values[r][t], 4 * i + (in_warp & 3));
                    }
                }
            }
        }
    }
    HR_UNROLL
    for (int t = 0; t < T; ++t) {
        HR_UNROLL
        for (int r = 0; r < 2; ++r) {
            sums[r][t] = sums[r][t] + shuffle_xor(sums[r][t], 2);
            sums[r][t] = sums[r][t] + shuffle_xor(sums[r][t], 1);
        }
    }
    return pair_of<T>(sums);
}

// Float weights: a lane to each of the 32 accumulators.
template <TensorType type, int T>
HR_DEVICE Pair dot_floats(const std::uint8_t* const (&rows)[2], const Inputs<T>& x) {
    float sums[2][T] = {};
#pragma unroll 4
    for (int k = unforeseen(lane()); k < x.cols; k += kWarp) {
        float w[2];
        HR_UNROLL
        for (int r = 0; r < 2; ++r) {
            if constexpr (type == TensorType::f32) w[r] = reinterpret_cast<const float*>(rows[r])[k];
            if constexpr (type == TensorType::f16) w[r] = half_to_float(reinterpret_cast<const std::uint16_t*>(rows[r])[k]);
            if constexpr (type == TensorType::bf16) w[r] = bfloat_to_float(reinterpret_cast<const std::uint16_t*>(rows[r])[k]);
        }
        HR_UNROLL
        for (int t = 0; t < T; ++t) {
            const float value = x.x[x.row(t) * x.cols + k];
            HR_UNROLL
            for (int r = 0; r < 2; ++r) sums[r][t] = fma(w[r], value, sums[r][t]);
        }
    }
    HR_UNROLL
    for (int t = 0; t < T; ++t) {
        HR_UNROLL
        for (int r = 0; r < 2; ++r) sums[r][t] = fold_32(sums[r][t]);
    }
    return pair_of<T>(sums);
}

// The products of two rows of weights of one type.
template <int T>
HR_DEVICE Pair dot_rows(std::uint32_t type, const std::uint8_t* first, const std::uint8_t* second, const Inputs<T>& x) {
    const std::uint8_t* const rows[2] = {first, second};
    switch (static_cast<TensorType>(type)) {
        case TensorType::f32: return dot_floats<TensorType::f32, T>(rows, x);
        case TensorType::f16: return dot_floats<TensorType::f16, T>(rows, x);
        case TensorType::bf16: return dot_floats<TensorType::bf16, T>(rows, x);
        case TensorType::q4_0: return dot_blocks<WeightsQ40, T>(rows, x);
        case TensorType::q4_1: return dot_blocks<WeightsQ41, T>(rows, x);
        case TensorType::q5_0: return dot_blocks<WeightsQ50, T>(rows, x);
        case TensorType::q5_1: return dot_blocks<WeightsQ51, T>(rows, x);
        case TensorType::q8_0: return dot_blocks<WeightsQ80, T>(rows, x);
        case TensorType::iq4_nl: return dot_blocks<WeightsIq4Nl, T>(rows, x);
        case TensorType::q2_k: return dot_superblocks<WeightsQ2K, T>(rows, x);
        case TensorType::q3_k: return dot_superblocks<WeightsQ3K, T>(rows, x);
        case TensorType::q4_k: return dot_superblocks<WeightsQ4K, T>(rows, x);
        case TensorType::q5_k: return dot_superblocks<WeightsQ5K, T>(rows, x);
        case TensorType::q6_k: return dot_superblocks<WeightsQ6K, T>(rows, x);
        default: return dot_superblocks<WeightsIq4Xs, T>(rows, x);
    }
}

// The products of two rows of weights, of whatever types; they may be the same row. All lanes of the warp come here.
template <int T>
HR_DEVICE Pair dot_pair(std::uint32_t first_type, const std::uint8_t* first, std::uint32_t second_type, const std::uint8_t* second,
                        const Inputs<T>& x) {
    // Rows of different types are read one after the other, each as if there were two of it: rare, and the code is there only once.
    const bool alike = first_type == second_type;
    Pair pair = {};
    for (int pass = 0; pass < (alike ? 1 : 2); ++pass) {
        const Pair found = dot_rows<T>(pass == 0 ? first_type : second_type, pass == 0 ? first : second, pass == 0 && !alike ? first : second, x);
        if (pass == 0) pair.first = found.first;
        pair.second = found.second;
    }
    return pair;
}

// Asks for memory that will be read soon, so that it comes while something else is done. All lanes of the warp come here.
HR_DEVICE void prefetch(const std::uint8_t* from, std::int64_t bytes) {
#if defined(HR_CUDA)
    for (std::int64_t i = lane() * 128; i < bytes; i += kWarp * 128) asm volatile("prefetch.global.L2 [%0];" ::"l"(from + i));
#else
    (void)from, (void)bytes;
#endif
}

}  // namespace headroom::device
