#include "core/compute/cpu/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/compute/cpu/attention.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "core/compute/cpu/activations_storage.h"
#include "core/compute/cpu/ops.h"
#include "core/compute/cpu/reference.h"
#include "core/compute/cpu/vector-inl.h"

// A block of queries that share a KV head goes through the pages together: K and V are made floats once for several queries.

#ifndef HEADROOM_ATTENTION_TYPES
#define HEADROOM_ATTENTION_TYPES
namespace headroom::cpu {

inline constexpr int kQueryBlock = 16;

struct Query {
    const float* q;         // [head_dim]
    float* out;             // [head_dim_v]
    std::int64_t position;
};

struct QueryBlock {
    Query queries[kQueryBlock];  // positions ascending
    int count;
    std::int64_t kv_head;
};

}  // namespace headroom::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace headroom::cpu::HWY_NAMESPACE {

void to_half_row(const float* x, std::int64_t n, std::uint16_t* out) {
    std::int64_t i = 0;
#if HEADROOM_KERNELS
    for (; i + kLanes <= n; i += kLanes) store_halves(load(x + i), out + i);
#endif
    reference::to_half(x + i, n - i, out + i);
}

#if HEADROOM_KERNELS

// Keeps the compiler from loading v again for each use: loads are what a tile of dot products has too many of.
HWY_INLINE VF in_register(VF v) {
    asm("" : "+v"(v.raw));
    return v;
}

constexpr int kSum16 = 16 / kLanes;  // vectors of 16 strided accumulators
constexpr int kStrips = static_cast<int>(kPagePositions / kStripPositions);

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

// Eight vectors, the lanes of each folded as in fold_lanes, with additions or another operation: the results in order in the first eight lanes.
#if HWY_TARGET == HWY_AVX3_DL
template <class Operation>
HWY_INLINE VF fold_eight(const VF (&v)[kStrips], Operation operation) {
    const auto halves = [&](int a, int b) {
        return operation(_mm512_shuffle_f32x4(v[a].raw, v[b].raw, 0x44), _mm512_shuffle_f32x4(v[a].raw, v[b].raw, 0xee));
    };
    const auto quarters = [&](__m512 a, __m512 b) { return operation(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd)); };
    const __m512d first = _mm512_castps_pd(quarters(halves(0, 1), halves(2, 3)));
    const __m512d second = _mm512_castps_pd(quarters(halves(4, 5), halves(6, 7)));
    const __m512 pairs = operation(_mm512_castpd_ps(_mm512_unpacklo_pd(first, second)), _mm512_castpd_ps(_mm512_unpackhi_pd(first, second)));
    const __m512 folded = operation(_mm512_shuffle_ps(pairs, pairs, 0x88), _mm512_shuffle_ps(pairs, pairs, 0xdd));
    return VF{_mm512_permutexvar_ps(_mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 0, 4, 8, 12, 1, 5, 9, 13), folded)};
}
struct Additions {
    HWY_INLINE __m512 operator()(__m512 a, __m512 b) const { return _mm512_add_ps(a, b); }
};
struct Maxima {
    HWY_INLINE __m512 operator()(__m512 a, __m512 b) const { return _mm512_max_ps(a, b); }
};
#else
template <class Operation>
HWY_INLINE VF fold_eight(const VF (&v)[kStrips], Operation operation) {
    const auto halves = [&](int a, int b) {
        return operation(_mm256_permute2f128_ps(v[a].raw, v[b].raw, 0x20), _mm256_permute2f128_ps(v[a].raw, v[b].raw, 0x31));
    };
    const auto pairs = [&](__m256 a, __m256 b) {
        const __m256d c = _mm256_castps_pd(a), d = _mm256_castps_pd(b);
        return operation(_mm256_castpd_ps(_mm256_unpacklo_pd(c, d)), _mm256_castpd_ps(_mm256_unpackhi_pd(c, d)));
    };
    const __m256 first = pairs(halves(0, 4), halves(1, 5)), second = pairs(halves(2, 6), halves(3, 7));
    return VF{operation(_mm256_shuffle_ps(first, second, 0x88), _mm256_shuffle_ps(first, second, 0xdd))};
}
struct Additions {
    HWY_INLINE __m256 operator()(__m256 a, __m256 b) const { return _mm256_add_ps(a, b); }
};
struct Maxima {
    HWY_INLINE __m256 operator()(__m256 a, __m256 b) const { return _mm256_max_ps(a, b); }
};
#endif

