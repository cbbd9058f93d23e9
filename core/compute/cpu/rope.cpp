#include "core/compute/cpu/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/compute/cpu/rope.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "core/compute/cpu/ops.h"
#include "core/compute/cpu/reference.h"
#include "core/compute/cpu/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headroom::cpu::HWY_NAMESPACE {

// One token.
void rope_row(float* x, std::int64_t heads, std::int64_t head_dim, const float* cosine, const float* sine, std::int64_t half,
              RopeLayout layout) {
#if HEADROOM_KERNELS
    if (layout == RopeLayout::halves && half % kLanes == 0) {
        for (std::int64_t h = 0; h < heads; ++h, x += head_dim) {
            for (std::int64_t i = 0; i < half; i += kLanes) {
                const VF a = load(x + i), b = load(x + half + i), c = load(cosine + i), s = load(sine + i);
                store(hn::MulSub(a, c, hn::Mul(b, s)), x + i);
                store(hn::MulAdd(a, s, hn::Mul(b, c)), x + half + i);
            }
        }
        return;
    }
    if (layout == RopeLayout::adjacent && half % kLanes == 0) {
        // Pairs in a vector: the even lane is a cos - b sin, the odd one a sin + b cos.
        const DF d;
        for (std::int64_t h = 0; h < heads; ++h, x += head_dim) {
            for (std::int64_t i = 0; i < 2 * half; i += kLanes) {
                alignas(64) float first[kLanes], second[kLanes];
                HEADROOM_UNROLL
                for (int j = 0; j < kLanes; j += 2) {
                    first[j] = cosine[(i + j) / 2];
                    first[j + 1] = sine[(i + j) / 2];
                    second[j] = sine[(i + j) / 2];
                    second[j + 1] = cosine[(i + j) / 2];
                }
                const VF v = load(x + i);
                const VF even = hn::DupEven(v), odd = hn::DupOdd(v);
                const VF product = hn::Mul(odd, hn::Load(d, second));
                const VF signs = hn::OddEven(product, hn::Neg(product));
                store(hn::MulAdd(even, hn::Load(d, first), signs), x + i);
            }
        }
        return;
    }
#endif
    reference::rope(x, heads, head_dim, cosine, sine, half, layout);
}

}  // namespace headroom::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace headroom::cpu {

HWY_EXPORT(rope_row);

void rope(ThreadPool& pool, float* x, std::int64_t tokens, std::int64_t heads, std::int64_t head_dim, std::int64_t stride,
          const float* cosine, const float* sine, std::int64_t half, RopeLayout layout) {
    const auto row = HWY_DYNAMIC_DISPATCH(rope_row);
    pool.parallel_for(tokens, 1 + 16384 / (heads * head_dim), [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t t = begin; t < end; ++t) row(x + t * stride, heads, head_dim, cosine + t * half, sine + t * half, half, layout);
    });
}

}  // namespace headroom::cpu

#endif  // HWY_ONCE
