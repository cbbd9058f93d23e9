// What a step returns to the host instead of all logits.

#include "kernels/arguments.h"
#include "kernels/arithmetic.h"

using namespace headroom::device;

// One block of 1,024 threads to a row: each thread walks its own stride upwards, so that it keeps the lowest index among equals.
HR_KERNEL(argmax_rows, ArgmaxArguments, 1024) {
    __shared__ float best_value[32];
    __shared__ int best_index[32];
    const float* x = a.x + static_cast<std::int64_t>(block_x()) * a.n;
    float value = bits_to_float(0xff800000U);
    int index = 0x7fffffff;
    for (int i = thread(); i < a.n; i += threads()) {
        if (x[i] > value || index == 0x7fffffff) {
            value = x[i];
            index = i;
        }
    }
    const auto better = [](float v, int i, float than, int at) { return v > than || (v == than && i < at); };
    const auto fold = [&] {
        for (int h = 16; h > 0; h >>= 1) {
            const float other = shuffle_xor(value, h);
            const int at = shuffle_xor(index, h);
            if (better(other, at, value, index)) {
                value = other;
                index = at;
            }
        }
    };
    fold();
    if (lane() == 0) {
        best_value[warp()] = value;
        best_index[warp()] = index;
    }
    sync();
    if (warp() != 0) return;
    value = best_value[lane()];
    index = best_index[lane()];
    fold();
    if (lane() == 0) a.out[block_x()] = index;
}
