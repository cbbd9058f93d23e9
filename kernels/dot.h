#pragma once

// Products of pairs of rows of weights with one to eight tokens, by one warp: the heart of decoding. docs/arithmetic.md has the order of the
// additions; every type and every number of tokens keeps it.
//
// A warp walks over units, each a pair of rows: number `unit`, then every `step`-th, below `units`. rows(unit, pair) tells where they are,
// emit(unit, products) takes what comes out; all lanes of the warp go into both.

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

// Asks for memory that will be read soon, so that it comes while something else is done. All lanes of the warp come here.
HR_DEVICE void prefetch(const std::uint8_t* from, int bytes) {
#if defined(HR_CUDA)
    for (int i = lane() * 128; i < bytes; i += kWarp * 128) asm volatile("prefetch.global.L2 [%0];" ::"l"(from + i));
#else
    (void)from, (void)bytes;
#endif
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

// The lane, in a way that keeps the compiler from working out, for each of fifteen types and before it knows which one is needed, what follows
// from it: that would take far more registers than any one of them.
HR_DEVICE int unforeseen_lane() {
    int value = lane();
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
template <class Weights, int T, class Rows, class Emit>
HR_DEVICE void run_superblocks(const Inputs<T>& x, int unit, int step, int units, Rows rows, Emit emit) {
    // Four tokens at a time: with two rows eight sums, one for each lane of a group. Set by set a lane keeps row l / 4 and token l mod 4 (or
    // l / 2 mod 2, or 0).
    constexpr int kSets = T == 8 ? 2 : 1;
    constexpr int kTokens = T / kSets;
    // The next weights are fetched while these are used, where registers suffice; elsewhere the next rows come nearer.
    constexpr bool kAhead = T <= 2 && sizeof(typename Weights::Raw) <= 32;
    const int own = unforeseen_lane();
    const int l = own & 7, group = own >> 3;
    const int blocks = x.cols / 256;
    const int first_block = group < blocks ? group : blocks - 1;
    const bool second = l >= 4;
    typename Weights::Raw raw[2];
    const auto load = [&](const std::uint8_t* const(&from)[2], int b) {
        HR_UNROLL
        for (int r = 0; r < 2; ++r) raw[r] = Weights::load(from[r] + b * Weights::kBytes, l);
    };

    if (unit >= units) return;
    const std::uint8_t* at[2];
    rows(unit, at);
    if (kAhead) load(at, first_block);
    while (unit < units) {
        const int next = unit + step;
        const std::uint8_t* next_at[2] = {at[0], at[1]};
        if (next < units) {
            rows(next, next_at);
            if (!kAhead) {
                prefetch(next_at[0], blocks * Weights::kBytes);
                prefetch(next_at[1], blocks * Weights::kBytes);
            }
        }
        float accumulators[kSets] = {};
        for (int base = 0; base < blocks; base += 4) {
            const int b = base + group < blocks ? base + group : blocks - 1;
            if (!kAhead) load(at, b);
            Share one, other;  // of both rows
            Weights::unpack(raw[0], l, one);
            Weights::unpack(raw[1], l, other);
            const std::uint32_t halves = second ? Weights::factors(raw[1]) : Weights::factors(raw[0]);
            if (kAhead) {
                if (base + 4 < blocks) {
                    load(at, base + 4 + group < blocks ? base + 4 + group : blocks - 1);
                } else {
                    load(next_at, first_block);
                }
            }
            HR_UNROLL
            for (int set = 0; set < kSets; ++set) {
                int products[2 * kTokens];
                int minima[2 * kTokens];
                HR_UNROLL
                for (int t = 0; t < kTokens; ++t) {
                    const int from = x.row(set * kTokens + t) * x.cols + b * 256;
                    Words4 codes[2];
                    int sums[2];
                    HR_UNROLL
                    for (int c = 0; c < 2; ++c) {
                        codes[c] = load_16(x.groups_256.codes + from + Weights::offset(l, c));
                        sums[c] = Weights::kMinima || Weights::kBias != 0 ? x.groups_256.sums[(from + Weights::offset(l, c)) / 16] : 0;
                    }
                    const auto multiply = [&](const Share& w, int i) {
                        products[i] = w.scale[0] * dot_16(w.q[0], codes[0], -Weights::kBias * sums[0]) +
                                      w.scale[1] * dot_16(w.q[1], codes[1], -Weights::kBias * sums[1]);
                        if constexpr (Weights::kMinima) minima[i] = w.minimum[0] * sums[0] + w.minimum[1] * sums[1];
                    };
                    multiply(one, t);
                    multiply(other, kTokens + t);
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
        emit(unit, Pair{second ? others : mine, second ? mine : others});
        unit = next;
        at[0] = next_at[0];
        at[1] = next_at[1];
    }
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
template <class Weights, int T, class Rows, class Emit>
HR_DEVICE void run_blocks(const Inputs<T>& x, int unit, int step, int units, Rows rows, Emit emit) {
    constexpr int kSets = T == 8 ? 2 : 1;  // four tokens at a time: registers are short
    constexpr int kTokens = T / kSets;
    const int blocks = x.cols / 32;
    const int own = unforeseen_lane();
    const int flip = (own >> 2) & 1;  // which half is read first: see offset in quants.h
    for (; unit < units; unit += step) {
        const std::uint8_t* at[2];
        rows(unit, at);
        float sums[2][T] = {};
        for (int base = 0; base < blocks; base += 32) {
            const bool there = base + own < blocks;
            const int b = there ? base + own : blocks - 1;
            Share w[2];
            float d[2], m[2];
            HR_UNROLL
            for (int r = 0; r < 2; ++r) {
                const typename Weights::Raw raw = Weights::load(at[r] + b * Weights::kBytes, 0);
                Weights::unpack(raw, 0, w[r]);
                d[r] = low_half(Weights::factors(raw));
                m[r] = Weights::kMinima ? high_half(Weights::factors(raw)) : 0.0F;
            }
            HR_UNROLL
            for (int set = 0; set < kSets; ++set) {
                float values[2][kTokens];
                HR_UNROLL
                for (int t = 0; t < kTokens; ++t) {
                    const int from = x.row(set * kTokens + t) * x.cols + b * 32;
                    const Words4 early = load_16(x.groups_32.codes + from + 16 * flip), late = load_16(x.groups_32.codes + from + 16 * (flip ^ 1));
                    Words4 codes[2];
                    HR_UNROLL
                    for (int i = 0; i < 4; ++i) {
                        codes[0].w[i] = flip != 0 ? late.w[i] : early.w[i];
                        codes[1].w[i] = flip != 0 ? early.w[i] : late.w[i];
                    }
                    const float scale = x.groups_32.scales[from / 32];
                    const int sum = Weights::kMinima || Weights::kBias != 0 ? x.groups_32.sums[from / 16] + x.groups_32.sums[from / 16 + 1] : 0;
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
                            sum = sum + shuffle(values[r][t], 4 * i + (own & 3));
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
        emit(unit, pair_of<T>(sums));
    }
}

// Float weights: a lane to each of the 32 accumulators.
template <TensorType type, int T, class Rows, class Emit>
HR_DEVICE void run_floats(const Inputs<T>& x, int unit, int step, int units, Rows rows, Emit emit) {
    // Loads of several steps are under way at once; more tokens bring more of their own.
    [[maybe_unused]] constexpr int kSteps = T == 1 ? 16 : 4;
    const int own = unforeseen_lane();
    for (; unit < units; unit += step) {
        const std::uint8_t* at[2];
        rows(unit, at);
        float sums[2][T] = {};
#pragma unroll kSteps
        for (int k = own; k < x.cols; k += kWarp) {
            float w[2];
            HR_UNROLL
            for (int r = 0; r < 2; ++r) {
                if constexpr (type == TensorType::f32) w[r] = reinterpret_cast<const float*>(at[r])[k];
                if constexpr (type == TensorType::f16) w[r] = half_to_float(reinterpret_cast<const std::uint16_t*>(at[r])[k]);
                if constexpr (type == TensorType::bf16) w[r] = bfloat_to_float(reinterpret_cast<const std::uint16_t*>(at[r])[k]);
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
        emit(unit, pair_of<T>(sums));
    }
}

// The units of a matrix of any type.
template <int T, class Rows, class Emit>
HR_DEVICE void run_units(std::uint32_t type, const Inputs<T>& x, int unit, int step, int units, Rows rows, Emit emit) {
    switch (static_cast<TensorType>(type)) {
        case TensorType::f32: return run_floats<TensorType::f32>(x, unit, step, units, rows, emit);
        case TensorType::f16: return run_floats<TensorType::f16>(x, unit, step, units, rows, emit);
        case TensorType::bf16: return run_floats<TensorType::bf16>(x, unit, step, units, rows, emit);
        case TensorType::q4_0: return run_blocks<WeightsQ40>(x, unit, step, units, rows, emit);
        case TensorType::q4_1: return run_blocks<WeightsQ41>(x, unit, step, units, rows, emit);
        case TensorType::q5_0: return run_blocks<WeightsQ50>(x, unit, step, units, rows, emit);
        case TensorType::q5_1: return run_blocks<WeightsQ51>(x, unit, step, units, rows, emit);
        case TensorType::q8_0: return run_blocks<WeightsQ80>(x, unit, step, units, rows, emit);
        case TensorType::iq4_nl: return run_blocks<WeightsIq4Nl>(x, unit, step, units, rows, emit);
        case TensorType::q2_k: return run_superblocks<WeightsQ2K>(x, unit, step, units, rows, emit);
        case TensorType::q3_k: return run_superblocks<WeightsQ3K>(x, unit, step, units, rows, emit);
        case TensorType::q4_k: return run_superblocks<WeightsQ4K>(x, unit, step, units, rows, emit);
        case TensorType::q5_k: return run_superblocks<WeightsQ5K>(x, unit, step, units, rows, emit);
        case TensorType::q6_k: return run_superblocks<WeightsQ6K>(x, unit, step, units, rows, emit);
        default: return run_superblocks<WeightsIq4Xs>(x, unit, step, units, rows, emit);
    }
}

}  // namespace headroom::device
