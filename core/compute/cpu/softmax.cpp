#include "core/compute/cpu/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/compute/cpu/softmax.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "core/compute/cpu/ops.h"
#include "core/compute/cpu/reference.h"
#include "core/compute/cpu/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headroom::cpu::HWY_NAMESPACE {

void softmax_row(float* x, std::int64_t n) {
#if HEADROOM_KERNELS
    const DF d;
    const std::int64_t whole = n / 32 * 32;
    VF largest_lanes = hn::Set(d, -std::numeric_limits<float>::infinity());
    for (std::int64_t i = 0; i < whole; i += kLanes) largest_lanes = hn::Max(largest_lanes, load(x + i));
    float largest = hn::GetLane(hn::MaxOfLanes(d, largest_lanes));
    for (std::int64_t i = whole; i < n; ++i) largest = std::max(largest, x[i]);
    alignas(64) float sums[32] = {};
    VF s[kSum32];
    HEADROOM_UNROLL
    for (int j = 0; j < kSum32; ++j) s[j] = hn::Zero(d);
    for (std::int64_t i = 0; i < whole; i += 32) {
        HEADROOM_UNROLL
        for (int j = 0; j < kSum32; ++j) {
            const VF e = exp_lanes(hn::Sub(load(x + i + j * kLanes), hn::Set(d, largest)));
            store(e, x + i + j * kLanes);
            s[j] = hn::Add(s[j], e);
        }
    }
    HEADROOM_UNROLL
    for (int j = 0; j < kSum32; ++j) store(s[j], sums + j * kLanes);
    for (std::int64_t i = whole; i < n; ++i) {
        x[i] = exp_value(x[i] - largest);
        sums[i - whole] += x[i];
    }
    const VF total = hn::Set(d, reference::fold(sums));
    for (std::int64_t i = 0; i < whole; i += kLanes) store(hn::Div(load(x + i), total), x + i);
    for (std::int64_t i = whole; i < n; ++i) x[i] = x[i] / hn::GetLane(total);
#else
    reference::softmax(x, n);
#endif
}

std::int64_t argmax_row(const float* x, std::int64_t n) {
    std::int64_t best = 0;
    std::int64_t i = 1;
#if HEADROOM_KERNELS
    // The largest value of a stretch first; where it beats what was before, its place.
    const DF d;
    constexpr std::int64_t kStretch = 64 * kLanes;
    for (i = 0; i + kStretch <= n; i += kStretch) {
        VF largest = load(x + i);
        for (std::int64_t j = kLanes; j < kStretch; j += kLanes) largest = hn::Max(largest, load(x + i + j));
        const float value = hn::GetLane(hn::MaxOfLanes(d, largest));
        if (i > 0 && !(value > x[best])) continue;
        best = std::find(x + i, x + i + kStretch, value) - x;
        if (best == i + kStretch) best = i;  // only among values that are not numbers
    }
#endif
    for (; i < n; ++i) {
        if (x[i] > x[best]) best = i;
    }
    return best;
}

}  // namespace headroom::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace headroom::cpu {

HWY_EXPORT(softmax_row);
HWY_EXPORT(argmax_row);

void softmax(float* x, std::int64_t n) { HWY_DYNAMIC_DISPATCH(softmax_row)(x, n); }

float exp(float x) { return exp_value(x); }

std::int64_t argmax(const float* x, std::int64_t n) { return HWY_DYNAMIC_DISPATCH(argmax_row)(x, n); }

}  // namespace headroom::cpu

#endif  // HWY_ONCE
