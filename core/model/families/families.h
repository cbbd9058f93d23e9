#pragma once

// What the files of this folder give to the list in ../family.cpp, and what they share.

#include "core/model/family.h"
#include "core/model/weights.h"

namespace headroom::model {

[[nodiscard]] Result<Transformer> bind_llama(const gguf::File& file, Hyperparameters hyperparameters);
[[nodiscard]] Result<Transformer> bind_qwen2(const gguf::File& file, Hyperparameters hyperparameters);
[[nodiscard]] Result<Transformer> bind_qwen3(const gguf::File& file, Hyperparameters hyperparameters);
[[nodiscard]] Result<Transformer> bind_qwen3moe(const gguf::File& file, Hyperparameters hyperparameters);

inline constexpr Family kLlama{"llama", bind_llama};
inline constexpr Family kQwen2{"qwen2", bind_qwen2};
inline constexpr Family kQwen3{"qwen3", bind_qwen3};
inline constexpr Family kQwen3Moe{"qwen3moe", bind_qwen3moe};

// Where the families differ.
struct Traits {
    enum class FeedForward : std::uint8_t { dense, mixture, either };  // either: a mixture where the file names experts
    cpu::RopeLayout rope = cpu::RopeLayout::halves;
    Weights::Bias qkv_bias = Weights::Bias::none;
    Weights::Bias other_bias = Weights::Bias::none;  // of the attention's output and of a dense feed-forward block
    bool qk_norm = false;
    FeedForward feed_forward = FeedForward::dense;
};

// Binds a transformer of the common kind: pre-norm blocks of attention and feed-forward, tied or untied output, frequency factors
// where the file has them.
[[nodiscard]] Result<Transformer> bind_common(const gguf::File& file, Hyperparameters hyperparameters, const Traits& traits);

}  // namespace headroom::model
