#include <algorithm>
#include <limits>

#include "core/compute/cpu/arithmetic.h"
#include "core/compute/cpu/ops.h"
#include "core/compute/cpu/reference.h"

namespace headroom::cpu {

// The probabilities of the chosen experts only: exp(score - max) / sum, with the sum over all scores, as in softmax. The choice is
// made on the scores: equal scores have equal probabilities, so the order is the same.
void route(const float* scores, std::int64_t tokens, std::int64_t n, std::int64_t used, bool normalize, std::int32_t* experts, float* weights) {
    for (std::int64_t t = 0; t < tokens; ++t, scores += n, experts += used, weights += used) {
        for (std::int64_t rank = 0; rank < used; ++rank) {
            std::int64_t best = -1;
            for (std::int64_t i = 0; i < n; ++i) {
                if (best >= 0 && !(scores[i] > scores[best])) continue;
                if (std::find(experts, experts + rank, static_cast<std::int32_t>(i)) == experts + rank) best = i;
            }
            experts[rank] = static_cast<std::int32_t>(best);
        }
        const float largest = scores[experts[0]];
        float sums[32] = {};
        for (std::int64_t i = 0; i < n; ++i) sums[i % 32] += exp_value(scores[i] - largest);
        const float total = reference::fold(sums);
        float chosen = 0;
        for (std::int64_t rank = 0; rank < used; ++rank) {
            weights[rank] = exp_value(scores[experts[rank]] - largest) / total;
            chosen += weights[rank];
        }
        for (std::int64_t rank = 0; normalize && rank < used; ++rank) weights[rank] = weights[rank] / chosen;
    }
}

}  // namespace headroom::cpu
