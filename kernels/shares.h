#pragma once

// Rows of activations, a share to each lane: RMS norms and the quantized forms that products read.

#include "kernels/arguments.h"
#include "kernels/arithmetic.h"

namespace headroom::device {

using kernels::Quantized;

// A lane's share of a row: a warp takes 256 neighbouring elements, so that either kind of group lies within a warp.
inline constexpr int kShare = 8;

struct alignas(16) Four {
    float x[4];
};
struct alignas(8) Codes {
    std::uint32_t x[2];
};

// The lane's share that begins at `first` of a row of n; zero behind the row's end. Whole vectors where rows stay aligned.
HR_DEVICE void load_share(const float* row, int first, int n, float (&v)[kShare]) {
    if (n % 4 == 0 && first + kShare <= n) {
        const Four* from = reinterpret_cast<const Four*>(row + first);
        const Four low = from[0], high = from[1];
        HR_UNROLL
        for (int i = 0; i < 4; ++i) {
            v[i] = low.x[i];
            v[i + 4] = high.x[i];
        }
    } else {
        HR_UNROLL
        for (int i = 0; i < kShare; ++i) v[i] = first + i < n ? row[first + i] : 0.0F;
    }
}

HR_DEVICE void store_share(float* row, int first, int n, const float (&v)[kShare]) {
    if (n % 4 == 0 && first + kShare <= n) {
        Four* to = reinterpret_cast<Four*>(row + first);
        to[0] = {{v[0], v[1], v[2], v[3]}};
        to[1] = {{v[4], v[5], v[6], v[7]}};
    } else {
        HR_UNROLL
        for (int i = 0; i < kShare; ++i) {
            if (first + i < n) row[first + i] = v[i];
        }
    }
}

// Quantizes the shares of `lanes` neighbouring lanes (32 or 4) as one group and stores the lane's part. All lanes of the warp come here;
// n is a multiple of the group, so a lane behind the row's end belongs to no group that has elements.
HR_DEVICE void quantize_share(const Quantized& to, std::int64_t row, int first, int n, int lanes, const float (&v)[kShare]) {
    float largest = 0;
    HR_UNROLL
    for (int i = 0; i < kShare; ++i) {
        const float magnitude = v[i] < 0 ? -v[i] : v[i];
        largest = magnitude > largest ? magnitude : largest;
    }
    for (int h = 1; h < lanes; h *= 2) {
        const float other = shuffle_xor(largest, h);
        largest = other > largest ? other : largest;
    }
    const bool some = largest >= kSmallestGroup;
    const float inverse = some ? 127.0F / largest : 0.0F;
    Codes codes = {{0, 0}};
    HR_UNROLL
    for (int i = 0; i < kShare; ++i) {
        const int code = static_cast<int>(rint(v[i] * inverse));
        codes.x[i / 4] |= static_cast<std::uint32_t>(code & 255) << (i % 4 * 8);
    }
    int sum = dot4(static_cast<int>(codes.x[0]), 0x01010101, dot4(static_cast<int>(codes.x[1]), 0x01010101, 0));
    sum += shuffle_xor(sum, 1);
    if (first >= n) return;
    *reinterpret_cast<Codes*>(to.codes + row * n + first) = codes;
    if (lane() % 2 == 0) to.sums[row * (n / 16) + first / 16] = static_cast<std::int16_t>(sum);
    if (lane() % lanes == 0) to.scales[row * (n / (lanes * kShare)) + first / (lanes * kShare)] = some ? largest / 127.0F : 0.0F;
}

// Stores a share in every form that is wanted.
HR_DEVICE void store_forms(float* out, const Quantized& groups_256, const Quantized& groups_32, std::int64_t row, int first, int n,
                           const float (&v)[kShare]) {
    if (out != nullptr) store_share(out + row * n, first, n, v);
    if (groups_256.codes != nullptr) quantize_share(groups_256, row, first, n, 32, v);
    if (groups_32.codes != nullptr) quantize_share(groups_32, row, first, n, 4, v);
}

// The sum of a row's squares in the order of docs/arithmetic.md, in every thread. The first 256 threads of the block hold an accumulator each.
HR_DEVICE float sum_of_squares(const float* x, int n) {
    __shared__ float sums[256];
    if (thread() < 256) {
        float s = 0;
#pragma unroll 8
        for (int i = thread(); i < n; i += 256) s = fma(x[i], x[i], s);
        sums[thread()] = s;
    }
    sync();
    const float* s = sums + lane();
    const float first = (s[0] + s[128]) + (s[64] + s[192]);
    const float second = (s[32] + s[160]) + (s[96] + s[224]);
    return fold_32(first + second);
}

}  // namespace headroom::device
