#include "core/model/forward.h"

#include <algorithm>
#include <array>
#include <new>
#include <vector>

#include "core/base/bytes.h"
#include "core/model/grow.h"

namespace headroom::model {
namespace {

// Elements of the scratch buffers for so many tokens: what allocate() makes and what the estimate counts.
struct ScratchShape {
    std::int64_t residual = 0;
    std::int64_t q = 0;
    std::int64_t k = 0;
    std::int64_t v = 0;
    std::int64_t heads = 0;
    std::int64_t hidden = 0;          // gate and up of a dense block
    std::int64_t expert_hidden = 0;   // the same of the chosen experts
    std::int64_t expert_outputs = 0;
    std::int64_t angles = 0;
    std::int64_t scores = 0;
    std::int64_t chosen = 0;

    ScratchShape(const Transformer& transformer, std::int64_t tokens) {
        const Hyperparameters& model = transformer.hyperparameters;
        residual = tokens * model.embedding;
        q = tokens * model.heads * model.head_dim;
        k = tokens * model.kv_heads * model.head_dim;
        v = tokens * model.kv_heads * model.head_dim_v;
        heads = tokens * model.heads * model.head_dim_v;
        angles = tokens * transformer.rope.half();
        for (const Layer& layer : transformer.layers) {
            if (const auto* mixture = std::get_if<MixtureFeedForward>(&layer.feed_forward)) {
                chosen = std::max(chosen, tokens * mixture->used);
                scores = std::max(scores, tokens * mixture->experts);
                expert_hidden = std::max(expert_hidden, tokens * mixture->used * mixture->gate.rows);
            } else {
                hidden = std::max(hidden, tokens * std::get<DenseFeedForward>(layer.feed_forward).gate.weight.rows);
            }
        }
        expert_outputs = chosen * model.embedding;
    }
};

std::unexpected<Error> no_memory(const Transformer& transformer) {
    return fail(ErrorKind::out_of_memory, "There is not enough memory to compute: {} are needed beside the model",
                format_bytes(Forward::scratch_bytes(transformer, Forward::kMaxTokens)));
}

}  // namespace

Forward::Forward(const Transformer& transformer, ThreadPool& pool) : transformer_(transformer), pool_(pool), experts_(pool) {}

std::uint64_t Forward::scratch_bytes(const Transformer& transformer, std::int64_t context) noexcept {
    const ScratchShape shape(transformer, std::min(context, kMaxTokens));
    const std::int64_t floats = 2 * shape.residual + shape.q + shape.k + shape.v + shape.heads + 2 * (shape.hidden + shape.expert_hidden) + shape.expert_outputs +
                                2 * shape.angles + shape.scores + 4 * shape.chosen + kMaxLogitRows * transformer.vocabulary;
    // Beside each float that a product reads stands its quantized form: a byte and its share of a scale.
    const std::int64_t quantized = (std::max({shape.residual, shape.heads, shape.hidden}) + shape.expert_hidden) * 2;
    const std::int64_t pointers = shape.chosen * static_cast<std::int64_t>(sizeof(float*));
    return static_cast<std::uint64_t>(floats * static_cast<std::int64_t>(sizeof(float)) + quantized + pointers);
}

void Forward::allocate(std::int64_t tokens, std::size_t logit_rows) {
    const ScratchShape shape(transformer_, tokens);
    grow(x_, shape.residual);
    grow(normed_, shape.residual);
    grow(q_, shape.q);
    grow(k_, shape.k);
    grow(v_, shape.v);
    grow(heads_, shape.heads);
    grow(gate_, shape.hidden);
    grow(up_, shape.hidden);
    grow(cosine_, shape.angles);
    grow(sine_, shape.angles);
    grow(scores_, shape.scores);
    grow(chosen_, shape.chosen);
    grow(shares_, shape.chosen);
    const std::int64_t rows = std::min<std::int64_t>(kMaxLogitRows, static_cast<std::int64_t>(logit_rows));
    grow(logits_, rows * transformer_.vocabulary);
}

Result<> Forward::run(const Batch& batch, LogitsSink sink, std::stop_token stop) try {
    const Part part{.cache = batch.cache, .tokens = static_cast<std::int64_t>(batch.tokens.size())};
    HR_CHECK(read(batch.tokens, std::span(&part, 1), batch.rows.size(), all_layers(), {}, stop));
    batch.cache.set_length(batch.cache.length() + part.tokens);
    logits(batch.rows, sink);
    return {};
} catch (const std::bad_alloc&) {
    return no_memory(transformer_);
}

Result<> Forward::run_together(std::span<const Step> steps, LogitsSink sink, std::stop_token stop) try {
    std::vector<std::int32_t> tokens, rows;
    std::vector<Part> parts;
    for (const Step& step : steps) {
        const auto row = static_cast<std::int32_t>(tokens.size());
        tokens.push_back(step.token);
        rows.push_back(row);
        parts.push_back({.cache = step.cache, .first = row, .tokens = 1});
    }
    HR_CHECK(read(tokens, parts, rows.size(), all_layers(), {}, stop));
    for (const Part& part : parts) part.cache.set_length(part.cache.length() + 1);
    logits(rows, sink);
    return {};
} catch (const std::bad_alloc&) {
    return no_memory(transformer_);
}

Result<> Forward::run_hidden(const Batch& batch, FunctionRef<void(std::int32_t, std::span<const float>)> sink, std::stop_token stop) try {
    const Part part{.cache = batch.cache, .tokens = static_cast<std::int64_t>(batch.tokens.size())};
    HR_CHECK(read(batch.tokens, std::span(&part, 1), 0, all_layers(), {}, stop));
    batch.cache.set_length(batch.cache.length() + part.tokens);
    norm_rows(batch.rows);
    const auto width = static_cast<std::size_t>(transformer_.hyperparameters.embedding);
    for (std::size_t i = 0; i < batch.rows.size(); ++i) sink(batch.rows[i], std::span(normed_).subspan(i * width, width));
    return {};
} catch (const std::bad_alloc&) {
    return no_memory(transformer_);
}

Result<std::span<const float>> Forward::run_layers(const Run& layers, const Batch& batch, std::span<const float> x, LogitsSink sink,
                                                   std::stop_token stop) try {
    const Part part{.cache = batch.cache, .tokens = static_cast<std::int64_t>(batch.tokens.size())};
    const bool last = layers.last == all_layers().last;
    HR_CHECK(read(batch.tokens, std::span(&part, 1), last ? batch.rows.size() : 0, layers, layers.first == 0 ? std::span<const float>() : x, stop));
    if (last) logits(batch.rows, sink);
    return std::span(x_).first(batch.tokens.size() * static_cast<std::size_t>(transformer_.hyperparameters.embedding));
} catch (const std::bad_alloc&) {
    return no_memory(transformer_);
}

Result<> Forward::read(std::span<const std::int32_t> ids, std::span<const Part> parts, std::size_t logit_rows, const Run& layers,
                       std::span<const float> x, const std::stop_token& stop) {
    const auto tokens = static_cast<std::int64_t>(ids.size());
    const std::int64_t width = transformer_.hyperparameters.embedding;
    if (tokens < 1 || tokens > kMaxTokens) {
        return fail(ErrorKind::internal, "A batch of {} tokens was asked for, possible are 1 to {}", tokens, kMaxTokens);
    }
    HR_CHECK(check_tokens(transformer_, ids));
    const auto cancelled = [] { return fail(ErrorKind::cancelled, "The computation was cancelled"); };
    if (stop.stop_requested()) return cancelled();

    allocate(tokens, logit_rows);
    const std::int64_t half = transformer_.rope.half();
    for (const Part& part : parts) {
        HR_CHECK(part.cache.reserve(part.cache.length() + part.tokens));
        transformer_.rope.fill(part.cache.length(), part.tokens, cosine_.data() + part.first * half, sine_.data() + part.first * half);
    }
    if (x.data() != x_.data()) std::ranges::copy(x, x_.begin());  // it may be what the run before left here
    for (std::int64_t t = 0; x.empty() && t < tokens; ++t) {
        cpu::dequantize_row(transformer_.embedding, ids[static_cast<std::size_t>(t)], x_.data() + t * width);
    }
    for (std::int64_t i = layers.first; i < layers.last; ++i) {
        const Layer& layer = transformer_.layers[static_cast<std::size_t>(i)];
        attention(layer.attention, i - layers.first, parts, tokens);
        if (stop.stop_requested()) return cancelled();
        cpu::rms_norm(pool_, x_.data(), tokens, width, width, layer.feed_forward_norm.data(), transformer_.hyperparameters.epsilon,
                      normed_.data());
        std::visit([&](const auto& block) { feed_forward(block, tokens); }, layer.feed_forward);
        if (stop.stop_requested()) return cancelled();
    }
    return {};
}

void Forward::multiply(const float* x, std::int64_t tokens, std::initializer_list<Target> targets) {
    std::array<cpu::Product, 3> products;
    std::size_t count = 0;
    unsigned forms = 0;
    for (const Target& target : targets) {
        const cpu::Matrix& weight = target.linear->weight;
        forms |= static_cast<unsigned>(cpu::form_for(weight.type));
        products[count++] = {.w = weight, .y = target.y, .y_stride = weight.rows};
    }
    const std::int64_t cols = products[0].w.cols;
    activations_.assign(x, tokens, cols, cols);
    activations_.require(pool_, forms);
    cpu::matmul(pool_, std::span(products).first(count), activations_);
    for (const Target& target : targets) {
        if (target.linear->bias) {
            const std::int64_t rows = target.linear->weight.rows;
            cpu::add_bias(pool_, target.y, target.linear->bias.data(), tokens, rows, rows);
        }
    }
}

// x += out(attention(norm(x))).
void Forward::attention(const Attention& block, std::int64_t layer, std::span<const Part> parts, std::int64_t tokens) {
    const Hyperparameters& model = transformer_.hyperparameters;
    const std::int64_t width = model.embedding;
    const std::int64_t q_width = model.heads * model.head_dim;
    const std::int64_t k_width = model.kv_heads * model.head_dim;
    const std::int64_t v_width = model.kv_heads * model.head_dim_v;
    const std::int64_t heads_width = model.heads * model.head_dim_v;

    cpu::rms_norm(pool_, x_.data(), tokens, width, width, block.norm.data(), model.epsilon, normed_.data());
    multiply(normed_.data(), tokens, {{&block.q, q_.data()}, {&block.k, k_.data()}, {&block.v, v_.data()}});
    if (block.q_norm) {
        cpu::rms_norm(pool_, q_.data(), tokens * model.heads, model.head_dim, model.head_dim, block.q_norm.data(), model.epsilon,
                      q_.data());
        cpu::rms_norm(pool_, k_.data(), tokens * model.kv_heads, model.head_dim, model.head_dim, block.k_norm.data(), model.epsilon,
                      k_.data());
    }
    const std::int64_t half = transformer_.rope.half();
    cpu::rope(pool_, q_.data(), tokens, model.heads, model.head_dim, q_width, cosine_.data(), sine_.data(), half,
              transformer_.rope_layout);
    cpu::rope(pool_, k_.data(), tokens, model.kv_heads, model.head_dim, k_width, cosine_.data(), sine_.data(), half,
              transformer_.rope_layout);

    for (const Part& part : parts) {
        const cpu::KvView kv = part.cache.view(layer);
        const std::int64_t position = part.cache.length();
        const cpu::AttentionShape shape{.heads = model.heads, .tokens = part.tokens, .first_position = position, .window = block.window,
                                        .scale = model.attention_scale};
        cpu::store_kv(pool_, kv, k_.data() + part.first * k_width, k_width, v_.data() + part.first * v_width, v_width, part.tokens, position);
        cpu::attention(pool_, shape, q_.data() + part.first * q_width, q_width, kv, heads_.data() + part.first * heads_width, heads_width);
    }
    multiply(heads_.data(), tokens, {{&block.out, normed_.data()}});
    cpu::add(pool_, x_.data(), normed_.data(), tokens, width, width, width);
}

// x += down(silu(gate(normed)) * up(normed)).
void Forward::feed_forward(const DenseFeedForward& block, std::int64_t tokens) {
    const std::int64_t width = transformer_.hyperparameters.embedding;
    const std::int64_t hidden = block.gate.weight.rows;
    multiply(normed_.data(), tokens, {{&block.gate, gate_.data()}, {&block.up, up_.data()}});
    cpu::swiglu(pool_, gate_.data(), up_.data(), tokens, hidden, hidden, gate_.data());
    multiply(gate_.data(), tokens, {{&block.down, normed_.data()}});
    cpu::add(pool_, x_.data(), normed_.data(), tokens, width, width, width);
}

// The same through the experts that the router chooses for each token.
void Forward::feed_forward(const MixtureFeedForward& block, std::int64_t tokens) {
    const std::int64_t width = transformer_.hyperparameters.embedding;
    activations_.assign(normed_.data(), tokens, width, width);
    activations_.require(pool_, static_cast<unsigned>(cpu::form_for(block.router.type)) | Experts::forms(block));
    const cpu::Product router{.w = block.router, .y = scores_.data(), .y_stride = block.experts};
    cpu::matmul(pool_, std::span(&router, 1), activations_);
    cpu::route(scores_.data(), tokens, block.experts, block.used, block.normalize, chosen_.data(), shares_.data());
    experts_.compute(block, activations_, chosen_.data());
    cpu::combine_experts(pool_, x_.data(), width, experts_.outputs().data(), shares_.data(), tokens, block.used, width);
}

void Forward::norm_rows(std::span<const std::int32_t> rows) {
    const Hyperparameters& model = transformer_.hyperparameters;
    const std::int64_t width = model.embedding;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        cpu::rms_norm(pool_, x_.data() + rows[i] * width, 1, width, width, transformer_.output_norm.data(), model.epsilon,
                      normed_.data() + static_cast<std::int64_t>(i) * width);
    }
}

void Forward::logits(std::span<const std::int32_t> wanted, LogitsSink sink) {
    const std::int64_t width = transformer_.hyperparameters.embedding;
    const std::int64_t vocabulary = transformer_.vocabulary;
    for (std::size_t begin = 0; begin < wanted.size(); begin += static_cast<std::size_t>(kMaxLogitRows)) {
        const auto rows = wanted.subspan(begin, std::min(wanted.size() - begin, static_cast<std::size_t>(kMaxLogitRows)));
        norm_rows(rows);
        const cpu::Product product{.w = transformer_.output, .y = logits_.data(), .y_stride = vocabulary};
        activations_.assign(normed_.data(), static_cast<std::int64_t>(rows.size()), width, width);
        activations_.require(pool_, cpu::form_for(transformer_.output.type));
        cpu::matmul(pool_, std::span(&product, 1), activations_);
        for (std::size_t i = 0; i < rows.size(); ++i) {
            sink(rows[i], std::span(logits_).subspan(i * static_cast<std::size_t>(vocabulary), static_cast<std::size_t>(vocabulary)));
        }
    }
}

}  // namespace headroom::model
