#include <algorithm>
#include <limits>

#include "core/compute/cpu/arithmetic.h"
#include "core/compute/cpu/ops.h"
#include "core/compute/cpu/reference.h"

namespace headroom::cpu {

void softmax(float* x, std::int64_t n) { reference::softmax(x, n); }

float exp(float x) { return exp_value(x); }

std::int64_t argmax(const float* x, std::int64_t n) {
    std::int64_t best = 0;
    for (std::int64_t i = 1; i < n; ++i) {
        if (x[i] > x[best]) best = i;
    }
    return best;
}

}  // namespace headroom::cpu
