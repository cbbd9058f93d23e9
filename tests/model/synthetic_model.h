#pragma once

// Small models with random weights, for every option a family has, as GGUF files with a byte tokenizer and a chat template.

#include <cstdint>
#include <string>
#include <vector>

#include "core/gguf/types.h"
#include "core/gguf/writer.h"

namespace headroom::test {

struct SyntheticModel {
    std::string family = "llama";
    int layers = 2;
    int embedding = 32;
    int heads = 4;
    int kv_heads = 2;
    int head_dim = 16;          // not embedding / heads: the file says so
    int feed_forward = 64;
    int experts = 0;
    int experts_used = 0;
    int context = 1024;
    bool qkv_bias = false;
    bool other_bias = false;
    bool qk_norm = false;
    bool tied = false;
    int window = 0;
    int rope_dimensions = 0;    // 0: head_dim
    std::string scaling = "";   // rope.scaling.type; empty: no such key
    float factor = 4;
    int original_context = 64;
    bool rope_factors = false;  // the tensor rope_freqs.weight
    gguf::TensorType type = gguf::TensorType::f32;  // of matrices: F32, BF16 or Q8_0
    std::uint64_t seed = 1;
};

// 256 bytes, then <|endoftext|>, <|im_start|>, <|im_end|> (the end of an answer).
inline constexpr int kSyntheticVocabulary = 259;

[[nodiscard]] gguf::Writer synthetic_writer(const SyntheticModel& model);
[[nodiscard]] std::vector<std::byte> synthetic_bytes(const SyntheticModel& model);

// Numbers that are the same on every system.
class RandomNumbers {
public:
    explicit RandomNumbers(std::uint64_t seed) : state_(seed) {}
    [[nodiscard]] std::uint64_t next() noexcept;
    [[nodiscard]] std::uint64_t below(std::uint64_t limit) noexcept { return next() % limit; }
    [[nodiscard]] float between(float low, float high) noexcept;

private:
    std::uint64_t state_;
};

// Random ids of the synthetic vocabulary.
[[nodiscard]] std::vector<std::int32_t> random_tokens(std::size_t count, std::uint64_t seed);

}  // namespace headroom::test
