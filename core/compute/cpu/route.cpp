#include "core/compute/cpu/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/compute/cpu/route.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "core/compute/cpu/ops.h"
#include "core/compute/cpu/reference.h"
#include "core/compute/cpu/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headroom::cpu::HWY_NAMESPACE {

// The sum of softmax: S32 of exp(x - largest).
float exp_sum(const float* x, std::int64_t n, float largest) {
    float accumulators[32] = {};
    std::int64_t i = 0;
#if HEADROOM_KERNELS
    for (; i + kLanes <= n; i += kLanes) {
        float* a = accumulators + i % 32;
        store(hn::Add(load(a), exp_lanes(hn::Sub(load(x + i), hn::Set(DF(), largest)))), a);
    }
#endif
    for (; i < n; ++i) accumulators[i % 32] += exp_value(x[i] - largest);
    return reference::fold(accumulators);
}

}  // namespace headroom::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace headroom::cpu {

HWY_EXPORT(exp_sum);

// The probabilities of the chosen experts only: exp(score - max) / sum, with the sum over all scores, as in softmax. The choice is
// made on the scores: equal scores have equal probabilities, so the order is the same.
void route(const float* scores, std::int64_t tokens, std::int64_t n, std::int64_t used, bool normalize, std::int32_t* experts, float* weights) {
    const auto sum_of = HWY_DYNAMIC_DISPATCH(exp_sum);
    for (std::int64_t t = 0; t < tokens; ++t, scores += n, experts += used, weights += used) {
        // The chosen so far, largest first: a score goes behind those that are not smaller.
        std::int64_t count = 0;
        for (std::int64_t i = 0; i < n; ++i) {
            if (count == used && !(scores[i] > scores[experts[used - 1]])) continue;
            std::int64_t rank = count < used ? count++ : used - 1;
            for (; rank > 0 && scores[i] > scores[experts[rank - 1]]; --rank) experts[rank] = experts[rank - 1];
            experts[rank] = static_cast<std::int32_t>(i);
        }
        const float largest = scores[experts[0]];
        const float total = sum_of(scores, n, largest);
        float chosen = 0;
        for (std::int64_t rank = 0; rank < used; ++rank) {
            weights[rank] = exp_value(scores[experts[rank]] - largest) / total;
            chosen += weights[rank];
        }
        for (std::int64_t rank = 0; normalize && rank < used; ++rank) weights[rank] = weights[rank] / chosen;
    }
}

}  // namespace headroom::cpu

#endif  // HWY_ONCE
