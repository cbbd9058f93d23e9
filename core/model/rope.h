#pragma once

// Rotary position embeddings: the angles of a batch's positions.
//
// Pair i of n/2 turns by position * f_i, with f_i = base^(-2i/n) / factor_i. factor_i comes from the tensor rope_freqs.weight (Llama
// 3's extension), else it is 1. Linear scaling divides all f_i by the factor s. YaRN (Peng et al., 2023, section 3) divides the slow
// pairs only: with d(r) = n * ln(L / (2 pi r)) / (2 ln base), the pair that makes r turns over the original context L, a ramp from
// floor(d(beta_fast)) to ceil(d(beta_slow)) leads from f_i to f_i / s, and cos and sin are multiplied by 1 + 0.1 ln s.

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/error.h"
#include "core/model/hyperparameters.h"

namespace headroom::model {

class Rope {
public:
    Rope() = default;
    // factors: [dimensions / 2], or empty. They must be at least kMinRopeFactor.
    Rope(const RopeParameters& parameters, std::span<const float> factors);

    [[nodiscard]] std::int64_t half() const noexcept { return static_cast<std::int64_t>(frequencies_.size()); }
    [[nodiscard]] double magnitude() const noexcept { return magnitude_; }              // multiplies cos and sin
    [[nodiscard]] std::span<const double> frequencies() const noexcept { return frequencies_; }  // f_i, scaled

    // cosine, sine: [tokens, half()], for the positions first_position … first_position + tokens - 1. Computed in double by
    // portable_math.h, rounded to float.
    void fill(std::int64_t first_position, std::int64_t tokens, float* cosine, float* sine) const noexcept;

private:
    std::vector<double> frequencies_;
    double magnitude_ = 1;
};

}  // namespace headroom::model
