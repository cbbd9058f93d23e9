// What attention computes alike however keys and values are kept, once for each Highway target with kernels: scores become weights, and the
// sums of strips, pages and sections are put together.

#if defined(HEADROOM_ATTENTION_SUMS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADROOM_ATTENTION_SUMS_INL
#undef HEADROOM_ATTENTION_SUMS_INL
#else
#define HEADROOM_ATTENTION_SUMS_INL
#endif

#include <algorithm>
#include <limits>
#include <type_traits>

#include "core/compute/cpu/activations_storage.h"
#include "core/compute/cpu/ops.h"
#include "core/compute/cpu/vector-inl.h"

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

#if HEADROOM_KERNELS

HWY_BEFORE_NAMESPACE();
namespace headroom::cpu::HWY_NAMESPACE {

constexpr int kStrips = static_cast<int>(kPagePositions / kStripPositions);

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
// The queries of a block that see something of a page, which are neighbours (positions ascend), and what each of them sees.
struct Seen {
    int low, high;
    std::int64_t begin[kQueryBlock], end[kQueryBlock];
};

}  // namespace headroom::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEADROOM_KERNELS
#endif
