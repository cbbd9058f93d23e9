#include "core/compute/cpu/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/compute/cpu/quantize.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

#include "core/compute/cpu/quantize.h"
#include "core/compute/cpu/reference.h"
#include "core/compute/cpu/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headroom::cpu::HWY_NAMESPACE {

#if HEADROOM_KERNELS

// kCount values with one scale.
template <int kCount>
HWY_INLINE float quantize_codes(const float* x, std::int8_t* q) {
    const DF d;
    const hn::Rebind<std::int8_t, DF> d8;
    VF largest_lanes = hn::Zero(d);
    HEADROOM_UNROLL
    for (int i = 0; i < kCount; i += kLanes) largest_lanes = hn::Max(largest_lanes, hn::Abs(load(x + i)));
    const float largest = hn::GetLane(hn::MaxOfLanes(d, largest_lanes));
    if (!(largest >= kSmallestGroup)) {
        std::fill(q, q + kCount, std::int8_t{0});
        return 0;
    }
    const VF inverse = hn::Set(d, 127.0F / largest);
    HEADROOM_UNROLL
    for (int i = 0; i < kCount; i += kLanes) hn::StoreU(hn::DemoteTo(d8, hn::NearestInt(hn::Mul(load(x + i), inverse))), d8, q + i);
    return largest / 127.0F;
}

// The sum of 16 codes: of bytes made unsigned, less what that added.
HWY_INLINE int sum_16(const std::int8_t* q) {
    const __m128i bytes = _mm_xor_si128(_mm_loadu_si128(reinterpret_cast<const __m128i*>(q)), _mm_set1_epi8(-128));
    const __m128i sums = _mm_sad_epu8(bytes, _mm_setzero_si128());
    return _mm_cvtsi128_si32(_mm_add_epi32(sums, _mm_unpackhi_epi64(sums, sums))) - 16 * 128;
}

#endif

void quantize_group(const float* x, Group256& out) {
#if HEADROOM_KERNELS
    out.scale = quantize_codes<256>(x, out.q);
    for (int j = 0; j < 8; ++j) {
        const int first = sum_16(out.q + 32 * j), second = sum_16(out.q + 32 * j + 16);
        out.sums16[2 * j] = static_cast<std::int16_t>(first);
        out.sums16[2 * j + 1] = static_cast<std::int16_t>(second);
        out.sums32[j] = static_cast<std::int16_t>(first + second);
    }
#else
    reference::quantize(x, out);
#endif
}

void quantize_groups(const float* x, std::int64_t count, Groups32& out) {
#if HEADROOM_KERNELS
    if (count == 256) {
        for (int j = 0; j < 8; ++j) {
            out.scales[j] = quantize_codes<32>(x + 32 * j, out.q + 32 * j);
            out.sums[j] = sum_16(out.q + 32 * j) + sum_16(out.q + 32 * j + 16);
        }
        return;
    }
#endif
    reference::quantize(x, count, out);
}

}  // namespace headroom::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace headroom::cpu {

HWY_EXPORT(quantize_group);
HWY_EXPORT(quantize_groups);

void quantize_row(const float* x, std::int64_t cols, Group256* out, std::int64_t step) {
    const auto quantize = HWY_DYNAMIC_DISPATCH(quantize_group);
    for (std::int64_t k = 0; k < cols; k += 256, out += step) quantize(x + k, *out);
}

void quantize_row(const float* x, std::int64_t cols, Groups32* out, std::int64_t step) {
    const auto quantize = HWY_DYNAMIC_DISPATCH(quantize_groups);
    for (std::int64_t k = 0; k < cols; k += 256, out += step) quantize(x + k, std::min<std::int64_t>(256, cols - k), *out);
}

void interleave(const Group256* groups, std::int64_t cols, Quad256* out, std::int64_t step) {
    static constexpr Group256 kNothing = {};
    const std::int64_t count = cols / 256;
    for (std::int64_t first = 0; first < count; first += 4, out += step) {
        for (std::int64_t i = 0; i < 4; ++i) {
            const Group256& group = first + i < count ? groups[(first + i) * step] : kNothing;
            for (int part = 0; part < 16; ++part) std::memcpy(out->q[part][i], group.q + 16 * part, 16);
            std::memcpy(out->sums32[i], group.sums32, 16);
            std::memcpy(out->sums16[0][i], group.sums16, 16);
            std::memcpy(out->sums16[1][i], group.sums16 + 8, 16);
            out->scales[i] = group.scale;
        }
    }
}

void interleave(const Groups32* groups, std::int64_t cols, Quad32* out, std::int64_t step) {
    const std::int64_t count = (cols + 127) / 128;
    for (std::int64_t quad = 0; quad < count; ++quad, out += step) {
        const Groups32& source = groups[quad / 2 * step];  // zero behind the row's end
        for (std::int64_t i = 0; i < 4; ++i) {
            const std::int64_t block = quad % 2 * 4 + i;
            std::memcpy(out->q[0][i], source.q + 32 * block, 16);
            std::memcpy(out->q[1][i], source.q + 32 * block + 16, 16);
            out->sums[i] = source.sums[block];
            out->scales[i] = source.scales[block];
        }
    }
}

}  // namespace headroom::cpu

#endif  // HWY_ONCE
