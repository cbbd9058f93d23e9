#include "tests/model/synthetic_model.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <span>

namespace headroom::test {
namespace {

template <class T>
void append(std::vector<std::byte>& out, T value) {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    for (const std::byte byte : bytes) out.push_back(byte);
}

std::vector<std::byte> random_weights(gguf::TensorType type, std::uint64_t count, float amplitude, RandomNumbers& random) {
    std::vector<std::byte> data;
    if (type == gguf::TensorType::q8_0) {
        const int exponent = static_cast<int>(std::floor(std::log2(amplitude / 127)));
        for (std::uint64_t block = 0; block < count / 32; ++block) {
            append(data, static_cast<std::uint16_t>((15 + exponent) << 10));  // 2^exponent as a half
            for (int i = 0; i < 32; ++i) append(data, static_cast<std::int8_t>(static_cast<int>(random.below(255)) - 127));
        }
        return data;
    }
    for (std::uint64_t i = 0; i < count; ++i) {
        const float value = random.between(-amplitude, amplitude);
        if (type == gguf::TensorType::bf16) {
            append(data, static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16));
        } else {
            append(data, value);
        }
    }
    return data;
}

std::string utf8(int code) {
    if (code < 128) return std::string(1, static_cast<char>(code));
    return {static_cast<char>(0xC0 | (code >> 6)), static_cast<char>(0x80 | (code & 63))};
}

// The vocabulary of single bytes in the letters that byte-level BPE writes them with.
void add_tokenizer(gguf::Writer& writer) {
    std::vector<std::string> words;
    int unprintable = 0;
    for (int byte = 0; byte < 256; ++byte) {
        const bool plain = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
        words.push_back(utf8(plain ? byte : 256 + unprintable++));
    }
    for (const char* special : {"<|endoftext|>", "<|im_start|>", "<|im_end|>"}) words.emplace_back(special);
    const std::vector<std::string_view> views(words.begin(), words.end());
    std::vector<std::int32_t> types(kSyntheticVocabulary, 1);
    for (std::size_t i = 256; i < types.size(); ++i) types[i] = 3;  // control
    writer.add("tokenizer.ggml.model", "gpt2");
    writer.add("tokenizer.ggml.pre", "qwen2");
    writer.add_strings("tokenizer.ggml.tokens", views);
    writer.add_array("tokenizer.ggml.token_type", std::span<const std::int32_t>(types));
    writer.add_strings("tokenizer.ggml.merges", {});
    writer.add("tokenizer.ggml.eos_token_id", std::uint32_t{258});
    writer.add("tokenizer.ggml.add_bos_token", false);
    writer.add("tokenizer.chat_template",
               "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
               "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}");
}

}  // namespace

