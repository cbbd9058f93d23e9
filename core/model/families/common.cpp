#include "core/model/families/families.h"

namespace headroom::model {
namespace {

Result<Attention> bind_attention(Weights& weights, const Hyperparameters& model, const Traits& traits, const std::string& block) {
    Attention attention;
    HR_TRY(attention.norm, weights.vector(block + "attn_norm.weight", model.embedding));
    HR_TRY(attention.q, weights.linear(block + "attn_q", model.heads * model.head_dim, model.embedding, traits.qkv_bias));
    HR_TRY(attention.k, weights.linear(block + "attn_k", model.kv_heads * model.head_dim, model.embedding, traits.qkv_bias));
    HR_TRY(attention.v, weights.linear(block + "attn_v", model.kv_heads * model.head_dim_v, model.embedding, traits.qkv_bias));
    HR_TRY(attention.out, weights.linear(block + "attn_output", model.embedding, model.heads * model.head_dim_v, traits.other_bias));
    if (traits.qk_norm) {
        HR_TRY(attention.q_norm, weights.vector(block + "attn_q_norm.weight", model.head_dim));
        HR_TRY(attention.k_norm, weights.vector(block + "attn_k_norm.weight", model.head_dim));
    }
    attention.window = model.window;
    return attention;
}

Result<DenseFeedForward> bind_dense(Weights& weights, const Hyperparameters& model, const Traits& traits, const std::string& block) {
    DenseFeedForward dense;
    HR_TRY(dense.gate, weights.linear(block + "ffn_gate", model.feed_forward, model.embedding, traits.other_bias));
    HR_TRY(dense.up, weights.linear(block + "ffn_up", model.feed_forward, model.embedding, traits.other_bias));
    HR_TRY(dense.down, weights.linear(block + "ffn_down", model.embedding, model.feed_forward, traits.other_bias));
    return dense;
}

Result<MixtureFeedForward> bind_mixture(Weights& weights, const Hyperparameters& model, const std::string& block) {
    MixtureFeedForward mixture;
    mixture.experts = model.experts;
    mixture.used = model.experts_used;
    HR_TRY(mixture.router, weights.matrix(block + "ffn_gate_inp.weight", model.experts, model.embedding));
    HR_TRY(mixture.gate, weights.stack(block + "ffn_gate_exps.weight", model.experts, model.expert_feed_forward, model.embedding));
    HR_TRY(mixture.up, weights.stack(block + "ffn_up_exps.weight", model.experts, model.expert_feed_forward, model.embedding));
    HR_TRY(mixture.down, weights.stack(block + "ffn_down_exps.weight", model.experts, model.embedding, model.expert_feed_forward));
    return mixture;
}

Result<Rope> bind_rope(Weights& weights, const gguf::File& file, const Hyperparameters& model) {
    const std::int64_t half = model.rope.dimensions / 2;
    HR_TRY(const FloatVector factors, weights.optional_vector("rope_freqs.weight", half));
    if (!factors) return Rope(model.rope, {});
    const std::span<const float> values(factors.data(), static_cast<std::size_t>(half));
    for (const float value : values) {
        if (!(value >= kMinRopeFactor && value <= 1e9f)) {
            return fail(ErrorKind::invalid_file, "{}: the tensor \"rope_freqs.weight\" holds the factor {}, expected {} or more",
                        file.name(), value, kMinRopeFactor);
        }
    }
    return Rope(model.rope, values);
}

}  // namespace

Result<Transformer> bind_common(const gguf::File& file, Hyperparameters hyperparameters, const Traits& traits) {
    const Hyperparameters& model = hyperparameters;
    const bool mixture = traits.feed_forward == Traits::FeedForward::mixture ||
                         (traits.feed_forward == Traits::FeedForward::either && model.experts > 0);
    if (mixture ? model.experts == 0 || model.expert_feed_forward == 0 : model.feed_forward == 0) {
        return fail(ErrorKind::invalid_file, "{}: the metadata does not say how {}", file.name(),
                    mixture ? "many experts there are, or how wide" : "wide the feed-forward blocks are");
    }

    Transformer transformer;
    Weights weights(file);
    transformer.rope_layout = traits.rope;
    const gguf::Tensor* tokens = file.find_tensor("token_embd.weight");
    transformer.vocabulary = tokens == nullptr ? 0 : static_cast<std::int64_t>(tokens->shape[1]);
    if (tokens != nullptr && transformer.vocabulary > INT32_MAX) {
        return fail(ErrorKind::invalid_file, "{}: a vocabulary of {} tokens is too large", file.name(), transformer.vocabulary);
    }
    HR_TRY(transformer.embedding, weights.matrix("token_embd.weight", transformer.vocabulary, model.embedding));
    HR_TRY(transformer.output_norm, weights.vector("output_norm.weight", model.embedding));
    transformer.output = transformer.embedding;
    if (weights.has("output.weight")) {
        HR_TRY(transformer.output, weights.matrix("output.weight", transformer.vocabulary, model.embedding));
    }
    HR_TRY(transformer.rope, bind_rope(weights, file, model));
    for (std::int64_t i = 0; i < model.layers; ++i) {
        const std::string block = fmt::format("blk.{}.", i);
        Layer layer;
        HR_TRY(layer.attention, bind_attention(weights, model, traits, block));
        HR_TRY(layer.feed_forward_norm, weights.vector(block + "ffn_norm.weight", model.embedding));
        if (mixture) {
            HR_TRY(layer.feed_forward, bind_mixture(weights, model, block));
        } else {
            HR_TRY(layer.feed_forward, bind_dense(weights, model, traits, block));
        }
        // Old converters wrote the rotation's frequencies, which follow from the metadata.
        weights.ignore(block + "attn_rot_embd.weight");
        weights.ignore(block + "attn_rot_embd");
        transformer.layers.push_back(std::move(layer));
    }
    HR_CHECK(weights.check_all_used());
    transformer.hyperparameters = std::move(hyperparameters);
    return transformer;
}

}  // namespace headroom::model
