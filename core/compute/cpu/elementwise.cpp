#include "core/compute/cpu/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/compute/cpu/elementwise.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "core/compute/cpu/ops.h"
#include "core/compute/cpu/reference.h"
#include "core/compute/cpu/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headroom::cpu::HWY_NAMESPACE {

void swiglu_row(const float* gate, const float* up, std::int64_t n, float* out) {
    std::int64_t i = 0;
#if HEADROOM_KERNELS
    const VF one = hn::Set(DF(), 1.0F);
    for (; i + kLanes <= n; i += kLanes) {
        const VF g = load(gate + i);
        store(hn::Mul(hn::Div(g, hn::Add(one, exp_lanes(hn::Neg(g)))), load(up + i)), out + i);
    }
#endif
    reference::swiglu(gate + i, up + i, n - i, out + i);
}

void add_row(float* x, const float* y, std::int64_t n) {
    std::int64_t i = 0;
#if HEADROOM_KERNELS
    for (; i + kLanes <= n; i += kLanes) store(hn::Add(load(x + i), load(y + i)), x + i);
#endif
    for (; i < n; ++i) x[i] = x[i] + y[i];
}

void combine_row(float* x, const float* const* outputs, const float* weights, std::int64_t used, std::int64_t n) {
    std::int64_t i = 0;
#if HEADROOM_KERNELS
    const DF d;
    for (; i + kLanes <= n; i += kLanes) {
        VF sum = hn::Mul(hn::Set(d, weights[0]), load(outputs[0] + i));
        for (std::int64_t rank = 1; rank < used; ++rank) sum = hn::MulAdd(hn::Set(d, weights[rank]), load(outputs[rank] + i), sum);
        store(hn::Add(load(x + i), sum), x + i);
    }
#endif
    for (; i < n; ++i) {
        float sum = weights[0] * outputs[0][i];
        for (std::int64_t rank = 1; rank < used; ++rank) sum = fma(weights[rank], outputs[rank][i], sum);
        x[i] = x[i] + sum;
    }
}

}  // namespace headroom::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace headroom::cpu {
namespace {

// Rows of n elements to a piece of parallel work: about 32 Ki elements, so that a single token's row is not worth waking anybody.
std::int64_t grain(std::int64_t n) { return 1 + 32768 / n; }

}  // namespace

HWY_EXPORT(swiglu_row);
HWY_EXPORT(add_row);
HWY_EXPORT(combine_row);

void swiglu(ThreadPool& pool, const float* gate, const float* up, std::int64_t rows, std::int64_t n, std::int64_t stride, float* out) {
    const auto row = HWY_DYNAMIC_DISPATCH(swiglu_row);
    pool.parallel_for(rows, grain(4 * n), [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t t = begin; t < end; ++t) row(gate + t * stride, up + t * stride, n, out + t * stride);
    });
}

void swiglu(const float* gate, const float* up, std::int64_t n, float* out) { HWY_DYNAMIC_DISPATCH(swiglu_row)(gate, up, n, out); }

void add(ThreadPool& pool, float* x, const float* y, std::int64_t rows, std::int64_t n, std::int64_t x_stride, std::int64_t y_stride) {
    const auto row = HWY_DYNAMIC_DISPATCH(add_row);
    pool.parallel_for(rows, grain(n), [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t t = begin; t < end; ++t) row(x + t * x_stride, y + t * y_stride, n);
    });
}

void add_bias(ThreadPool& pool, float* x, const float* bias, std::int64_t rows, std::int64_t n, std::int64_t stride) {
    add(pool, x, bias, rows, n, stride, 0);
}

void combine_experts(ThreadPool& pool, float* x, std::int64_t x_stride, const float* const* outputs, const float* weights,
                     std::int64_t tokens, std::int64_t used, std::int64_t n) {
    const auto row = HWY_DYNAMIC_DISPATCH(combine_row);
    pool.parallel_for(tokens, grain(n * used), [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t t = begin; t < end; ++t) row(x + t * x_stride, outputs + t * used, weights + t * used, used, n);
    });
}

}  // namespace headroom::cpu

#endif  // HWY_ONCE