std::uint64_t RandomNumbers::next() noexcept {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

float RandomNumbers::between(float low, float high) noexcept {
    return low + (high - low) * static_cast<float>(next() >> 40) * 0x1p-24f;
}

std::vector<std::int32_t> random_tokens(std::size_t count, std::uint64_t seed) {
    RandomNumbers random(seed);
    std::vector<std::int32_t> tokens(count);
    for (std::int32_t& token : tokens) token = static_cast<std::int32_t>(random.below(kSyntheticVocabulary));
    return tokens;
}

gguf::Writer synthetic_writer(const SyntheticModel& model) {
    gguf::Writer writer;
    RandomNumbers random(model.seed);
    const auto number = [&](const char* key, int value) { writer.add(model.family + "." + key, static_cast<std::uint32_t>(value)); };
    writer.add("general.architecture", model.family);
    writer.add("general.name", "synthetic");
    number("block_count", model.layers);
    number("context_length", model.context);
    number("embedding_length", model.embedding);
    number("feed_forward_length", model.feed_forward);
    number("attention.head_count", model.heads);
    number("attention.head_count_kv", model.kv_heads);
    number("attention.key_length", model.head_dim);
    number("attention.value_length", model.head_dim);
    if (model.window > 0) number("attention.sliding_window", model.window);
    writer.add(model.family + ".attention.layer_norm_rms_epsilon", 1e-6f);
    writer.add(model.family + ".rope.freq_base", 1000.0f);
    if (model.rope_dimensions > 0) number("rope.dimension_count", model.rope_dimensions);
    if (!model.scaling.empty()) {
        writer.add(model.family + ".rope.scaling.type", model.scaling);
        writer.add(model.family + ".rope.scaling.factor", model.factor);
        number("rope.scaling.original_context_length", model.original_context);
    }
    if (model.experts > 0) {
        number("expert_count", model.experts);
        number("expert_used_count", model.experts_used);
        number("expert_feed_forward_length", model.feed_forward);
    }
    add_tokenizer(writer);

    const auto matrix = [&](const std::string& name, int rows, int cols, int count = 0) {
        std::vector<std::uint64_t> shape{static_cast<std::uint64_t>(cols), static_cast<std::uint64_t>(rows)};
        if (count > 0) shape.push_back(static_cast<std::uint64_t>(count));
        const auto elements = static_cast<std::uint64_t>(cols) * static_cast<std::uint64_t>(rows) * static_cast<std::uint64_t>(std::max(1, count));
        const float amplitude = 2.0f / std::sqrt(static_cast<float>(cols));
        writer.add_tensor(name, model.type, shape, random_weights(model.type, elements, amplitude, random));
    };
    const auto vector = [&](const std::string& name, int n, float low, float high) {
        std::vector<std::byte> data;
        for (int i = 0; i < n; ++i) append(data, random.between(low, high));
        writer.add_tensor(name, gguf::TensorType::f32, {static_cast<std::uint64_t>(n)}, std::move(data));
    };
    const auto linear = [&](const std::string& name, int rows, int cols, bool bias) {
        matrix(name + ".weight", rows, cols);
        if (bias) vector(name + ".bias", rows, -0.5f, 0.5f);
    };
    matrix("token_embd.weight", kSyntheticVocabulary, model.embedding);
    if (!model.tied) matrix("output.weight", kSyntheticVocabulary, model.embedding);
    vector("output_norm.weight", model.embedding, 0.5f, 1.5f);
    if (model.rope_factors) vector("rope_freqs.weight", (model.rope_dimensions > 0 ? model.rope_dimensions : model.head_dim) / 2, 1, 8);
    for (int i = 0; i < model.layers; ++i) {
        const std::string block = "blk." + std::to_string(i) + ".";
        vector(block + "attn_norm.weight", model.embedding, 0.5f, 1.5f);
        linear(block + "attn_q", model.heads * model.head_dim, model.embedding, model.qkv_bias);
        linear(block + "attn_k", model.kv_heads * model.head_dim, model.embedding, model.qkv_bias);
        linear(block + "attn_v", model.kv_heads * model.head_dim, model.embedding, model.qkv_bias);
        linear(block + "attn_output", model.embedding, model.heads * model.head_dim, model.other_bias);
        if (model.qk_norm) {
            vector(block + "attn_q_norm.weight", model.head_dim, 0.5f, 1.5f);
            vector(block + "attn_k_norm.weight", model.head_dim, 0.5f, 1.5f);
        }
        vector(block + "ffn_norm.weight", model.embedding, 0.5f, 1.5f);
        if (model.experts > 0) {
            matrix(block + "ffn_gate_inp.weight", model.experts, model.embedding);
            matrix(block + "ffn_gate_exps.weight", model.feed_forward, model.embedding, model.experts);
            matrix(block + "ffn_up_exps.weight", model.feed_forward, model.embedding, model.experts);
            matrix(block + "ffn_down_exps.weight", model.embedding, model.feed_forward, model.experts);
        } else {
            linear(block + "ffn_gate", model.feed_forward, model.embedding, model.other_bias);
            linear(block + "ffn_up", model.feed_forward, model.embedding, model.other_bias);
            linear(block + "ffn_down", model.embedding, model.feed_forward, model.other_bias);
        }
    }
    return writer;
}

std::vector<std::byte> synthetic_bytes(const SyntheticModel& model) {
    auto bytes = synthetic_writer(model).bytes();
    if (!bytes) std::abort();  // shapes that no model has
    return std::move(*bytes);
}

}  // namespace headroom::test