// What the strips of a page come to for a query.
struct Strips {
    float largest;           // of the page
    float sum;               // of the page
    float factors[kStrips];  // of each strip's sums in those of the page; 0 where nothing is to be seen
};

// Scores become weights: scaled, less their strip's maximum, exp; outside [begin, end) they are 0.
HWY_INLINE void weigh(float* scores, std::int64_t begin, std::int64_t end, float scale, Strips& strips) {
    const DF d;
    const std::int64_t first = begin / kStripPositions, last = (end + kStripPositions - 1) / kStripPositions;
    const float nothing = -std::numeric_limits<float>::infinity();
    std::fill(scores + first * kStripPositions, scores + begin, nothing);
    std::fill(scores + end, scores + last * kStripPositions, nothing);
    const VF scales = hn::Set(d, scale);
    VF most[kStrips], sums[kStrips];
    for (int strip = 0; strip < kStrips; ++strip) {
        most[strip] = hn::Set(d, nothing);
        sums[strip] = hn::Zero(d);
    }
    for (std::int64_t strip = first; strip < last; ++strip) {
        HEADROOM_UNROLL
        for (int j = 0; j < kSum32; ++j) {
            float* at = scores + strip * kStripPositions + j * kLanes;
            const VF scaled = hn::Mul(load(at), scales);
            store(scaled, at);
            most[strip] = hn::Max(most[strip], scaled);
        }
    }
    const VF largest_lanes = fold_eight(most, Maxima());
    alignas(kCacheLine) float largest[kLanes], factors[kLanes], strip_sums[kLanes];
    store(largest_lanes, largest);
    for (std::int64_t strip = first; strip < last; ++strip) {
        const VF maximum = hn::Set(d, largest[strip]);
        VF e[kSum32];
        HEADROOM_UNROLL
        for (int j = 0; j < kSum32; ++j) {
            float* at = scores + strip * kStripPositions + j * kLanes;
            e[j] = exp_lanes(hn::Sub(load(at), maximum));
            store(e[j], at);
        }
        sums[strip] = fold_vectors(e);
    }
    store(fold_eight(sums, Additions()), strip_sums);
    const VF page_largest = hn::MaxOfLanes(d, largest_lanes);
    store(exp_lanes(hn::Sub(largest_lanes, page_largest)), factors);
    VF sum = hn::Zero(d);  // in every lane
    for (std::int64_t strip = first; strip < last; ++strip) sum = hn::MulAdd(hn::Set(d, strip_sums[strip]), hn::Set(d, factors[strip]), sum);
    strips.largest = hn::GetLane(page_largest);
    strips.sum = hn::GetLane(sum);
    std::copy_n(factors, kStrips, strips.factors);
}

// How the sums of a page or of a section enter those of earlier ones.
struct Rescale {
    bool first;
    float old_factor, new_factor;
};
// Maximum and sum of the earlier ones.
struct Running {
    float largest, sum;
    bool begun = false;

    Rescale add(float more_largest, float more_sum) {
        if (!begun) {
            *this = {more_largest, more_sum, true};
            return {true, 0, 1};
        }
        const float now = std::max(largest, more_largest);
        const Rescale rescale = {false, exp_value(largest - now), exp_value(more_largest - now)};
        largest = now;
        sum = fma(sum, rescale.old_factor, more_sum * rescale.new_factor);
        return rescale;
    }
};
HWY_INLINE VF rescaled(const Rescale& r, const float* earlier, VF more) {
    const DF d;
    return r.first ? more : hn::MulAdd(load(earlier), hn::Set(d, r.old_factor), hn::Mul(more, hn::Set(d, r.new_factor)));
}

// What the values of a page are entered into, of a query.
struct PageSums {
    float* out;  // the section's so far
    Rescale rescale;
    Strips strips;
};

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

