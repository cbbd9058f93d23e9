#include "core/model/gpu/scratch.h"

#include <algorithm>

namespace headroom::model {
namespace {

constexpr std::uint64_t kAlignment = 256;
constexpr std::int64_t kPartialBytes = 64 << 20;  // decode attention's partial results, before fewer rows are taken at once
constexpr std::int64_t kMostAttentionRows = 64;
constexpr std::int64_t kMostLongRows = 1;  // tokens of a step that attention_long is for

std::uint64_t round_up(std::uint64_t bytes) noexcept { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

std::int64_t chunks(std::int64_t context) noexcept { return (context + cpu::kPagePositions - 1) / cpu::kPagePositions; }

std::int64_t partial_floats(const Transformer& transformer, std::int64_t context) noexcept {
    const Hyperparameters& model = transformer.hyperparameters;
    return model.heads * chunks(context) * (model.head_dim_v + 2);
}

}  // namespace

std::int64_t attention_rows_limit(const Transformer& transformer, std::int64_t context) noexcept {
    const std::int64_t row = partial_floats(transformer, context) * static_cast<std::int64_t>(sizeof(float));
    return std::clamp<std::int64_t>(kPartialBytes / row, 8, kMostAttentionRows);
}

template <class Visit>
void Scratch::arrays(const Transformer& transformer, const ScratchPlan& plan, Visit visit) {
    const Hyperparameters& model = transformer.hyperparameters;
    const std::int64_t tokens = plan.tokens;
    std::int64_t hidden = 0, choices = 0, experts = 0, groups = std::max(tokens * model.embedding, tokens * model.heads * model.head_dim_v);
    for (const Layer& layer : transformer.layers) {
        if (const auto* mixture = std::get_if<MixtureFeedForward>(&layer.feed_forward)) {
            choices = std::max(choices, tokens * mixture->used);
            experts = std::max(experts, mixture->experts);
            hidden = std::max(hidden, tokens * mixture->used * mixture->gate.rows);
        } else {
            hidden = std::max(hidden, tokens * std::get<DenseFeedForward>(layer.feed_forward).gate.weight.rows);
        }
    }
    groups = std::max(groups, hidden);
    visit(x, tokens * model.embedding);
    visit(normed, std::max(tokens, kLogitRows) * model.embedding);
    visit(q, tokens * model.heads * model.head_dim);
    visit(k, tokens * model.kv_heads * model.head_dim);
    visit(v, tokens * model.kv_heads * model.head_dim_v);
    visit(heads, tokens * model.heads * model.head_dim_v);
    visit(gate, hidden);
    visit(up, hidden);
    visit(outputs, choices * model.embedding);
    visit(scores, choices > 0 ? tokens * experts : 0);
    visit(chosen, choices);
    visit(placed, choices);
    visit(shares, choices);
    visit(grouped, choices);
    visit(offsets, experts > 0 ? experts + 1 : 0);
    groups = std::max(groups, kLogitRows * model.embedding);
    for (kernels::Quantized* form : {&groups_256, &groups_32}) {
        visit(form->codes, groups);
        visit(form->scales, groups / (form == &groups_256 ? 256 : 32) + tokens);
        visit(form->sums, groups / 16 + tokens);
    }
    const std::int64_t rows = std::min(attention_rows_limit(transformer, plan.context), std::max<std::int64_t>(tokens, 1));
    partial_count = rows * partial_floats(transformer, plan.context);
    visit(partials, partial_count);
    const kernels::KvPool pool{.base = nullptr, .page_bytes = 0, .k_offset = 0, .v_offset = 0, .kv_heads = static_cast<std::int32_t>(model.kv_heads),
                               .head_dim = static_cast<std::int32_t>(model.head_dim), .head_dim_v = static_cast<std::int32_t>(model.head_dim_v),
                               .type = static_cast<std::int32_t>(transformer.kv_type)};
    long_rows = kernels::has_long_attention(model.heads, pool) ? std::min(kMostLongRows, rows) : 0;
    part_count = long_rows * model.heads * chunks(plan.context) * kernels::long_part_floats(static_cast<std::int32_t>(model.head_dim_v));
    visit(parts_to_hand, part_count);
    ticket_count = std::max(rows * model.heads, tokens);
    visit(tickets, ticket_count);
    visit(logits, plan.logits ? kLogitRows * transformer.vocabulary : 0);
    visit(ids, kLogitRows);
    visit(likeliest, plan.logits ? 2 * kLogitRows * kernels::kMostTop : 0);
    visit(listed, choices > 0 ? kernels::few_list_bytes(kernels::kMostFewTokens * kernels::kMostFewUsed) : 0);
}

std::uint64_t Scratch::bytes(const Transformer& transformer, const ScratchPlan& plan) noexcept {
    Scratch scratch;
    std::uint64_t total = 0;
    scratch.arrays(transformer, plan, [&]<class T>(T*&, std::int64_t count) { total += round_up(static_cast<std::uint64_t>(count) * sizeof(T)); });
    return total;
}

Result<Scratch> Scratch::create(gpu::Driver& driver, const Transformer& transformer, const ScratchPlan& plan) {
    Scratch scratch;
    HR_TRY(scratch.memory, gpu::Buffer::create(driver, bytes(transformer, plan)));
    std::uint64_t at = 0;
    scratch.arrays(transformer, plan, [&]<class T>(T*& pointer, std::int64_t count) {
        pointer = count > 0 ? scratch.memory.as<T>(at) : nullptr;
        at += round_up(static_cast<std::uint64_t>(count) * sizeof(T));
    });
    HR_CHECK(driver.fill(reinterpret_cast<gpu::DevicePointer>(scratch.tickets), 0,
                         static_cast<std::uint64_t>(scratch.ticket_count) * sizeof(std::int32_t)));
    HR_CHECK(driver.fill(reinterpret_cast<gpu::DevicePointer>(scratch.partials), 0xff, static_cast<std::uint64_t>(scratch.partial_count) * sizeof(float)));
    if (scratch.part_count > 0) {
        HR_CHECK(driver.fill(reinterpret_cast<gpu::DevicePointer>(scratch.parts_to_hand), 0xff, static_cast<std::uint64_t>(scratch.part_count) * sizeof(float)));
    }
    HR_CHECK(driver.synchronize());
    return scratch;
}

}  // namespace headroom::model
