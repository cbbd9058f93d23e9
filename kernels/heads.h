#pragma once

// A head of q or k made ready by a warp: norm and rotation (cpu::rms_norm, cpu::rope).

#include "kernels/kv_pool.h"

namespace headroom::device {

using kernels::HeadArguments;

inline constexpr int kHeadShare = kMostWidth / kWarp;  // elements of a head to a lane: lane, lane + 32, …

// What a lane needs of the norm's weights and of a token's angles. Both are there before the products are.
struct HeadFactors {
    const float* weight;
    float weights[kHeadShare], cosines[kHeadShare], sines[kHeadShare];

    // weight: of the norm, or null. turns: the head is one of q or k.
    HR_DEVICE HeadFactors(const HeadArguments& a, int token, const float* of_norm, bool turns) : weight(of_norm) {
        HR_UNROLL
        for (int j = 0; j < kHeadShare; ++j) {
            const int i = j * kWarp + lane();
            weights[j] = weight != nullptr && i < a.pool.head_dim ? weight[i] : 1.0F;
            const int pair = a.layout == 0 ? i / 2 : i >= a.half ? i - a.half : i;
            const bool some = turns && i < 2 * a.half;
            cosines[j] = some ? a.cosine[static_cast<std::int64_t>(token) * a.half + pair] : 0.0F;
            sines[j] = some ? a.sine[static_cast<std::int64_t>(token) * a.half + pair] : 0.0F;
        }
    }
};

// Leaves the head in `to`, in shared memory.
HR_DEVICE void make_head(const HeadArguments& a, const HeadFactors& factors, const float* from, float* to) {
    const int width = a.pool.head_dim;
    float x[kHeadShare], s[kHeadShare];
    HR_UNROLL
    for (int j = 0; j < kHeadShare; ++j) {
        x[j] = j * kWarp < width ? from[j * kWarp + lane()] : 0.0F;
        s[j] = fma(x[j], x[j], 0.0F);
    }
    // 256 accumulators, each with at most one square: their butterfly.
    HR_UNROLL
    for (int h = kHeadShare / 2; h > 0; h /= 2) {
        HR_UNROLL
        for (int j = 0; j < h; ++j) s[j] = s[j] + s[j + h];
    }
    const float inverse = 1.0F / sqrt(fold_32(s[0]) / static_cast<float>(width) + a.epsilon);
    HR_UNROLL
    for (int j = 0; j < kHeadShare; ++j) {
        if (j * kWarp < width) to[j * kWarp + lane()] = factors.weight != nullptr ? (x[j] * inverse) * factors.weights[j] : x[j];
    }
    sync_warp();
    HR_UNROLL
    for (int j = 0; j < kHeadShare; ++j) {
        const int i = j * kWarp + lane();
        if (i >= width || i >= 2 * a.half) continue;
        const bool second = a.layout == 0 ? i % 2 != 0 : i >= a.half;
        const int distance = a.layout == 0 ? 1 : a.half;
        x[j] = second ? fma(to[i - distance], factors.sines[j], to[i] * factors.cosines[j])
                      : fma(to[i], factors.cosines[j], -(to[i + distance] * factors.sines[j]));
    }
    sync_warp();
    HR_UNROLL
    for (int j = 0; j < kHeadShare; ++j) {
        const int i = j * kWarp + lane();
        if (i < width && i < 2 * a.half) to[i] = x[j];
    }
    sync_warp();
}

}  // namespace headroom::device
