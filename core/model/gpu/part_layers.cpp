// The layers of a part: which kernels run, in which order.

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/compute/cpu/activations.h"
#include "core/model/gpu/part_runner.h"

namespace headroom::model {
namespace {

// Up to so many tokens the products read each weight once per eight of them; with more the matrix units win.
constexpr std::int64_t kFewTokens = 16;
// Up to so many tokens each one's experts are computed by themselves: most experts are chosen once or never.
constexpr std::int64_t kFewForExperts = 16;
// From so many tokens on missing experts are streamed: a layer's take the bus 3.4 ms where half of 128 are missing, and 16 cores 22 us a token.
constexpr std::int64_t kStreamed = 160;
// Up to so many tokens of one session attention follows the exact order, as far as its partial results have room; longer prompts go to the
// matrix units.
constexpr std::int64_t kExactAttention = 64;

gguf::TensorType type_of(const kernels::Matrix& matrix) noexcept { return static_cast<gguf::TensorType>(matrix.type); }
std::uint32_t form_of(const kernels::Matrix& matrix) noexcept { return static_cast<std::uint32_t>(cpu::form_for(type_of(matrix))); }
std::uint32_t form_of(std::uint32_t type) noexcept { return static_cast<std::uint32_t>(cpu::form_for(static_cast<gguf::TensorType>(type))); }

}  // namespace

Result<> PartRunner::enqueue_all(const Step& asked, Tail tail, std::size_t rows, bool captured, const std::stop_token& stop) {
    Step step = asked;
    uncombined_.reset();
    if (!captured) steps_.fetch_add(1, std::memory_order_relaxed);
    if (begin_ == 0 && weights_.embedding.data != nullptr) {
        HR_CHECK(kernels::embed_rows(queue(), {.table = weights_.embedding, .tokens = step.ids, .x = scratch_.x,
                                               .count = static_cast<std::int32_t>(step.tokens)}));
    }
    for (auto i = static_cast<std::size_t>(begin_); i < weights_.layers.size(); ++i) {
        if (!captured) {
            // The host stays a few layers ahead, no more: cancelling does not wait for a whole prompt.
            gpu::Event& done = layer_done_[i % layer_done_.size()];
            if (i >= static_cast<std::size_t>(begin_) + layer_done_.size()) HR_CHECK(driver_.synchronize_event(done.get()));
            if (stop.stop_requested()) return fail(ErrorKind::cancelled, "The computation was cancelled");
        }
        // What lies where may change between two layers of a prompt; between two steps where they are captured.
        std::optional<residency::StepGate::Step> gated;
        if (!captured && experts_) {
            gated.emplace(gate_);
            step.here = experts_->here();
            step.complete = step.here->complete[i] != 0;
        }
        HR_CHECK(attention(weights_.layers[i], i, step, captured));
        HR_CHECK(std::visit([&](const auto& block) { return feed_forward(weights_.layers[i], block, step, captured); }, weights_.layers[i].feed_forward));
        if (!captured) HR_CHECK(driver_.record_event(layer_done_[i % layer_done_.size()].get(), stream_.get()));
    }
    if (uncombined_) HR_CHECK(kernels::combine_rows(queue(), *std::exchange(uncombined_, std::nullopt)));
    return output(step, tail, rows);
}

Result<> PartRunner::prepare(const float* x, const float* norm, std::int64_t rows, std::int64_t n, std::uint32_t forms, float* out,
                             const std::int32_t* which) {
    const kernels::NormArguments arguments{.x = x, .rows = which, .weight = norm, .epsilon = transformer_.hyperparameters.epsilon,
                                        .count = static_cast<std::int32_t>(rows), .n = static_cast<std::int32_t>(n), .out = out,
                                        .groups_256 = (forms & kernels::kForm256) != 0 ? scratch_.groups_256 : kernels::Quantized{},
                                        .groups_32 = (forms & kernels::kForm32) != 0 ? scratch_.groups_32 : kernels::Quantized{}};
    if (!uncombined_) return kernels::norm_rows(queue(), arguments);
    return kernels::combine_norm_rows(queue(), {.combine = *std::exchange(uncombined_, std::nullopt), .norm = arguments});
}

Result<> PartRunner::products(const float* x, std::int64_t tokens, std::span<const Target> targets, bool swiglu) {
    kernels::ProductArguments arguments{};
    arguments.swiglu = swiglu ? 1 : 0;
    arguments.tokens = static_cast<std::int32_t>(tokens);
    arguments.x = x;
    arguments.groups_256 = scratch_.groups_256;
    arguments.groups_32 = scratch_.groups_32;
    for (const Target& target : targets) {
        const kernels::Matrix& weight = target.linear->weight;
        const kernels::Target described{.w = weight, .bias = target.linear->bias, .y = target.y, .y_stride = weight.rows, .add = target.add ? 1 : 0};
        if (tokens > kFewTokens && kernels::has_tiles(type_of(weight))) {
            const kernels::Quantized& form = form_of(weight) == kernels::kForm256 ? scratch_.groups_256 : scratch_.groups_32;
            HR_CHECK(kernels::product_tiles(queue(), {.target = described, .x = form, .tokens = arguments.tokens}));
            continue;
        }
        arguments.targets[arguments.target_count++] = described;
        arguments.forms |= form_of(weight);
    }
    return arguments.target_count == 0 ? Result<>{} : kernels::product_rows(queue(), arguments);
}

Result<> PartRunner::multiply(const float* x, const float* norm, std::int64_t tokens, std::span<const Target> targets, bool swiglu) {
    std::uint32_t forms = 0;
    for (const Target& target : targets) forms |= form_of(target.linear->weight);
    if (tokens == 1) {
        kernels::ProductArguments arguments{};
        arguments.swiglu = swiglu ? 1 : 0;
        arguments.tokens = 1;
        arguments.forms = forms;
        arguments.x = x;
        arguments.norm = norm;
        arguments.epsilon = transformer_.hyperparameters.epsilon;
        for (const Target& target : targets) {
            const kernels::Matrix& weight = target.linear->weight;
            arguments.targets[arguments.target_count++] = {.w = weight, .bias = target.linear->bias, .y = target.y, .y_stride = weight.rows,
                                                           .add = target.add ? 1 : 0};
        }
        return kernels::product_row(queue(), arguments);
    }
    const bool floats = norm != nullptr && (forms & kernels::kFormFloats) != 0;
    HR_CHECK(prepare(x, norm, tokens, targets.front().linear->weight.cols, forms, floats ? scratch_.normed : nullptr));
    return products(floats ? scratch_.normed : x, tokens, targets, swiglu);
}

kernels::KvPool PartRunner::kv_pool(std::size_t layer) const noexcept {
    const Hyperparameters& model = transformer_.hyperparameters;
    return {.base = reinterpret_cast<std::uint8_t*>(kv_.address(layer)), .page_bytes = kv_.page_bytes(), .k_offset = 0, .v_offset = transformer_.kv_shape().key_bytes(),
            .kv_heads = static_cast<std::int32_t>(model.kv_heads), .head_dim = static_cast<std::int32_t>(model.head_dim),
            .head_dim_v = static_cast<std::int32_t>(model.head_dim_v), .type = static_cast<std::int32_t>(transformer_.kv_type)};
}

// What the kernels behind attention of layer i read of the device's memory, as far as it is known before and comes late to them: the next matrices, and the small
// things up to the next layer's attention.
std::size_t PartRunner::look_ahead(std::size_t i, std::span<kernels::Ahead, kernels::kMostAhead> ahead) const noexcept {
    const DeviceLayer& layer = weights_.layers[i];
    std::size_t count = 0;
    const auto add = [&](const void* from, std::int64_t bytes) {
        if (from != nullptr) ahead[count++] = {static_cast<const std::uint8_t*>(from), bytes};
    };
    const auto add_row = [&](const float* from, std::int64_t elements) { add(from, elements * static_cast<std::int64_t>(sizeof(float))); };
    const Hyperparameters& model = transformer_.hyperparameters;
    add(layer.out.weight.data, std::int64_t{layer.out.weight.rows} * layer.out.weight.row_bytes);
    add_row(layer.feed_forward_norm, model.embedding);
    if (const auto* mixture = std::get_if<DeviceMixture>(&layer.feed_forward)) {
        add(mixture->router.data, std::int64_t{mixture->router.rows} * mixture->router.row_bytes);
        add(mixture->table, mixture->shape.experts * static_cast<std::int64_t>(sizeof(kernels::ExpertAddresses)));
    }
    if (i + 1 >= weights_.layers.size()) return count;
    const DeviceLayer& next = weights_.layers[i + 1];
    add_row(next.attention_norm, model.embedding);
    add_row(next.q_norm, model.head_dim);
    add_row(next.k_norm, model.head_dim);
    return count;
}

// x += out(attention(norm(x))).
Result<> PartRunner::attention(const DeviceLayer& layer, std::size_t i, const Step& step, bool captured) {
    const Hyperparameters& model = transformer_.hyperparameters;
    const Target qkv[] = {{&layer.q, scratch_.q}, {&layer.k, scratch_.k}, {&layer.v, scratch_.v}};
    HR_CHECK(multiply(scratch_.x, layer.attention_norm, step.tokens, qkv));
    const kernels::HeadArguments heads{.q = scratch_.q, .k = scratch_.k, .v = scratch_.v, .q_norm = layer.q_norm, .k_norm = layer.k_norm,
                                       .epsilon = model.epsilon, .cosine = step.cosine, .sine = step.sine,
                                       .half = static_cast<std::int32_t>(transformer_.rope.half()),
                                       .layout = static_cast<std::int32_t>(transformer_.rope_layout),
                                       .heads = static_cast<std::int32_t>(model.heads), .tokens = static_cast<std::int32_t>(step.tokens),
                                       .pool = kv_pool(i), .places = step.places};
    kernels::AttentionArguments arguments{.q = scratch_.q, .out = scratch_.heads, .heads = static_cast<std::int32_t>(model.heads),
                                          .tokens = static_cast<std::int32_t>(step.tokens), .window = static_cast<std::int32_t>(layer.window),
                                          .scale = model.attention_scale, .pool = kv_pool(i), .places = step.places,
                                          .max_chunks = static_cast<std::int32_t>(step.chunks), .partials = scratch_.partials,
                                          .tickets = scratch_.tickets,
                                          .parts_to_hand = step.tokens <= scratch_.long_rows ? scratch_.parts_to_hand : nullptr};
    if (captured) {
        // One token of each session, and a step is a graph: the steps before have ended when it begins.
        if (form_of(layer.out.weight) == kernels::kForm256 && kernels::attention_quantizes(queue(), arguments)) arguments.groups_256 = scratch_.groups_256;
        kernels::Ahead ahead[kernels::kMostAhead];
        HR_CHECK(kernels::attention_step(queue(), heads, arguments, std::span(ahead).first(step.tokens > 1 ? look_ahead(i, ahead) : 0)));
    } else {
        HR_CHECK(kernels::head_rows(queue(), heads));
        for (const Stretch& stretch : stretches_) {
            kernels::AttentionArguments own = arguments;
            own.q += stretch.begin * model.heads * model.head_dim;
            own.out += stretch.begin * model.heads * model.head_dim_v;
            own.places.positions += stretch.begin;
            own.places.tables += stretch.begin;
            own.tokens = static_cast<std::int32_t>(stretch.tokens);
            own.max_chunks = static_cast<std::int32_t>(stretch.chunks);
            const bool prompt = stretch.tokens > std::min(kExactAttention, attention_rows_);
            HR_CHECK(prompt ? kernels::attention_prefill(queue(), own) : kernels::attention_rows(queue(), own));
        }
    }
    const Target out[] = {{&layer.out, scratch_.x, true}};
    return arguments.groups_256.codes != nullptr ? products(scratch_.heads, step.tokens, out, false) : multiply(scratch_.heads, nullptr, step.tokens, out);
}

// x += down(silu(gate(norm(x))) * up(norm(x))).
Result<> PartRunner::feed_forward(const DeviceLayer& layer, const DeviceDense& block, const Step& step, bool) {
    const Target hidden[] = {{&block.gate, scratch_.gate}, {&block.up, scratch_.up}};
    const Target down[] = {{&block.down, scratch_.x, true}};
    const bool few = step.tokens <= kFewTokens;
    HR_CHECK(multiply(scratch_.x, layer.feed_forward_norm, step.tokens, hidden, few));
    if (few) return multiply(scratch_.gate, nullptr, step.tokens, down);
    const std::uint32_t form = form_of(block.down.weight);
    HR_CHECK(swiglu(step.tokens, block.gate.weight.rows, form));
    return products(scratch_.gate, step.tokens, down, false);
}

Result<> PartRunner::swiglu(std::int64_t rows, std::int64_t n, std::uint32_t form) {
    return kernels::swiglu_rows(queue(), {.gate = scratch_.gate, .up = scratch_.up, .rows = static_cast<std::int32_t>(rows),
                                          .n = static_cast<std::int32_t>(n), .out = (form & kernels::kFormFloats) != 0 ? scratch_.gate : nullptr,
                                          .groups_256 = (form & kernels::kForm256) != 0 ? scratch_.groups_256 : kernels::Quantized{},
                                          .groups_32 = (form & kernels::kForm32) != 0 ? scratch_.groups_32 : kernels::Quantized{}});
}

// Whether the experts' first kernel makes the choice, and not the router's: where nobody else needs it before.
bool PartRunner::chooses_later(const DeviceMixture& block, const Step& step) const noexcept {
    return step.complete && kernels::chooses_by_itself(queue(), block.shape, static_cast<std::int32_t>(step.tokens));
}

// Norm, router, choice.
Result<> PartRunner::route(const DeviceLayer& layer, const DeviceMixture& block, const Step& step) {
    const std::uint32_t forms = form_of(block.router) | form_of(block.shape.gate_type) | form_of(block.shape.up_type);
    if (step.tokens <= kFewForExperts) {
        const bool later = chooses_later(block, step);
        return kernels::router_row(queue(), {.w = block.router, .x = scratch_.x, .norm = layer.feed_forward_norm,
                                             .epsilon = transformer_.hyperparameters.epsilon, .used = block.shape.used,
                                             .normalize = block.normalize ? 1 : 0, .normed = scratch_.normed,
                                             .groups_256 = (forms & kernels::kForm256) != 0 ? scratch_.groups_256 : kernels::Quantized{},
                                             .groups_32 = (forms & kernels::kForm32) != 0 ? scratch_.groups_32 : kernels::Quantized{},
                                             .scores = scratch_.scores, .chosen = later ? nullptr : scratch_.chosen, .shares = scratch_.shares,
                                             .ticket = scratch_.tickets, .tokens = static_cast<std::int32_t>(step.tokens),
                                             .counts = later ? nullptr : experts_->counts(block.layer)});
    }
    HR_CHECK(prepare(scratch_.x, layer.feed_forward_norm, step.tokens, block.shape.width, forms, scratch_.normed));
    const DeviceLinear router{.weight = block.router};
    const Target scores[] = {{&router, scratch_.scores}};
    HR_CHECK(products(scratch_.normed, step.tokens, scores, false));
    return kernels::choose_experts(queue(), {.scores = scratch_.scores, .tokens = static_cast<std::int32_t>(step.tokens),
                                             .experts = block.shape.experts, .used = block.shape.used, .normalize = block.normalize ? 1 : 0,
                                             .chosen = scratch_.chosen, .shares = scratch_.shares, .counts = experts_->counts(block.layer)});
}

// The chosen experts of each token by themselves. added: their sum is added to x; else the outputs are kept apart.
Result<> PartRunner::few_experts(const DeviceMixture& block, const Step& step, std::int32_t* chosen, bool added) {
    const auto tokens = static_cast<std::int32_t>(step.tokens);
    const kernels::ExpertsGateUpArguments gate_up{.table = block.table, .shape = block.shape, .chosen = chosen, .tokens = tokens,
                                                  .x = scratch_.normed, .groups_256 = scratch_.groups_256, .groups_32 = scratch_.groups_32,
                                                  .hidden = scratch_.gate, .complete = step.complete ? 1 : 0,
                                                  .scores = chooses_later(block, step) ? scratch_.scores : nullptr,
                                                  .normalize = block.normalize ? 1 : 0, .shares = scratch_.shares,
                                                  .counts = experts_->counts(block.layer)};
    const kernels::ExpertsDownArguments down{.table = block.table, .shape = block.shape, .chosen = chosen, .shares = scratch_.shares,
                                             .tokens = tokens, .hidden = scratch_.gate, .x = scratch_.x,
                                             .outputs = added ? nullptr : scratch_.outputs};
    if (kernels::groups_experts(queue(), block.shape, tokens)) return kernels::few_experts(queue(), gate_up, down, scratch_.listed);
    HR_CHECK(kernels::experts_gate_up(queue(), gate_up));
    return kernels::experts_down(queue(), down);
}

std::vector<ExpertStream::Matrix> PartRunner::streamed(const DeviceMixture& block, const Step& step) const {
    std::vector<ExpertStream::Matrix> matrices;
    if (!stream_experts_ || step.tokens < kStreamed) return matrices;
    const auto add = [&](std::initializer_list<std::int32_t> which) {
        for (std::int32_t expert = 0; expert < block.shape.experts; ++expert) {
            const std::size_t number = experts_->first_block(block.layer) + static_cast<std::size_t>(expert);
            if (step.here->experts[number] != 0) continue;
            for (const std::int32_t one : which) {
                matrices.push_back({.expert = expert, .which = one, .bytes = experts_->matrix(static_cast<residency::Block>(number), static_cast<std::size_t>(one))});
            }
        }
    };
    add({0, 1});
    add({2});
    if (!stream_experts_->can_stream(matrices)) matrices.clear();
    return matrices;
}

// The tokens grouped by expert, each expert's weights read once.
Result<> PartRunner::many_experts(const DeviceMixture& block, const Step& step, std::span<const ExpertStream::Matrix> streamed) {
    const kernels::ExpertShape& shape = block.shape;
    const std::int64_t choices = step.tokens * shape.used;
    HR_CHECK(kernels::group_rows(queue(), {.chosen = scratch_.chosen, .choices = static_cast<std::int32_t>(choices), .experts = shape.experts,
                                           .offsets = scratch_.offsets, .rows = scratch_.grouped}));
    const auto tiles = [&](const kernels::ExpertAddresses* table, std::int32_t which, std::uint32_t type, std::int32_t rows, std::int32_t cols,
                           std::uint32_t row_bytes, std::int32_t divisor, float* y) {
        return kernels::experts_tiles(queue(), static_cast<gguf::TensorType>(type),
                                      {.table = table, .which = which, .rows = rows, .cols = cols, .row_bytes = row_bytes,
                                       .experts = shape.experts, .choices = static_cast<std::int32_t>(choices), .divisor = divisor,
                                       .offsets = scratch_.offsets, .grouped = scratch_.grouped,
                                       .x = form_of(type) == kernels::kForm256 ? scratch_.groups_256 : scratch_.groups_32, .y = y});
    };
    const auto gate_and_up = [&](const kernels::ExpertAddresses* table) -> Result<> {
        HR_CHECK(tiles(table, 0, shape.gate_type, shape.hidden, shape.width, shape.gate_row_bytes, shape.used, scratch_.gate));
        return tiles(table, 1, shape.up_type, shape.hidden, shape.width, shape.up_row_bytes, shape.used, scratch_.up);
    };
    const auto down = [&](const kernels::ExpertAddresses* table) {
        return tiles(table, 2, shape.down_type, shape.width, shape.hidden, shape.down_row_bytes, 1, scratch_.outputs);
    };
    const auto downs = streamed.size() / 3 * 2;
    HR_CHECK(gate_and_up(block.table));
    if (!streamed.empty()) HR_CHECK(stream_experts_->stream(streamed.first(downs), stream_.get(), gate_and_up));
    HR_CHECK(swiglu(choices, shape.hidden, form_of(shape.down_type)));
    HR_CHECK(down(block.table));
    return streamed.empty() ? Result<>{} : stream_experts_->stream(streamed.subspan(downs), stream_.get(), down);
}

Result<> PartRunner::feed_forward(const DeviceLayer& layer, const DeviceMixture& block, const Step& step, bool captured) {
    HR_CHECK(route(layer, block, step));
    const kernels::ExpertShape& shape = block.shape;
    const auto tokens = static_cast<std::int32_t>(step.tokens);
    const bool tiled = kernels::has_tiles(static_cast<gguf::TensorType>(shape.gate_type)) &&
                       kernels::has_tiles(static_cast<gguf::TensorType>(shape.up_type)) &&
                       kernels::has_tiles(static_cast<gguf::TensorType>(shape.down_type));
    const bool few = step.tokens <= kFewForExperts || !tiled;
    const auto streams = captured || step.complete || few ? std::vector<ExpertStream::Matrix>() : streamed(block, step);
    const bool by_processor = !step.complete && streams.empty(), each_alone = few && !kernels::groups_experts(queue(), shape, tokens);
    // Some of the missing ones the device reads from the host's memory, where each choice is computed by itself.
    const bool by_device = by_processor && captured && each_alone;
    std::int32_t* chosen = by_device ? scratch_.placed : scratch_.chosen;
    if (by_processor && captured) {
        HR_CHECK(kernels::hand_over(queue(), {.x = scratch_.normed, .chosen = scratch_.chosen, .tokens = tokens, .width = shape.width,
                                              .used = shape.used, .host_x = hand_over_->x.on_device<float>(),
                                              .host_chosen = hand_over_->chosen.on_device<std::int32_t>(),
                                              .counter = hand_over_->counter.as<std::uint32_t>(),
                                              .flag = hand_over_->flags.on_device<std::uint32_t>(), .table = block.table,
                                              .awaited = hand_over_->counter.as<std::uint32_t>(sizeof(std::uint32_t)),
                                              .placed = by_device ? scratch_.placed : nullptr, .host_entries = experts_->host_entries(),
                                              .share = step.bus_share}));
    } else if (by_processor) {
        const auto floats = static_cast<std::uint64_t>(step.tokens * shape.width), choices = static_cast<std::uint64_t>(step.tokens * shape.used);
        HR_CHECK(driver_.copy_to_host(hand_over_->x.as<>(), reinterpret_cast<gpu::DevicePointer>(scratch_.normed), floats * sizeof(float), stream_.get()));
        HR_CHECK(driver_.copy_to_host(hand_over_->chosen.as<>(), reinterpret_cast<gpu::DevicePointer>(scratch_.chosen),
                                      choices * sizeof(std::int32_t), stream_.get()));
        HR_CHECK(driver_.record_event(handed_over_event_.get(), stream_.get()));
    }
    const bool added = each_alone && step.complete;
    HR_CHECK(few ? few_experts(block, step, chosen, added) : many_experts(block, step, streams));
    if (added) return {};
    if (by_processor && captured) {
        HR_CHECK(kernels::await_host(queue(), {.counter = hand_over_->counter.as<std::uint32_t>(sizeof(std::uint32_t)),
                                               .flag = hand_over_->flags.on_device<std::uint32_t>(kReplyOffset),
                                               .arrived = hand_over_->flags.on_device<std::uint32_t>(kArrivedOffset)}));
    } else if (by_processor) {
        // A prompt's share takes the processor long: the host waits here, not a kernel (a display's driver ends kernels after two seconds).
        HR_CHECK(driver_.synchronize_event(handed_over_event_.get()));
        const std::span<const std::uint8_t> here = step.here->experts;
        missing_->compute(block, step.tokens, hand_over_->chosen.as<std::int32_t>(), here.subspan(experts_->first_block(block.layer), static_cast<std::size_t>(shape.experts)));
    }
    const kernels::CombineArguments combine{.table = block.table, .chosen = chosen, .shares = scratch_.shares, .outputs = scratch_.outputs,
                                            .host_outputs = by_processor ? hand_over_->outputs.on_device<float>() : nullptr, .x = scratch_.x,
                                            .tokens = tokens, .used = shape.used, .n = shape.width};
    if (!few || !step.complete) return kernels::combine_rows(queue(), combine);
    uncombined_ = combine;  // the next layer begins with it
    return {};
}

Result<> PartRunner::output(const Step& step, Tail tail, std::size_t rows) {
    if (rows == 0 || tail.kind == PartTail::rows) return {};
    const auto count = static_cast<std::int64_t>(rows);
    const std::int64_t width = transformer_.hyperparameters.embedding;
    const DeviceLinear linear{.weight = weights_.output};
    const Target logits[] = {{&linear, scratch_.logits}};
    if (step.tokens == 1) {
        HR_CHECK(multiply(scratch_.x, weights_.output_norm, 1, logits));
    } else {
        const std::uint32_t forms = form_of(weights_.output);
        HR_CHECK(prepare(scratch_.x, weights_.output_norm, count, width, forms, scratch_.normed, step.rows));
        HR_CHECK(products(scratch_.normed, count, logits, false));
    }
    const auto vocabulary = static_cast<std::int32_t>(transformer_.vocabulary);
    if (tail.kind == PartTail::likeliest) {
        float* values = scratch_.likeliest;
        return kernels::top_rows(queue(), {.x = scratch_.logits, .rows = static_cast<std::int32_t>(count), .n = vocabulary, .k = tail.count, .values = values,
                                           .ids = reinterpret_cast<std::int32_t*>(values + count * tail.count)});
    }
    if (tail.kind != PartTail::choice) return {};
    // The choices take the place of the ids that were read: the next step, if it is chained, reads them there.
    return kernels::argmax_rows(queue(), {.x = scratch_.logits, .rows = static_cast<std::int32_t>(count), .n = vocabulary,
                                          .out = const_cast<std::int32_t*>(step.ids)});
}

}  // namespace headroom::model
