#include "core/compute/cpu/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/compute/cpu/norm.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "core/compute/cpu/ops.h"
#include "core/compute/cpu/reference.h"
#include "core/compute/cpu/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headroom::cpu::HWY_NAMESPACE {

void rms_norm_row(const float* x, std::int64_t n, const float* weight, float eps, float* out) {
#if HEADROOM_KERNELS
    if (n % 32 == 0) {
        // Accumulator i mod 256 lives in lane i mod kLanes of vector (i mod 256) / kLanes.
        const DF d;
        constexpr int kVectors = 256 / kLanes;
        alignas(64) float sums[256] = {};
        const std::int64_t whole = n / 256 * 256;
        constexpr int kAtOnce = 8;
        for (int first = 0; first < kVectors; first += kAtOnce) {
            VF s[kAtOnce];
            HEADROOM_UNROLL
            for (int j = 0; j < kAtOnce; ++j) s[j] = hn::Zero(d);
            for (std::int64_t i = first * kLanes; i < whole; i += 256) {
                HEADROOM_UNROLL
                for (int j = 0; j < kAtOnce; ++j) {
                    const VF v = load(x + i + j * kLanes);
                    s[j] = hn::MulAdd(v, v, s[j]);
                }
            }
            HEADROOM_UNROLL
            for (int j = 0; j < kAtOnce; ++j) store(s[j], sums + (first + j) * kLanes);
        }
        for (std::int64_t i = whole; i < n; i += kLanes) {
            const VF v = load(x + i);
            store(hn::MulAdd(v, v, load(sums + i - whole)), sums + i - whole);
        }
        for (int half = 128; half >= kLanes; half /= 2) {
            for (int i = 0; i < half; i += kLanes) store(hn::Add(load(sums + i), load(sums + i + half)), sums + i);
        }
        const float sum = fold_lanes(load(sums));
        const VF inverse = hn::Set(d, 1.0F / std::sqrt(sum / static_cast<float>(n) + eps));
        for (std::int64_t i = 0; i < n; i += kLanes) {
            const VF scaled = hn::Mul(load(x + i), inverse);
            store(weight != nullptr ? hn::Mul(scaled, load(weight + i)) : scaled, out + i);
        }
        return;
    }
#endif
    reference::rms_norm(x, n, weight, eps, out);
}

}  // namespace headroom::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace headroom::cpu {

HWY_EXPORT(rms_norm_row);

void rms_norm(ThreadPool& pool, const float* x, std::int64_t rows, std::int64_t n, std::int64_t stride, const float* weight,
              float eps, float* out) {
    const auto row = HWY_DYNAMIC_DISPATCH(rms_norm_row);
    pool.parallel_for(rows, 1 + 32768 / n, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t t = begin; t < end; ++t) row(x + t * stride, n, weight, eps, out + t * stride);
    });
}

}  // namespace headroom::cpu

#endif  // HWY_ONCE
