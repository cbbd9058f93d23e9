// The experts of two to sixteen tokens, grouped by expert (kernels/few_experts.cu).

#include "core/compute/gpu/few_experts.h"

#include <optional>
#include <span>

#include "core/compute/gpu/shapes.h"

namespace headroom::kernels {
namespace {

constexpr unsigned own_bytes = 7 * 1024;  // the kernels' own shared memory at most
constexpr unsigned tile_rows = 16;
constexpr unsigned group_warps = 4;

// Warps (gate and up: groups of four) of a block, and tiles of each on their way: so many bytes that memory is never idle.
struct Shape {
    unsigned warps, stages;
};
constexpr Shape gate_up_shapes[] = {{4, 2}, {3, 2}, {2, 2}, {3, 1}, {2, 1}};
constexpr Shape down_shapes[] = {{16, 1}, {12, 2}, {12, 1}, {8, 2}, {6, 2}, {8, 1}, {6, 1}, {4, 1}};

std::optional<Kernel> gate_up_kernel(const ExpertShape& shape) {
    if (shape.up_type != shape.gate_type || shape.up_row_bytes != shape.gate_row_bytes) return std::nullopt;
    return of_type(shape.gate_type, Kernel::few_experts_gate_up_q4_k, Kernel::few_experts_gate_up_q5_k, Kernel::few_experts_gate_up_q6_k);
}
std::optional<Kernel> down_kernel(const ExpertShape& shape) {
    return of_type(shape.down_type, Kernel::few_experts_down_q4_k, Kernel::few_experts_down_q5_k, Kernel::few_experts_down_q6_k);
}

unsigned choices(const ExpertShape& shape, std::int32_t tokens) { return static_cast<unsigned>(tokens * shape.used); }

// Rows of codes as the kernels pad them.
unsigned code_bytes(unsigned rows, unsigned n) { return rows * (n + 32 + ((n / 8 + 127) / 128 * 64 + 16) * 2 + n / 256 * 4); }

// Eight rows of so many bytes lie in different banks.
unsigned row_stride(const ExpertShape& shape) { return shape.gate_row_bytes + (32 + 128 - shape.gate_row_bytes % 128) % 128; }

// Rows of hidden that a block needs at most: its share of all tiles lies in so many items.
unsigned code_rows(Queue queue, const ExpertShape& shape, std::int32_t tokens) {
    const unsigned of_item = static_cast<unsigned>(shape.width) / tile_rows, tiles = choices(shape, tokens) * of_item / multiprocessors(queue) + 1;
    return std::min(choices(shape, tokens), (tiles + of_item - 2) / of_item + 1) * kFewTokens;
}

unsigned gate_up_bytes(const ExpertShape& shape, std::int32_t tokens, const Shape& of) {
    const unsigned room = group_warps * 4 * 32 * 2 * sizeof(float);  // the sums of four warps, twice
    return of.warps * (of.stages * tile_rows * row_stride(shape) + room) + round_up(choices(shape, tokens) * kFewItemBytes) +
           round_up(static_cast<unsigned>(shape.experts) * sizeof(ExpertAddresses)) + code_bytes(static_cast<unsigned>(tokens), static_cast<unsigned>(shape.width));
}
unsigned down_bytes(Queue queue, const ExpertShape& shape, std::int32_t tokens, const Shape& of) {
    return of.warps * of.stages * tile_rows * shape.down_row_bytes + round_up(choices(shape, tokens) * kFewItemBytes) +
           round_up(static_cast<unsigned>(shape.experts) * sizeof(ExpertAddresses)) + code_bytes(code_rows(queue, shape, tokens), static_cast<unsigned>(shape.hidden));
}

// The first that fits.
template <class Bytes>
std::optional<Shape> fitting(Queue queue, std::span<const Shape> shapes, Bytes bytes) {
    for (const Shape& shape : shapes) {
        if (bytes(shape) + own_bytes <= queue.kernels.shared_limit()) return shape;
    }
    return std::nullopt;
}
std::optional<Shape> gate_up_shape(Queue queue, const ExpertShape& shape, std::int32_t tokens) {
    return fitting(queue, gate_up_shapes, [&](const Shape& of) { return gate_up_bytes(shape, tokens, of); });
}
std::optional<Shape> down_shape(Queue queue, const ExpertShape& shape, std::int32_t tokens) {
    // Of Q6_K the computation is the limit, and sixteen warps are in each other's way (docs/performance.md).
    const std::span<const Shape> shapes = down_shapes;
    const bool q6_k = static_cast<gguf::TensorType>(shape.down_type) == gguf::TensorType::q6_k;
    return fitting(queue, shapes.subspan(q6_k ? 1 : 0), [&](const Shape& of) { return down_bytes(queue, shape, tokens, of); });
}

}  // namespace

bool groups_experts(Queue queue, const ExpertShape& shape, std::int32_t tokens) noexcept {
    return tokens > 1 && tokens <= kMostFewTokens && shape.used <= kMostFewUsed && shape.experts <= kMostFewExperts && has_matrix_units(queue) &&
           gate_up_kernel(shape) && down_kernel(shape) && shape.gate_row_bytes % 16 == 0 && shape.hidden % 8 == 0 &&
           shape.width % static_cast<std::int32_t>(tile_rows) == 0 && gate_up_shape(queue, shape, tokens) && down_shape(queue, shape, tokens);
}

Result<> few_experts_gate_up(Queue queue, ExpertsGateUpArguments arguments) {
    const Shape of = *gate_up_shape(queue, arguments.shape, arguments.tokens);
    arguments.stages = static_cast<std::int32_t>(of.stages);
    arguments.row_stride = static_cast<std::int32_t>(row_stride(arguments.shape));
    return queue.kernels.launch(*gate_up_kernel(arguments.shape), {multiprocessors(queue)}, {of.warps * group_warps * 32},
                                gate_up_bytes(arguments.shape, arguments.tokens, of), queue.stream, arguments);
}

Result<> few_experts_down(Queue queue, ExpertsDownArguments arguments) {
    const Shape of = *down_shape(queue, arguments.shape, arguments.tokens);
    arguments.stages = static_cast<std::int32_t>(of.stages);
    arguments.code_rows = static_cast<std::int32_t>(code_rows(queue, arguments.shape, arguments.tokens));
    return queue.kernels.launch(*down_kernel(arguments.shape), {multiprocessors(queue)}, {of.warps * 32},
                                down_bytes(queue, arguments.shape, arguments.tokens, of), queue.stream, arguments);
}

}  // namespace headroom::kernels
