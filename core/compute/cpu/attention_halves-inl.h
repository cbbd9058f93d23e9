// Attention's scores and outputs where keys and values are halves, once for each Highway target with kernels.

#if defined(HEADROOM_ATTENTION_HALVES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADROOM_ATTENTION_HALVES_INL
#undef HEADROOM_ATTENTION_HALVES_INL
#else
#define HEADROOM_ATTENTION_HALVES_INL
#endif

#include "core/compute/cpu/attention_sums-inl.h"

#if HEADROOM_KERNELS

HWY_BEFORE_NAMESPACE();
namespace headroom::cpu::HWY_NAMESPACE {

// Keeps the compiler from loading v again for each use: loads are what a tile of dot products has too many of.
HWY_INLINE VF in_register(VF v) {
    asm("" : "+v"(v.raw));
    return v;
}

constexpr int kSum16 = 16 / kLanes;  // vectors of 16 strided accumulators

// Dot products of Q queries with P neighbouring positions: 16 strided accumulators each.
template <int Q, int P>
HWY_INLINE void dot_tile(const Query* queries, const float* k, std::int64_t head_dim, VF (&sums)[Q][P][kSum16]) {
    HEADROOM_UNROLL
    for (int q = 0; q < Q; ++q) {
        HEADROOM_UNROLL
        for (int p = 0; p < P; ++p) {
            HEADROOM_UNROLL
            for (int j = 0; j < kSum16; ++j) sums[q][p][j] = hn::Zero(DF());
        }
    }
    for (std::int64_t d = 0; d < head_dim; d += 16) {
        HEADROOM_UNROLL
        for (int j = 0; j < kSum16; ++j) {
            VF keys[P];
            HEADROOM_UNROLL
            for (int p = 0; p < P; ++p) keys[p] = load(k + p * head_dim + d + j * kLanes);
            HEADROOM_UNROLL
            for (int q = 0; q < Q; ++q) {
                const VF query = in_register(load(queries[q].q + d + j * kLanes));
                HEADROOM_UNROLL
                for (int p = 0; p < P; ++p) sums[q][p][j] = hn::MulAdd(query, keys[p], sums[q][p][j]);
            }
        }
    }
}

// Neighbours added, within each 128-bit part: those of a, then those of b. Twice it leaves the sums of four to a part.
#if HWY_TARGET == HWY_AVX3_DL
HWY_INLINE __m512 add_neighbours(__m512 a, __m512 b) { return _mm512_add_ps(_mm512_shuffle_ps(a, b, 0x88), _mm512_shuffle_ps(a, b, 0xdd)); }
// The same with the parts themselves.
HWY_INLINE __m512 add_parts(__m512 a, __m512 b) {
    return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
}
#else
HWY_INLINE __m256 add_neighbours(__m256 a, __m256 b) { return _mm256_add_ps(_mm256_shuffle_ps(a, b, 0x88), _mm256_shuffle_ps(a, b, 0xdd)); }
HWY_INLINE __m256 add_parts(__m256 a, __m256 b) {
    return _mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
}
#endif

// The scores of eight positions whose keys have been made floats, for Q queries. The last additions of the sums are turned so that no vector is
// folded alone.
constexpr int kKeysAtOnce = 8;
#if HWY_TARGET == HWY_AVX3_DL
template <int Q>
HWY_INLINE void score_keys(const Query* queries, const float* k, std::int64_t head_dim, float* scores) {
    constexpr int P = Q == 4 ? 4 : 8;
    for (int i = 0; i < kKeysAtOnce; i += P) {
        VF sums[Q][P][1];
        dot_tile<Q, P>(queries, k + i * head_dim, head_dim, sums);
        __m512 fours[Q * P / 4];  // part n of one: elements 4 n to 4 n + 3 of four neighbouring positions
        HEADROOM_UNROLL
        for (int f = 0; f < Q * P / 4; ++f) {
            const auto& four = sums[4 * f / P];
            const int p = 4 * f % P;
            fours[f] = add_neighbours(add_neighbours(four[p][0].raw, four[p + 1][0].raw), add_neighbours(four[p + 2][0].raw, four[p + 3][0].raw));
        }
        if constexpr (Q * P == 16) {
            const __m512 all = add_parts(add_parts(fours[0], fours[1]), add_parts(fours[2], fours[3]));
            if constexpr (Q == 4) {
                _mm_storeu_ps(scores + i, _mm512_castps512_ps128(all));
                _mm_storeu_ps(scores + kPagePositions + i, _mm512_extractf32x4_ps(all, 1));
                _mm_storeu_ps(scores + 2 * kPagePositions + i, _mm512_extractf32x4_ps(all, 2));
                _mm_storeu_ps(scores + 3 * kPagePositions + i, _mm512_extractf32x4_ps(all, 3));
            } else {
                _mm256_storeu_ps(scores, _mm512_castps512_ps256(all));
                _mm256_storeu_ps(scores + kPagePositions, _mm512_extractf32x8_ps(all, 1));
            }
        } else {
            const __m512 halves = add_parts(fours[0], fours[1]);
            _mm256_storeu_ps(scores, _mm512_castps512_ps256(add_parts(halves, halves)));
        }
    }
}
#else
// The sums of eight vectors. No lambda: on Windows GCC would not return a vector from one.
HWY_INLINE __m256 sum_of_each(const __m256 (&s)[kKeysAtOnce]) {
    return add_parts(add_neighbours(add_neighbours(s[0], s[1]), add_neighbours(s[2], s[3])),
                     add_neighbours(add_neighbours(s[4], s[5]), add_neighbours(s[6], s[7])));
}

// Q * P: four at a time, so that the sums fit the registers.
template <int Q>
HWY_INLINE void score_keys(const Query* queries, const float* k, std::int64_t head_dim, float* scores) {
    if constexpr (Q == 4) {
        for (int q = 0; q < 4; q += 2) score_keys<2>(queries + q, k, head_dim, scores + q * kPagePositions);
    } else {
        constexpr int P = 4 / Q;
        __m256 sums[2][Q][kKeysAtOnce];
        HEADROOM_UNROLL
        for (int i = 0; i < kKeysAtOnce; i += P) {
            VF tile[Q][P][2];
            dot_tile<Q, P>(queries, k + i * head_dim, head_dim, tile);
            HEADROOM_UNROLL
            for (int q = 0; q < Q; ++q) {
                HEADROOM_UNROLL
                for (int p = 0; p < P; ++p) {
                    sums[0][q][i + p] = tile[q][p][0].raw;
                    sums[1][q][i + p] = tile[q][p][1].raw;
                }
            }
        }
        HEADROOM_UNROLL
        for (int q = 0; q < Q; ++q) _mm256_storeu_ps(scores + q * kPagePositions, _mm256_add_ps(sum_of_each(sums[0][q]), sum_of_each(sums[1][q])));
    }
}
#endif
// Sums over positions [begin, end) of weights times V, for Q queries and N vectors of the head's width, entered into the outputs.
template <int Q, int N>
HWY_INLINE void value_tile(const PageSums* to, const std::uint16_t* v, std::int64_t head_dim, std::int64_t begin, std::int64_t end,
                           const float* weights, std::int64_t column) {
    const DF d;
    alignas(kCacheLine) float page[Q][N * kLanes] = {};
    for (std::int64_t strip = begin / kStripPositions; strip * kStripPositions < end; ++strip) {
        VF sums[Q][N];
        HEADROOM_UNROLL
        for (int q = 0; q < Q; ++q) {
            HEADROOM_UNROLL
            for (int n = 0; n < N; ++n) sums[q][n] = hn::Zero(d);
        }
        const std::int64_t first = std::max(begin, strip * kStripPositions), last = std::min(end, (strip + 1) * kStripPositions);
        const std::uint16_t* row = v + first * head_dim + column;
        for (std::int64_t i = first; i < last; ++i, row += head_dim) {
            VF values[N];
            HEADROOM_UNROLL
            for (int n = 0; n < N; ++n) values[n] = load_halves(row + n * kLanes);
            HEADROOM_UNROLL
            for (int q = 0; q < Q; ++q) {
                const VF weight = hn::Set(d, weights[q * kPagePositions + i]);
                HEADROOM_UNROLL
                for (int n = 0; n < N; ++n) sums[q][n] = hn::MulAdd(weight, values[n], sums[q][n]);
            }
        }
        HEADROOM_UNROLL
        for (int q = 0; q < Q; ++q) {
            const VF factor = hn::Set(d, to[q].strips.factors[strip]);
            HEADROOM_UNROLL
            for (int n = 0; n < N; ++n) store(hn::MulAdd(sums[q][n], factor, load(page[q] + n * kLanes)), page[q] + n * kLanes);
        }
    }
    HEADROOM_UNROLL
    for (int q = 0; q < Q; ++q) {
        HEADROOM_UNROLL
        for (int n = 0; n < N; ++n) {
            float* out = to[q].out + column + n * kLanes;
            store(rescaled(to[q].rescale, out, load(page[q] + n * kLanes)), out);
        }
    }
}

template <int Q>
HWY_INLINE void value_rows(const PageSums* to, const std::uint16_t* v, std::int64_t head_dim, std::int64_t begin, std::int64_t end,
                           const float* weights) {
    constexpr int kVectors = kLanes == 16 ? (Q == 4 ? 4 : 8) : (Q == 4 ? 2 : 4);
    std::int64_t column = 0;
    for (; column + kVectors * kLanes <= head_dim; column += kVectors * kLanes) {
        value_tile<Q, kVectors>(to, v, head_dim, begin, end, weights, column);
    }
    for (; column < head_dim; column += kLanes) value_tile<Q, 1>(to, v, head_dim, begin, end, weights, column);
}
// Wider heads go through the reference.
constexpr std::int64_t kMostHeadWidth = 512;

// The scores of positions [begin, end) of a page, and of others around them up to multiples of kKeysAtOnce, which mean nothing.
void score_page(const QueryBlock& block, int low, int high, const std::uint16_t* k, std::int64_t head_dim, std::int64_t begin, std::int64_t end,
                float* scores) {
    alignas(kCacheLine) float keys[kKeysAtOnce * kMostHeadWidth];
    for (std::int64_t i = begin / kKeysAtOnce * kKeysAtOnce; i < end; i += kKeysAtOnce) {
        for (std::int64_t p = 0; p < kKeysAtOnce; ++p) {
            const std::uint16_t* row = k + std::min(i + p, end - 1) * head_dim;
            for (std::int64_t d = 0; d < head_dim; d += kLanes) store(load_halves(row + d), keys + p * head_dim + d);
        }
        in_groups(low, high, [&](int q, auto group) {
            score_keys<decltype(group)::value>(block.queries + q, keys, head_dim, scores + q * kPagePositions + i);
        });
    }
}
// Keys and values that are halves.
class HalvesForm {
public:
    static bool fits(const KvView& kv) {
        return kv.head_dim % 32 == 0 && kv.head_dim <= kMostHeadWidth && kv.head_dim_v % kLanes == 0 && kv.head_dim_v <= kMostHeadWidth;
    }

    HalvesForm(const KvView& kv, const QueryBlock& block) : kv_(kv), block_(block) {}
    // scores: [queries, 256].
    void score(std::int64_t page, const Seen& seen, float* scores) const {
        score_page(block_, seen.low, seen.high, kv_halves(kv_.k_pages[page], block_.kv_head, kv_.head_dim), kv_.head_dim, seen.begin[seen.low],
                   seen.end[seen.high - 1], scores);
    }
    // Enters the page into the outputs. weights: as scores, 0 for what a query does not see.
    void sum(std::int64_t page, const Seen& seen, const PageSums* to, const float* weights) const {
        in_groups(seen.low, seen.high, [&](int q, auto group) {
            constexpr int kQ = decltype(group)::value;
            value_rows<kQ>(to + q, kv_halves(kv_.v_pages[page], block_.kv_head, kv_.head_dim_v), kv_.head_dim_v, seen.begin[q], seen.end[q + kQ - 1],
                           weights + q * kPagePositions);
        });
    }

private:
    const KvView& kv_;
    const QueryBlock& block_;
};

}  // namespace headroom::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEADROOM_KERNELS
#endif
