#include "core/model/forward.h"

#include <algorithm>
#include <array>
#include <new>
#include <numeric>

#include "core/base/bytes.h"

namespace headroom::model {
namespace {

template <class T>
void grow(std::vector<T>& buffer, std::int64_t count) {
    if (buffer.size() < static_cast<std::size_t>(count)) buffer.resize(static_cast<std::size_t>(count));
}

// Elements of the scratch buffers for so many tokens: what allocate() makes and what the estimate counts.
struct ScratchShape {
    std::int64_t residual = 0;
    std::int64_t q = 0;
    std::int64_t k = 0;
    std::int64_t v = 0;
    std::int64_t heads = 0;
    std::int64_t hidden = 0;          // gate and up
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
                hidden = std::max(hidden, tokens * mixture->used * mixture->gate.rows);
            } else {
                hidden = std::max(hidden, tokens * std::get<DenseFeedForward>(layer.feed_forward).gate.weight.rows);
            }
        }
        expert_outputs = chosen * model.embedding;
    }
};

}  // namespace

Forward::Forward(const Transformer& transformer, ThreadPool& pool) : transformer_(transformer), pool_(pool) {}

std::uint64_t Forward::scratch_bytes(const Transformer& transformer, std::int64_t context) noexcept {
    const ScratchShape shape(transformer, std::min(context, kMaxTokens));
    const std::int64_t floats = 2 * shape.residual + shape.q + shape.k + shape.v + shape.heads + 2 * shape.hidden + shape.expert_outputs +
                                2 * shape.angles + shape.scores + 4 * shape.chosen + kMaxLogitRows * transformer.vocabulary;
    // Beside each float that a product reads stands its quantized form: a byte and its share of a scale.
    const std::int64_t quantized = std::max({shape.residual, shape.heads, shape.hidden}) * 2;
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
    grow(expert_outputs_, shape.expert_outputs);
    grow(cosine_, shape.angles);
    grow(sine_, shape.angles);
    grow(scores_, shape.scores);
    grow(chosen_, shape.chosen);
    grow(shares_, shape.chosen);
    grow(group_tokens_, shape.chosen);
    grow(output_rows_, shape.chosen);
    if (const std::size_t before = row_numbers_.size(); before < static_cast<std::size_t>(shape.chosen)) {
        row_numbers_.resize(static_cast<std::size_t>(shape.chosen));
        std::iota(row_numbers_.begin(), row_numbers_.end(), 0);
    }
    const std::int64_t rows = std::min<std::int64_t>(kMaxLogitRows, static_cast<std::int64_t>(logit_rows));
    grow(logits_, rows * transformer_.vocabulary);
}

