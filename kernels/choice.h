#pragma once

// A router's choice of experts.

#include "kernels/arithmetic.h"
#include "kernels/code_tiles.h"

namespace headroom::device {

inline constexpr int kMostExperts = 512;
inline constexpr int kMostUsed = 16;

// What is no number counts as the smallest score: every rank then belongs to one expert, whatever the scores are.
HR_DEVICE float ordered(float score) { return score == score ? score : bits_to_float(0xff800000U); }

// cpu::route for one token, in two parts. The choice, by a block of at least 32 threads: scores: ordered, in shared memory; picked: the scores of
// the chosen, in shared memory. Ends with a barrier.
HR_DEVICE void choose(const float* scores, int experts, int used, std::int32_t* chosen, float* picked) {
    // An expert's rank is the number of those before it; neighbouring lanes count them together.
    int parts = 1;
    while (parts < 8 && 2 * parts * experts <= threads()) parts *= 2;
    const int part = thread() & (parts - 1);
    for (int base = 0; base < experts; base += threads() / parts) {
        const int i = base + thread() / parts;
        const float score = scores[i < experts ? i : 0];
        int rank = 0;
#pragma unroll 8
        for (int j = part; j < experts; j += parts) {
            const float other = scores[j];
            rank += other > score || (other == score && j < i) ? 1 : 0;
        }
        for (int h = 1; h < parts; h *= 2) rank += shuffle_xor(rank, h);
        if (part == 0 && i < experts && rank < used) {
            chosen[rank] = i;
            picked[rank] = score;
        }
    }
    sync();
}

#if defined(HR_CODE_TILES)

// The same choice by one warp, of at most 32 * kEach experts. scores: not ordered; chosen, picked: in shared memory, for the same warp.
template <int kEach>
HR_DEVICE void choose_by_warp(const float* scores, int experts, int used, std::int32_t* chosen, float* picked) {
    // Numbers in the order of the scores; 0: there is none, or it has been chosen.
    std::uint32_t keys[kEach];
    HR_UNROLL
    for (int k = 0; k < kEach; ++k) {
        const int i = lane() + k * kWarp;
        const float score = i < experts ? ordered(scores[i]) : 0.0F;
        const std::uint32_t bits = float_to_bits(score == 0 ? 0.0F : score);
        keys[k] = i < experts ? ((bits >> 31) != 0 ? ~bits : bits | 0x80000000U) : 0;
    }
    for (int rank = 0; rank < used; ++rank) {
        std::uint32_t best = keys[0];
        HR_UNROLL
        for (int k = 1; k < kEach; ++k) best = keys[k] > best ? keys[k] : best;
        best = largest_32(best);
        auto first = static_cast<std::uint32_t>(kWarp * kEach);
        HR_UNROLL
        for (int k = kEach - 1; k >= 0; --k) first = keys[k] == best ? static_cast<std::uint32_t>(lane() + k * kWarp) : first;
        first = smallest_32(first);
        HR_UNROLL
        for (int k = 0; k < kEach; ++k) keys[k] = first == static_cast<std::uint32_t>(lane() + k * kWarp) ? 0 : keys[k];
        if (lane() == 0) {
            chosen[rank] = static_cast<std::int32_t>(first);
            picked[rank] = bits_to_float((best >> 31) != 0 ? best & 0x7fffffffU : ~best);
        }
    }
    sync_warp();
}

#endif

// Their shares, by one warp. counts: one more for each of the chosen; or null.
HR_DEVICE void share_out(const float* scores, const float* picked, const std::int32_t* chosen, int experts, int used, bool normalize, float* shares,
                         std::int32_t* counts) {
    const float largest = picked[0];
    float sum = 0;
    for (int i = lane(); i < experts; i += kWarp) sum = sum + exp_value(scores[i] - largest);
    const float total = fold_32(sum);
    float share = lane() < used ? exp_value(picked[lane()] - largest) / total : 0.0F;
    if (normalize) {
        float of_chosen = 0;
        for (int rank = 0; rank < used; ++rank) of_chosen = of_chosen + shuffle(share, rank);
        share = share / of_chosen;
    }
    if (lane() >= used) return;
    shares[lane()] = share;
    if (counts != nullptr) atomic_add(counts + chosen[lane()], 1);
}

}  // namespace headroom::device