// Calls step(q, Q) for the queries in groups of four, two, one.
template <class Step>
HWY_INLINE void in_groups(int first, int count, Step step) {
    int q = first;
    for (; q + 4 <= count; q += 4) step(q, std::integral_constant<int, 4>());
    if (q + 2 <= count) {
        step(q, std::integral_constant<int, 2>());
        q += 2;
    }
    if (q < count) step(q, std::integral_constant<int, 1>());
}

// Wider heads go through the reference.
constexpr std::int64_t kMostHeadDim = 512;

// The scores of positions [begin, end) of a page, and of others around them up to multiples of kKeysAtOnce, which mean nothing.
void score_page(const QueryBlock& block, int low, int high, const std::uint16_t* k, std::int64_t head_dim, std::int64_t begin, std::int64_t end,
                float* scores) {
    alignas(kCacheLine) float keys[kKeysAtOnce * kMostHeadDim];
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

void attend(const AttentionShape& shape, const KvView& kv, const QueryBlock& block) {
    alignas(kCacheLine) float weights[kQueryBlock * kPagePositions];
    alignas(kCacheLine) float earlier[kQueryBlock * kMostHeadDim];  // the outputs of the sections before, [queries, head_dim_v]
    Running total[kQueryBlock], section[kQueryBlock];
    const auto first_of = [&](const Query& q) { return shape.window > 0 ? std::max<std::int64_t>(0, q.position - shape.window + 1) : 0; };
    const std::int64_t first_page = first_of(block.queries[0]) / kPagePositions;
    const std::int64_t last_page = block.queries[block.count - 1].position / kPagePositions;
    for (std::int64_t page = first_page; page <= last_page; ++page) {
        const std::uint16_t* k = kv_halves(kv.k_pages[page], block.kv_head, kv.head_dim);
        const std::uint16_t* v = kv_halves(kv.v_pages[page], block.kv_head, kv.head_dim_v);
        // Positions ascend within the block, so the queries that see this page are neighbours.
        std::int64_t begin[kQueryBlock], end[kQueryBlock];
        int low = block.count, high = 0;
        for (int q = 0; q < block.count; ++q) {
            begin[q] = std::max<std::int64_t>(0, first_of(block.queries[q]) - page * kPagePositions);
            end[q] = std::min(kPagePositions, block.queries[q].position + 1 - page * kPagePositions);
            if (begin[q] >= end[q]) continue;
            low = std::min(low, q);
            high = q + 1;
        }
        score_page(block, low, high, k, kv.head_dim, begin[low], end[high - 1], weights);
        PageSums sums[kQueryBlock];
        for (int q = low; q < high; ++q) {
            weigh(weights + q * kPagePositions, begin[q], end[q], shape.scale, sums[q].strips);
            // Queries share loops over positions, so what one of them does not see must weigh nothing.
            std::fill(weights + q * kPagePositions + begin[low], weights + q * kPagePositions + begin[q], 0.0F);
            std::fill(weights + q * kPagePositions + end[q], weights + q * kPagePositions + end[high - 1], 0.0F);
            sums[q].rescale = section[q].add(sums[q].strips.largest, sums[q].strips.sum);
            sums[q].out = block.queries[q].out;
        }
        in_groups(low, high, [&](int q, auto group) {
            constexpr int kQ = decltype(group)::value;
            value_rows<kQ>(sums + q, v, kv.head_dim_v, begin[q], end[q + kQ - 1], weights + q * kPagePositions);
        });
        if ((page + 1) % kSectionPages != 0 && page != last_page) continue;
        for (int q = 0; q < block.count; ++q) {
            float* before = earlier + q * kv.head_dim_v;
            float* out = block.queries[q].out;
            if (!section[q].begun) {
                if (page == last_page) std::copy_n(before, kv.head_dim_v, out);  // the query sees no page of this section
                continue;
            }
            const Rescale rescale = total[q].add(section[q].largest, section[q].sum);
            float* to = page == last_page ? out : before;
            for (std::int64_t i = 0; i < kv.head_dim_v; i += kLanes) store(rescaled(rescale, before + i, load(out + i)), to + i);
            section[q].begun = false;
        }
    }
    for (int q = 0; q < block.count; ++q) {
        const VF sum = hn::Set(DF(), total[q].sum);
        float* out = block.queries[q].out;
        for (std::int64_t i = 0; i < kv.head_dim_v; i += kLanes) store(hn::Div(load(out + i), sum), out + i);
    }
}

#endif

void attend_block(const AttentionShape& shape, const KvView& kv, const QueryBlock& block) {
#if HEADROOM_KERNELS
    if (kv.type == KvType::f16 && kv.head_dim % 32 == 0 && kv.head_dim <= kMostHeadDim && kv.head_dim_v % kLanes == 0 && kv.head_dim_v <= kMostHeadDim) return attend(shape, kv, block);
#endif
    for (int i = 0; i < block.count; ++i) {
        const Query& query = block.queries[i];
        reference::attention(shape, query.q, query.position, block.kv_head, kv, query.out);
    }
}

}  // namespace headroom::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace headroom::cpu {

