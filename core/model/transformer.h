#pragma once

// A transformer as the families here share it: described by its weights, where they lie in the mapped file. The forward pass
// (forward.h) runs what this describes; a family (family.h) says how a file's tensors make one.
//
// Shapes are [rows, columns] as in core/compute/cpu/ops.h: a matrix takes `columns` inputs to `rows` outputs.

#include <cstdint>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/error.h"
#include "core/compute/cpu/matrix.h"
#include "core/compute/cpu/ops.h"
#include "core/model/hyperparameters.h"
#include "core/model/kv_cache.h"
#include "core/model/rope.h"

namespace headroom::model {

// A small float vector (a norm's weight, a bias): in the file where it is F32, else converted. Absent: data() is null.
class FloatVector {
public:
    FloatVector() = default;
    explicit FloatVector(const float* in_file) : data_(in_file) {}
    explicit FloatVector(std::vector<float> converted) : owned_(std::move(converted)), data_(owned_.data()) {}
    FloatVector(FloatVector&&) noexcept = default;             // a vector's elements stay where they are when it moves
    FloatVector& operator=(FloatVector&&) noexcept = default;

    [[nodiscard]] const float* data() const noexcept { return data_; }
    explicit operator bool() const noexcept { return data_ != nullptr; }

private:
    std::vector<float> owned_;
    const float* data_ = nullptr;
};

// A matrix product with an optional bias.
struct Linear {
    cpu::Matrix weight;
    FloatVector bias;  // [weight.rows]
};

struct Attention {
    FloatVector norm;    // [embedding]
    Linear q;            // [heads * head_dim, embedding]
    Linear k;            // [kv_heads * head_dim, embedding]
    Linear v;            // [kv_heads * head_dim_v, embedding]
    Linear out;          // [embedding, heads * head_dim_v]
    FloatVector q_norm;  // [head_dim], of each head before the rotation; optional
    FloatVector k_norm;  // [head_dim]
    std::int64_t window = 0;  // sliding window; 0: none
};

// down(silu(gate(x)) * up(x)).
struct DenseFeedForward {
    Linear gate;  // [feed_forward, embedding]
    Linear up;    // [feed_forward, embedding]
    Linear down;  // [embedding, feed_forward]
};

// The same for a few chosen experts of many; their outputs are summed with the router's weights.
struct MixtureFeedForward {
    cpu::Matrix router;   // [experts, embedding]
    cpu::Matrix gate;     // the first of `experts` matrices [expert_feed_forward, embedding], one behind the other
    cpu::Matrix up;       // the same
    cpu::Matrix down;     // … [embedding, expert_feed_forward]
    std::int64_t experts = 0;
    std::int64_t used = 0;
    bool normalize = true;  // the weights of the chosen ones sum to 1
};

struct Layer {
    Attention attention;
    FloatVector feed_forward_norm;  // [embedding]
    std::variant<DenseFeedForward, MixtureFeedForward> feed_forward;
};

struct Transformer {
    Hyperparameters hyperparameters;
    cpu::RopeLayout rope_layout = cpu::RopeLayout::halves;
    Rope rope;
    std::int64_t vocabulary = 0;
    cpu::Matrix embedding;    // [vocabulary, embedding]: row i is token i
    std::vector<Layer> layers;
    FloatVector output_norm;  // [embedding]
    cpu::Matrix output;       // [vocabulary, embedding]; the embedding itself where the file has no other
    cpu::KvType kv_type = cpu::KvType::f16;  // how its sessions' keys and values are kept; q8_0 only where cpu::can_quantize_kv

    [[nodiscard]] KvShape kv_shape() const noexcept {
        return {.layers = hyperparameters.layers, .kv_heads = hyperparameters.kv_heads, .head_dim = hyperparameters.head_dim,
                .head_dim_v = hyperparameters.head_dim_v, .type = kv_type};
    }
};

// Has the sessions' keys and values kept so. Error: unsupported, where the heads' widths do not allow it.
[[nodiscard]] Result<> set_kv_type(Transformer& transformer, cpu::KvType type);

// Errors: invalid_argument, naming the first id that is not in the vocabulary.
[[nodiscard]] Result<> check_tokens(const Transformer& transformer, std::span<const std::int32_t> tokens);

}  // namespace headroom::model
