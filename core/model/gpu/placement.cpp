#include "core/model/gpu/placement.h"

#include <algorithm>
#include <numeric>

#include "core/base/bytes.h"
#include "core/model/gpu/scratch.h"

namespace headroom::model {
namespace {

constexpr std::int64_t kSmallestChunk = 256;
constexpr std::int64_t kChunks[] = {4096, 2048, 1024, 512, kSmallestChunk};
constexpr std::uint64_t kScratchShare = 24;

std::uint64_t aligned(std::uint64_t bytes) noexcept { return (bytes + 255) / 256 * 256; }

std::uint64_t vector_bytes(const FloatVector& vector, std::int64_t n) noexcept {
    return vector ? aligned(static_cast<std::uint64_t>(n) * sizeof(float)) : 0;
}

std::uint64_t linear_bytes(const Linear& linear) noexcept { return device_bytes(linear.weight) + vector_bytes(linear.bias, linear.weight.rows); }

// The sizes that a plan is made of.
struct Sizes {
    std::vector<std::uint64_t> base;     // of each layer, without experts, with its KV
    std::vector<std::uint64_t> expert;   // of one expert of each layer
    std::vector<std::int64_t> experts;   // of each layer
    std::uint64_t embedding = 0;
    std::uint64_t output = 0;
    std::uint64_t scratch = 0;           // on a device
    std::uint64_t logits_scratch = 0;    // more on the one with the output
};

Sizes measure(const Transformer& transformer, std::int64_t context, std::int64_t chunk, std::int64_t kv_positions, const ElasticSizes& elastic) {
    const auto rounded = [&](std::uint64_t bytes) { return (bytes + elastic.granularity - 1) / elastic.granularity * elastic.granularity; };
    Sizes sizes;
    KvShape kv = transformer.kv_shape();
    kv.layers = 1;
    for (const Layer& layer : transformer.layers) {
        sizes.base.push_back(rounded(device_bytes(layer)) + (elastic.kv_layer_bytes > 0 ? elastic.kv_layer_bytes : kv.bytes(kv_positions)));
        sizes.expert.push_back(expert_bytes(layer));
        const auto* mixture = std::get_if<MixtureFeedForward>(&layer.feed_forward);
        sizes.experts.push_back(mixture != nullptr ? mixture->experts : 0);
    }
    sizes.embedding = rounded(device_bytes(transformer.embedding));
    sizes.output = transformer.output.data == transformer.embedding.data ? 0 : device_bytes(transformer.output);
    sizes.output = rounded(sizes.output + vector_bytes(transformer.output_norm, transformer.hyperparameters.embedding));
    const ScratchPlan plan{.tokens = std::min(chunk, context), .context = context, .logits = false};
    sizes.scratch = Scratch::bytes(transformer, plan);
    sizes.logits_scratch = Scratch::bytes(transformer, {.tokens = plan.tokens, .context = context, .logits = true}) - sizes.scratch;
    return sizes;
}

// What a part costs with its experts left out.
std::uint64_t part_bytes(const Transformer& transformer, const Sizes& sizes, std::int64_t first, std::int64_t last) {
    const auto layers = static_cast<std::int64_t>(sizes.base.size());
    std::uint64_t bytes = sizes.scratch;
    for (std::int64_t i = first; i < last; ++i) bytes += sizes.base[static_cast<std::size_t>(i)];
    if (first == 0) bytes += sizes.embedding;
    if (last == layers) {
        bytes += sizes.output + sizes.logits_scratch;
        // Where the two are one matrix it is needed once, but on both ends.
        if (first != 0 && transformer.output.data == transformer.embedding.data) bytes += sizes.embedding;
    }
    return bytes;
}

// As many experts in each layer of the part as fit into `bytes`, then one more in as many of the first layers as still fit.
std::uint64_t deal_experts(const Sizes& sizes, DevicePart& part, std::uint64_t bytes) {
    const auto layers = static_cast<std::size_t>(part.last - part.first);
    const auto first = static_cast<std::size_t>(part.first);
    part.experts.assign(layers, 0);
    std::uint64_t used = 0;
    for (bool more = true; more;) {
        more = false;
        for (std::size_t i = 0; i < layers; ++i) {
            if (part.experts[i] == sizes.experts[first + i] || used + sizes.expert[first + i] > bytes) continue;
            ++part.experts[i];
            used += sizes.expert[first + i];
            more = true;
        }
    }
    return used;
}

// The layers of the run dealt out from the last one backwards: `wanted[d]` of them to device d where they fit, else fewer. Returns where the
// devices' parts begin.
Placement deal(const Transformer& transformer, const Sizes& sizes, const LayerRun& run, std::span<const std::uint64_t> budgets,
               std::span<const std::int64_t> wanted) {
    Placement placement;
    std::int64_t last = run.last;
    for (std::size_t d = budgets.size(); d-- > 0 && last > run.first;) {
        std::int64_t first = last;
        while (first > run.first && last - first < wanted[d] && part_bytes(transformer, sizes, first - 1, last) <= budgets[d]) --first;
        if (first == last) continue;
        DevicePart part;
        part.device = d;
        part.first = first;
        part.last = last;
        part.embedding = first == 0;
        part.output = last == static_cast<std::int64_t>(sizes.base.size());
        part.bytes = part_bytes(transformer, sizes, first, last);
        part.bytes += deal_experts(sizes, part, budgets[d] - part.bytes);
        placement.parts.insert(placement.parts.begin(), std::move(part));
        last = first;
    }
    placement.cpu_layers = last - run.first;
    for (std::int64_t i = run.first; i < run.last; ++i) placement.experts_total += sizes.experts[static_cast<std::size_t>(i)];
    for (const DevicePart& part : placement.parts) {
        placement.experts_on_device += std::accumulate(part.experts.begin(), part.experts.end(), std::int64_t{0});
    }
    return placement;
}

Placement best_deal(const Transformer& transformer, const Sizes& sizes, const LayerRun& run, std::span<const std::uint64_t> budgets) {
    const std::int64_t layers = run.last - run.first;
    // By room first: every device gets the share of the layers that its share of the memory suggests.
    double total = 0;
    for (const std::uint64_t budget : budgets) total += static_cast<double>(budget);
    std::vector<std::int64_t> wanted;
    for (const std::uint64_t budget : budgets) {
        wanted.push_back(static_cast<std::int64_t>(static_cast<double>(layers) * static_cast<double>(budget) / std::max(total, 1.0) + 0.999));
    }
    Placement even = deal(transformer, sizes, run, budgets, wanted);
    if (even.complete() || budgets.size() == 1) return even;
    // Else as many as fit on each, from the last device on; the better one of both.
    Placement filled = deal(transformer, sizes, run, budgets, std::vector<std::int64_t>(budgets.size(), layers));
    const auto worse = [](const Placement& a, const Placement& b) {
        return a.cpu_layers != b.cpu_layers ? a.cpu_layers > b.cpu_layers : a.experts_on_device < b.experts_on_device;
    };
    return worse(even, filled) ? filled : even;
}

}  // namespace

std::uint64_t device_bytes(const cpu::Matrix& matrix) noexcept { return aligned(static_cast<std::uint64_t>(matrix.rows * matrix.row_bytes)); }

std::uint64_t device_bytes(const Layer& layer) noexcept {
    const Attention& attention = layer.attention;
    const std::int64_t width = attention.q.weight.cols;
    std::uint64_t bytes = vector_bytes(attention.norm, width) + vector_bytes(layer.feed_forward_norm, width) + linear_bytes(attention.q) +
                          linear_bytes(attention.k) + linear_bytes(attention.v) + linear_bytes(attention.out);
    bytes += vector_bytes(attention.q_norm, attention.q.weight.rows) + vector_bytes(attention.k_norm, attention.q.weight.rows);
    if (const auto* dense = std::get_if<DenseFeedForward>(&layer.feed_forward)) {
        bytes += linear_bytes(dense->gate) + linear_bytes(dense->up) + linear_bytes(dense->down);
    } else {
        const auto& mixture = std::get<MixtureFeedForward>(layer.feed_forward);
        bytes += device_bytes(mixture.router) + aligned(static_cast<std::uint64_t>(mixture.experts) * sizeof(kernels::ExpertAddresses));
        bytes += 3 * 256;  // the experts' three pieces are aligned once a layer
    }
    return bytes;
}

std::uint64_t expert_bytes(const Layer& layer) noexcept {
    const auto* mixture = std::get_if<MixtureFeedForward>(&layer.feed_forward);
    if (mixture == nullptr) return 0;
    std::int64_t bytes = 0;
    for (const cpu::Matrix* matrix : {&mixture->gate, &mixture->up, &mixture->down}) bytes += matrix->rows * matrix->row_bytes;
    return static_cast<std::uint64_t>(bytes);
}

Placement plan_placement(const Transformer& transformer, std::span<const std::uint64_t> budgets, std::int64_t context, const ElasticSizes& elastic,
                         std::optional<LayerRun> wanted) {
    const LayerRun run = wanted.value_or(LayerRun{.first = 0, .last = static_cast<std::int64_t>(transformer.layers.size())});
    const std::int64_t one = (context + cpu::kPagePositions - 1) / cpu::kPagePositions * cpu::kPagePositions;
    const auto plan = [&](std::int64_t chunk) {
        Placement placement = best_deal(transformer, measure(transformer, context, chunk, one, elastic), run, budgets);
        placement.chunk = std::min(chunk, context);
        placement.kv_positions = one;
        return placement;
    };
    // The largest chunk with which everything fits; where nothing helps, the largest one. Its scratch memory must be a small share of what
    // there is: what it takes is taken from weights and conversations.
    const auto modest = [&](std::int64_t chunk) {
        const ScratchPlan scratch{.tokens = std::min(chunk, context), .context = context, .logits = true};
        return chunk == kSmallestChunk || Scratch::bytes(transformer, scratch) <= std::ranges::max(budgets) / kScratchShare;
    };
    Placement best;
    for (const std::int64_t chunk : kChunks) {
        if (!modest(chunk)) continue;
        Placement placement = plan(chunk);
        if (placement.complete() || best.chunk == 0) best = std::move(placement);
        if (best.complete()) break;
    }
    if (elastic.kv_layer_bytes > 0) best.kv_positions = kMostSessions * one;
    if (!best.complete() || elastic.kv_layer_bytes > 0) return best;
    for (std::int64_t sessions = kMostSessions; sessions > 1; --sessions) {
        Placement placement = best_deal(transformer, measure(transformer, context, best.chunk, sessions * one, elastic), run, budgets);
        if (!placement.complete()) continue;
        placement.chunk = best.chunk;
        placement.kv_positions = sessions * one;
        return placement;
    }
    return best;
}

}  // namespace headroom::model
