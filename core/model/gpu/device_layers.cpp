#include "core/model/gpu/device_layers.h"

namespace headroom::model {
namespace {

// Tensors that will lie behind one another: first all are named, then they get addresses, and the pointers that were handed in are set.
class Pieces {
public:
    void add(kernels::Matrix& target, const cpu::Matrix& matrix) {
        target = {.data = nullptr, .type = static_cast<std::uint32_t>(matrix.type), .rows = static_cast<std::int32_t>(matrix.rows),
                  .cols = static_cast<std::int32_t>(matrix.cols), .row_bytes = static_cast<std::uint32_t>(matrix.row_bytes)};
        add(reinterpret_cast<const void**>(&target.data), matrix.data, matrix.rows * matrix.row_bytes);
    }
    void add(const float*& target, const FloatVector& vector, std::int64_t n) {
        if (vector) add(reinterpret_cast<const void**>(&target), vector.data(), n * static_cast<std::int64_t>(sizeof(float)));
    }
    void add(DeviceLinear& target, const Linear& linear) {
        add(target.weight, linear.weight);
        add(target.bias, linear.bias, linear.weight.rows);
    }
    void add(const void** target, const void* from, std::int64_t bytes) {
        targets_.push_back(target);
        pieces_.push_back({from, static_cast<std::uint64_t>(bytes), total_});
        total_ += (static_cast<std::uint64_t>(bytes) + 255) / 256 * 256;
    }
    [[nodiscard]] Result<DevicePieces> place(const DeviceMemory& memory) {
        DevicePieces placed;
        HR_TRY(placed.memory, residency::Region::create(memory.driver, memory.pool, memory.verdict, total_));
        for (std::size_t i = 0; i < pieces_.size(); ++i) {
            *targets_[i] = reinterpret_cast<const void*>(placed.memory.address() + pieces_[i].offset);
        }
        placed.pieces = std::move(pieces_);
        return placed;
    }

private:
    std::vector<const void**> targets_;
    std::vector<DevicePieces::Piece> pieces_;
    std::uint64_t total_ = 0;
};

void add_mixture(Pieces& pieces, DeviceMixture& mixture, const MixtureFeedForward& block) {
    const auto type = [](const cpu::Matrix& matrix) { return static_cast<std::uint32_t>(matrix.type); };
    const auto row_bytes = [](const cpu::Matrix& matrix) { return static_cast<std::uint32_t>(matrix.row_bytes); };
    pieces.add(mixture.router, block.router);
    mixture.normalize = block.normalize;
    mixture.shape = {.gate_type = type(block.gate), .up_type = type(block.up), .down_type = type(block.down),
                     .gate_row_bytes = row_bytes(block.gate), .up_row_bytes = row_bytes(block.up), .down_row_bytes = row_bytes(block.down),
                     .experts = static_cast<std::int32_t>(block.experts), .used = static_cast<std::int32_t>(block.used),
                     .width = static_cast<std::int32_t>(block.gate.cols), .hidden = static_cast<std::int32_t>(block.gate.rows)};
}

// result: stays where it is, because its pointers are set.
Result<> describe_layer(const DeviceMemory& memory, const Layer& layer, std::int64_t head_dim, std::size_t number, DeviceLayer& result) {
    const Attention& attention = layer.attention;
    const std::int64_t width = attention.q.weight.cols;
    Pieces pieces;
    pieces.add(result.attention_norm, attention.norm, width);
    pieces.add(result.q, attention.q);
    pieces.add(result.k, attention.k);
    pieces.add(result.v, attention.v);
    pieces.add(result.out, attention.out);
    pieces.add(result.q_norm, attention.q_norm, head_dim);
    pieces.add(result.k_norm, attention.k_norm, head_dim);
    pieces.add(result.feed_forward_norm, layer.feed_forward_norm, width);
    result.window = attention.window;
    if (const auto* dense = std::get_if<DenseFeedForward>(&layer.feed_forward)) {
        DeviceDense& target = result.feed_forward.emplace<DeviceDense>();
        pieces.add(target.gate, dense->gate);
        pieces.add(target.up, dense->up);
        pieces.add(target.down, dense->down);
    } else {
        const auto& block = std::get<MixtureFeedForward>(layer.feed_forward);
        DeviceMixture& target = result.feed_forward.emplace<DeviceMixture>();
        target.in_file = &block;
        target.layer = number;
        add_mixture(pieces, target, block);
    }
    HR_TRY(result.memory, pieces.place(memory));
    return {};
}

}  // namespace

Result<> DevicePieces::load(Copy copy) {
    HR_CHECK(memory.back());
    for (const Piece& piece : pieces) HR_CHECK(copy(memory.address() + piece.offset, piece.from, piece.bytes));
    return {};
}

Result<DeviceWeights> describe_weights(const DeviceMemory& memory, const Transformer& transformer, const DevicePart& part) {
    DeviceWeights weights;
    const bool tied = transformer.output.data == transformer.embedding.data;
    Pieces embedding, output;
    if (part.embedding || (part.output && tied)) embedding.add(weights.embedding, transformer.embedding);
    if (part.output) {
        output.add(weights.output_norm, transformer.output_norm, transformer.hyperparameters.embedding);
        if (!tied) output.add(weights.output, transformer.output);
    }
    HR_TRY(weights.embedding_memory, embedding.place(memory));
    HR_TRY(weights.output_memory, output.place(memory));
    if (part.output && tied) weights.output = weights.embedding;
    if (!part.embedding) weights.embedding = {};
    weights.layers.resize(static_cast<std::size_t>(part.last - part.first));
    for (std::size_t i = 0; i < weights.layers.size(); ++i) {
        HR_CHECK(describe_layer(memory, transformer.layers[static_cast<std::size_t>(part.first) + i], transformer.hyperparameters.head_dim, i,
                                weights.layers[i]));
    }
    return weights;
}

}  // namespace headroom::model
