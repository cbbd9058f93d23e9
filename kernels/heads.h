#pragma once

// A head of q or k made ready by a warp: norm and rotation (cpu::rms_norm, cpu::rope).

#include "kernels/kv_pool.h"

namespace headroom::device {

using kernels::HeadArguments;

// Here and below W is the heads' width where it is known when the code is compiled, else 0. Elements of a head to a lane: lane, lane + 32, …
template <int W>
inline constexpr int kHeadShare = (W > 0 ? W : kMostWidth) / kWarp;
template <int W>
HR_DEVICE int width_or(int width) {
    return W > 0 ? W : width;
}

// What a lane needs of the norm's weights and of a token's angles. Both are there before the products are.
template <int W>
struct HeadFactors {
    static constexpr int kShare = kHeadShare<W>;
    const float* weight;
    float weights[kShare], cosines[kShare], sines[kShare];

    // weight: of the norm, or null. turns: the head is one of q or k.
    HR_DEVICE HeadFactors(const HeadArguments& a, int token, const float* of_norm, bool turns) : weight(of_norm) {
        HR_UNROLL
        for (int j = 0; j < kShare; ++j) {
            const int i = j * kWarp + lane();
            weights[j] = weight != nullptr && i < width_or<W>(a.pool.head_dim) ? weight[i] : 1.0F;
            const int pair = a.layout == 0 ? i / 2 : i >= a.half ? i - a.half : i;
            const bool some = turns && i < 2 * a.half;
            cosines[j] = some ? a.cosine[static_cast<std::int64_t>(token) * a.half + pair] : 0.0F;
            sines[j] = some ? a.sine[static_cast<std::int64_t>(token) * a.half + pair] : 0.0F;
        }
    }
};

// A lane's elements of a head.
template <int W>
HR_DEVICE void load_head(const float* from, int width, float (&x)[kHeadShare<W>]) {
    HR_UNROLL
    for (int j = 0; j < kHeadShare<W>; ++j) x[j] = j * kWarp < width ? from[j * kWarp + lane()] : 0.0F;
}

// Leaves the head in `to`, in shared memory. x: its elements, which are used up.
template <int W>
HR_DEVICE void make_head(const HeadArguments& a, const HeadFactors<W>& factors, float (&x)[kHeadShare<W>], float* to) {
    constexpr int kShare = kHeadShare<W>;
    const int width = width_or<W>(a.pool.head_dim);
    float s[kShare];
    HR_UNROLL
    for (int j = 0; j < kShare; ++j) s[j] = fma(x[j], x[j], 0.0F);
    // 256 accumulators, each with at most one square, the others 0: their butterfly.
    HR_UNROLL
    for (int h = kShare / 2; h > 0; h /= 2) {
        HR_UNROLL
        for (int j = 0; j < h; ++j) s[j] = s[j] + s[j + h];
    }
    const float inverse = 1.0F / sqrt(fold_32(s[0]) / static_cast<float>(width) + a.epsilon);
    if constexpr (kShare % 2 == 0) {
        if (W > 0 && a.layout != 0 && 2 * a.half == W) {  // what turns together is in one lane
            HR_UNROLL
            for (int j = 0; j < kShare; ++j) x[j] = factors.weight != nullptr ? (x[j] * inverse) * factors.weights[j] : x[j];
            HR_UNROLL
            for (int j = 0; j < kShare / 2; ++j) {
                const int k = j + kShare / 2;
                to[j * kWarp + lane()] = fma(x[j], factors.cosines[j], -(x[k] * factors.sines[j]));
                to[k * kWarp + lane()] = fma(x[j], factors.sines[k], x[k] * factors.cosines[k]);
            }
            sync_warp();
            return;
        }
    }
    HR_UNROLL
    for (int j = 0; j < kShare; ++j) {
        if (j * kWarp < width) to[j * kWarp + lane()] = factors.weight != nullptr ? (x[j] * inverse) * factors.weights[j] : x[j];
    }
    sync_warp();
    HR_UNROLL
    for (int j = 0; j < kShare; ++j) {
        const int i = j * kWarp + lane();
        if (i >= width || i >= 2 * a.half) continue;
        const bool second = a.layout == 0 ? i % 2 != 0 : i >= a.half;
        const int distance = a.layout == 0 ? 1 : a.half;
        x[j] = second ? fma(to[i - distance], factors.sines[j], to[i] * factors.cosines[j])
                      : fma(to[i], factors.cosines[j], -(to[i + distance] * factors.sines[j]));
    }
    sync_warp();
    HR_UNROLL
    for (int j = 0; j < kShare; ++j) {
        const int i = j * kWarp + lane();
        if (i < width && i < 2 * a.half) to[i] = x[j];
    }
    sync_warp();
}
template <int W>
HR_DEVICE void make_head(const HeadArguments& a, const HeadFactors<W>& factors, const float* from, float* to) {
    float x[kHeadShare<W>];
    load_head<W>(from, width_or<W>(a.pool.head_dim), x);
    make_head<W>(a, factors, x, to);
}

}  // namespace headroom::device
