#pragma once

// The numbers that describe a transformer, read from a file's metadata and checked. Key names: the GGUF specification; "{family}"
// below stands for general.architecture.

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/error.h"
#include "core/gguf/file.h"

namespace headroom::model {

// Smaller factors, of the whole scaling or of one frequency, are taken for damage.
inline constexpr double kMinRopeFactor = 0.125;

enum class RopeScaling : std::uint8_t { none, linear, yarn };

struct RopeParameters {
    std::int64_t dimensions = 0;       // elements of a head that are rotated: even, at most head_dim
    double base = 10000;               // {family}.rope.freq_base
    RopeScaling scaling = RopeScaling::none;
    double factor = 1;                 // context extension: 4 reads four times the original context; at least 1/8
    double original_context = 0;       // of the training before the extension (YaRN)
    double attention_factor = 1;       // multiplies cos and sin (YaRN: on top of its own)
    double extrapolation = 1;          // YaRN's share of the unscaled angles, 0 to 1
    double beta_fast = 32;             // YaRN's ramp: rotations over the original context
    double beta_slow = 1;
};

struct Hyperparameters {
    std::string family;
    std::int64_t layers = 0;
    std::int64_t embedding = 0;
    std::int64_t context = 0;          // trained
    std::int64_t heads = 0;
    std::int64_t kv_heads = 0;         // divides heads
    std::int64_t head_dim = 0;         // of q and k
    std::int64_t head_dim_v = 0;
    std::int64_t feed_forward = 0;     // width of a dense feed-forward block; 0 if the file does not say
    std::int64_t experts = 0;          // 0: dense
    std::int64_t experts_used = 0;
    std::int64_t expert_feed_forward = 0;
    std::int64_t window = 0;           // sliding window in positions; 0: none
    float epsilon = 0;                 // of the RMS norms
    float attention_scale = 0;         // multiplies scores
    RopeParameters rope;
};

// Reads and checks them. Every number is inside a range that later sizes can be computed from without overflow; whether tensors have
// these shapes is checked where they are bound (weights.h). Errors: invalid_file, unsupported (a scaling nobody here knows).
[[nodiscard]] Result<Hyperparameters> read_hyperparameters(const gguf::File& file);

}  // namespace headroom::model