HWY_EXPORT(to_half_row);
HWY_EXPORT(attend_block);

void store_kv(ThreadPool& pool, const KvView& kv, const float* k, std::int64_t k_stride, const float* v, std::int64_t v_stride,
              std::int64_t tokens, std::int64_t first_position) {
    const auto to_half = HWY_DYNAMIC_DISPATCH(to_half_row);
    const std::int64_t width = kv.kv_heads * (kv.head_dim + kv.head_dim_v);
    pool.parallel_for(tokens, 1 + 32768 / width, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t t = begin; t < end; ++t) {
            const std::int64_t page = (first_position + t) / kPagePositions;
            const std::int64_t slot = (first_position + t) % kPagePositions;
            if (kv.type == KvType::q8_0) {
                reference::store_kv(kv, k + t * k_stride, v + t * v_stride, first_position + t);
                continue;
            }
            for (std::int64_t h = 0; h < kv.kv_heads; ++h) {
                to_half(k + t * k_stride + h * kv.head_dim, kv.head_dim, kv_halves(kv.k_pages[page], h, kv.head_dim) + slot * kv.head_dim);
                to_half(v + t * v_stride + h * kv.head_dim_v, kv.head_dim_v, kv_halves(kv.v_pages[page], h, kv.head_dim_v) + slot * kv.head_dim_v);
            }
        }
    });
}

void attention(ThreadPool& pool, const AttentionShape& shape, const float* q, std::int64_t q_stride, const KvView& kv, float* out,
               std::int64_t out_stride) {
    const auto attend_here = HWY_DYNAMIC_DISPATCH(attend_block);
    const std::int64_t group = shape.heads / kv.kv_heads;
    // Queries of a KV head in the order token, head of the group; small blocks where there would be too few of them for the threads.
    const std::int64_t queries = shape.tokens * group;
    const std::int64_t wanted = std::max<std::int64_t>(1, queries * kv.kv_heads / (2 * pool.size()));
    const std::int64_t size = std::min<std::int64_t>({kQueryBlock, queries, wanted});
    const std::int64_t blocks = (queries + size - 1) / size;
    // The last tokens see the most: they go first, so that no thread is left with a long block at the end.
    pool.parallel_for(blocks * kv.kv_heads, 1, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t i = begin; i < end; ++i) {
            QueryBlock block;
            block.kv_head = i % kv.kv_heads;
            const std::int64_t first = (blocks - 1 - i / kv.kv_heads) * size;
            block.count = static_cast<int>(std::min(size, queries - first));
            for (std::int64_t j = 0; j < block.count; ++j) {
                const std::int64_t token = (first + j) / group;
                const std::int64_t head = block.kv_head * group + (first + j) % group;
                block.queries[j] = {q + token * q_stride + head * kv.head_dim, out + token * out_stride + head * kv.head_dim_v,
                                    shape.first_position + token};
            }
            attend_here(shape, kv, block);
        }
    });
}

}  // namespace headroom::cpu

#endif  // HWY_ONCE