Result<> Forward::run(const Batch& batch, LogitsSink sink, std::stop_token stop) try {
    const auto tokens = static_cast<std::int64_t>(batch.tokens.size());
    const std::int64_t width = transformer_.hyperparameters.embedding;
    const std::int64_t first_position = batch.cache.length();
    if (tokens < 1 || tokens > kMaxTokens) {
        return fail(ErrorKind::internal, "A batch of {} tokens was asked for, possible are 1 to {}", tokens, kMaxTokens);
    }
    for (const std::int32_t token : batch.tokens) {
        if (token < 0 || token >= transformer_.vocabulary) {
            return fail(ErrorKind::invalid_argument, "The token id {} is outside the vocabulary of {} tokens", token,
                        transformer_.vocabulary);
        }
    }
    const auto cancelled = [] { return fail(ErrorKind::cancelled, "The computation was cancelled"); };
    if (stop.stop_requested()) return cancelled();

    allocate(tokens, batch.rows.size());
    HR_CHECK(batch.cache.reserve(first_position + tokens));
    transformer_.rope.fill(first_position, tokens, cosine_.data(), sine_.data());
    for (std::int64_t t = 0; t < tokens; ++t) {
        cpu::dequantize_row(transformer_.embedding, batch.tokens[static_cast<std::size_t>(t)], x_.data() + t * width);
    }
    for (std::size_t i = 0; i < transformer_.layers.size(); ++i) {
        const Layer& layer = transformer_.layers[i];
        attention(layer.attention, static_cast<std::int64_t>(i), batch.cache, tokens);
        if (stop.stop_requested()) return cancelled();
        cpu::rms_norm(pool_, x_.data(), tokens, width, width, layer.feed_forward_norm.data(), transformer_.hyperparameters.epsilon,
                      normed_.data());
        std::visit([&](const auto& block) { feed_forward(block, tokens); }, layer.feed_forward);
        if (stop.stop_requested()) return cancelled();
    }
    batch.cache.set_length(first_position + tokens);
    logits(batch, sink);
    return {};
} catch (const std::bad_alloc&) {
    return fail(ErrorKind::out_of_memory, "There is not enough memory to compute: {} are needed beside the model",
                format_bytes(scratch_bytes(transformer_, kMaxTokens)));
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
void Forward::attention(const Attention& block, std::int64_t layer, KvCache& cache, std::int64_t tokens) {
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

    const cpu::KvView kv = cache.view(layer);
    const cpu::AttentionShape shape{.heads = model.heads, .tokens = tokens, .first_position = cache.length(), .window = block.window,
                                    .scale = model.attention_scale};
    cpu::store_kv(pool_, kv, k_.data(), k_width, v_.data(), v_width, tokens, cache.length());
    cpu::attention(pool_, shape, q_.data(), q_width, kv, heads_.data(), heads_width);
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
    const std::int64_t hidden = block.gate.rows;
    const std::int64_t rows = tokens * block.used;
    const auto form = [](const cpu::Matrix& matrix) { return static_cast<unsigned>(cpu::form_for(matrix.type)); };

    activations_.assign(normed_.data(), tokens, width, width);
    activations_.require(pool_, form(block.router) | form(block.gate) | form(block.up));
    const cpu::Product router{.w = block.router, .y = scores_.data(), .y_stride = block.experts};
    cpu::matmul(pool_, std::span(&router, 1), activations_);
    cpu::route(scores_.data(), tokens, block.experts, block.used, block.normalize, chosen_.data(), shares_.data());
    group_by_expert(block, tokens);

    products_.clear();
    for (const Group& group : groups_) {
        const std::span<const std::int32_t> of_group =
            std::span(group_tokens_).subspan(static_cast<std::size_t>(group.first), static_cast<std::size_t>(group.count));
        products_.push_back({cpu::slice(block.gate, group.expert), of_group, gate_.data() + group.first * hidden, hidden});
        products_.push_back({cpu::slice(block.up, group.expert), of_group, up_.data() + group.first * hidden, hidden});
    }
    cpu::matmul_experts(pool_, products_, activations_);
    cpu::swiglu(pool_, gate_.data(), up_.data(), rows, hidden, hidden, gate_.data());

    activations_.assign(gate_.data(), rows, hidden, hidden);
    activations_.require(pool_, form(block.down));
    products_.clear();
    for (const Group& group : groups_) {
        const std::span<const std::int32_t> of_group =
            std::span(row_numbers_).subspan(static_cast<std::size_t>(group.first), static_cast<std::size_t>(group.count));
        products_.push_back({cpu::slice(block.down, group.expert), of_group, expert_outputs_.data() + group.first * width, width});
    }
    cpu::matmul_experts(pool_, products_, activations_);
    cpu::combine_experts(pool_, x_.data(), width, output_rows_.data(), shares_.data(), tokens, block.used, width);
}

// Sorts the choices by expert (a counting sort: within an expert the tokens ascend).
void Forward::group_by_expert(const MixtureFeedForward& block, std::int64_t tokens) {
    const std::int64_t width = transformer_.hyperparameters.embedding;
    const std::int64_t rows = tokens * block.used;
    expert_rows_.assign(static_cast<std::size_t>(block.experts), 0);
    for (std::int64_t i = 0; i < rows; ++i) ++expert_rows_[static_cast<std::size_t>(chosen_[static_cast<std::size_t>(i)])];
    groups_.clear();
    std::int64_t first = 0;
    for (std::int64_t expert = 0; expert < block.experts; ++expert) {
        std::int64_t& count = expert_rows_[static_cast<std::size_t>(expert)];
        if (count > 0) groups_.push_back({.expert = expert, .first = first, .count = count});
        first += std::exchange(count, first);  // from here on: the expert's next free row
    }
    for (std::int64_t i = 0; i < rows; ++i) {
        const std::int64_t row = expert_rows_[static_cast<std::size_t>(chosen_[static_cast<std::size_t>(i)])]++;
        group_tokens_[static_cast<std::size_t>(row)] = static_cast<std::int32_t>(i / block.used);
        output_rows_[static_cast<std::size_t>(i)] = expert_outputs_.data() + row * width;
    }
}

void Forward::logits(const Batch& batch, LogitsSink sink) {
    const Hyperparameters& model = transformer_.hyperparameters;
    const std::int64_t width = model.embedding;
    const std::int64_t vocabulary = transformer_.vocabulary;
    for (std::size_t begin = 0; begin < batch.rows.size(); begin += static_cast<std::size_t>(kMaxLogitRows)) {
        const auto rows = batch.rows.subspan(begin, std::min(batch.rows.size() - begin, static_cast<std::size_t>(kMaxLogitRows)));
        for (std::size_t i = 0; i < rows.size(); ++i) {
            cpu::rms_norm(pool_, x_.data() + rows[i] * width, 1, width, width, transformer_.output_norm.data(), model.epsilon,
                          normed_.data() + static_cast<std::int64_t>(i) * width);
        }
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
