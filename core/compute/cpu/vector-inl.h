// Vectors of floats and the pieces of docs/arithmetic.md that several operators share, once for each Highway target with kernels
// (HEADROOM_KERNELS). The scalar twins are in arithmetic.h and reference.cpp.

#if defined(HEADROOM_VECTOR_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADROOM_VECTOR_INL
#undef HEADROOM_VECTOR_INL
#else
#define HEADROOM_VECTOR_INL
#endif

#include <hwy/highway.h>

#include "core/compute/cpu/arithmetic.h"

#undef HEADROOM_KERNELS
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3_DL
#define HEADROOM_KERNELS 1
#else
#define HEADROOM_KERNELS 0
#endif

#if HEADROOM_KERNELS

HWY_BEFORE_NAMESPACE();
namespace headroom::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using DI = hn::ScalableTag<std::int32_t>;
using DU = hn::ScalableTag<std::uint32_t>;
using DF = hn::ScalableTag<float>;
using VI = hn::Vec<DI>;
using VU = hn::Vec<DU>;
using VF = hn::Vec<DF>;

constexpr int kLanes = HWY_LANES(float);
constexpr int kSum32 = 32 / kLanes;  // vectors of 32 strided accumulators

HWY_INLINE VF load(const float* from) { return hn::LoadU(DF(), from); }
HWY_INLINE void store(VF v, float* to) { hn::StoreU(v, DF(), to); }

#if HWY_TARGET == HWY_AVX3_DL
HWY_INLINE VF load_halves(const std::uint16_t* from) {
    return VF{_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)))};
}
HWY_INLINE void store_halves(VF v, std::uint16_t* to) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtps_ph(v.raw, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
HWY_INLINE VF load_bfloats(const std::uint16_t* from) {
    const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
    return VF{_mm512_castsi512_ps(_mm512_slli_epi32(wide, 16))};
}
HWY_INLINE __m256 fold_to_8(VF v) { return _mm256_add_ps(_mm512_castps512_ps256(v.raw), _mm512_extractf32x8_ps(v.raw, 1)); }
#else
HWY_INLINE VF load_halves(const std::uint16_t* from) {
    return VF{_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)))};
}
HWY_INLINE void store_halves(VF v, std::uint16_t* to) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_cvtps_ph(v.raw, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
HWY_INLINE VF load_bfloats(const std::uint16_t* from) {
    const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
    return VF{_mm256_castsi256_ps(_mm256_slli_epi32(wide, 16))};
}
HWY_INLINE __m256 fold_to_8(VF v) { return v.raw; }
#endif

// The lanes of a vector folded: s[i] + s[i + h] for h = lanes / 2 … 1.
HWY_INLINE float fold_lanes(VF v) {
    const __m256 eight = fold_to_8(v);
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

// 32 strided accumulators, folded down to one vector.
HWY_INLINE VF fold_vectors(const VF (&sums)[kSum32]) {
    if constexpr (kSum32 == 2) return hn::Add(sums[0], sums[1]);
    else return hn::Add(hn::Add(sums[0], sums[2]), hn::Add(sums[1], sums[3]));
}
HWY_INLINE float fold(const VF (&sums)[kSum32]) { return fold_lanes(fold_vectors(sums)); }

// exp_value in each lane.
HWY_INLINE VF exp_lanes(VF x) {
    const DF d;
    const DI di;
    const VF n = hn::Round(hn::Mul(x, hn::Set(d, kLog2E)));
    VF r = hn::NegMulAdd(n, hn::Set(d, kLn2High), x);
    r = hn::NegMulAdd(n, hn::Set(d, kLn2Low), r);
    VF p = hn::Set(d, kExpCoefficients[0]);
    HEADROOM_UNROLL
    for (int i = 1; i < 8; ++i) p = hn::MulAdd(p, r, hn::Set(d, kExpCoefficients[i]));
    const VI exponent = hn::ConvertTo(di, n);
    const VI half = hn::ShiftRight<1>(exponent);
    const VI bias = hn::Set(di, 127);
    const VF low = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(half, bias)));
    const VF high = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(hn::Sub(exponent, half), bias)));
    const VF result = hn::IfThenElseZero(hn::Ge(x, hn::Set(d, kExpLowest)), hn::Mul(hn::Mul(p, low), high));
    return hn::IfThenElse(hn::Gt(x, hn::Set(d, kExpHighest)), hn::Set(d, std::numeric_limits<float>::infinity()), result);
}

}  // namespace headroom::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEADROOM_KERNELS
#endif
