#include "core/model/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/model/portable_math.h"

namespace headroom::model {
namespace {

// The (fractional) index of the pair that makes `turns` turns over the original context.
double yarn_index(const RopeParameters& rope, double turns) {
    const double n = static_cast<double>(rope.dimensions);
    return n * portable_log(rope.original_context / (turns * 2 * std::numbers::pi)) / (2 * portable_log(rope.base));
}

}  // namespace

Rope::Rope(const RopeParameters& parameters, std::span<const float> factors) : magnitude_(parameters.attention_factor) {
    const std::int64_t half = parameters.dimensions / 2;
    const double n = static_cast<double>(parameters.dimensions);
    const double log_base = portable_log(parameters.base);
    double low = 0;
    double high = 0;
    if (parameters.scaling == RopeScaling::yarn && log_base > 0) {
        low = std::max(0.0, std::floor(yarn_index(parameters, parameters.beta_fast)));
        high = std::min(n - 1, std::ceil(yarn_index(parameters, parameters.beta_slow)));
        if (parameters.extrapolation != 0) magnitude_ *= 1 + 0.1 * portable_log(parameters.factor);
    }
    frequencies_.resize(static_cast<std::size_t>(half));
    for (std::int64_t i = 0; i < half; ++i) {
        const auto index = static_cast<double>(i);
        const double plain = portable_exp(-2 * index / n * log_base) / (factors.empty() ? 1.0 : factors[static_cast<std::size_t>(i)]);
        double frequency = plain;
        if (parameters.scaling == RopeScaling::linear) {
            frequency = plain / parameters.factor;
        } else if (parameters.scaling == RopeScaling::yarn) {
            const double ramp = std::clamp((index - low) / std::max(0.001, high - low), 0.0, 1.0);
            const double unscaled = (1 - ramp) * parameters.extrapolation;
            frequency = plain / parameters.factor * (1 - unscaled) + plain * unscaled;
        }
        frequencies_[static_cast<std::size_t>(i)] = frequency;
    }
}

void Rope::fill(std::int64_t first_position, std::int64_t tokens, float* cosine, float* sine) const noexcept {
    for (std::int64_t t = 0; t < tokens; ++t) {
        const auto position = static_cast<double>(first_position + t);
        for (const double frequency : frequencies_) {
            const SineCosine angle = portable_sincos(position * frequency);
            *cosine++ = static_cast<float>(angle.cosine * magnitude_);
            *sine++ = static_cast<float>(angle.sine * magnitude_);
        }
    }
}

}  // namespace headroom::model
