// The experts of two to sixteen tokens, grouped by expert (kernels/few_experts.cu).

#include <optional>
#include <span>

#include "core/compute/gpu/shapes.h"

namespace headroom::kernels {
namespace {

constexpr unsigned own_bytes = 7 * 1024;  // the kernels' own shared memory at most
constexpr unsigned tile_rows = 16;
constexpr unsigned group_warps = 4;

// Groups of warps of a block, and tiles of each on their way: so many bytes that memory is never idle.
struct Shape {
    unsigned groups, stages;
};
constexpr Shape gate_up_shapes[] = {{4, 2}, {3, 2}, {2, 2}, {3, 1}, {2, 1}};
constexpr Shape down_shapes[] = {{14, 2}, {14, 1}, {8, 3}, {8, 2}, {5, 4}, {5, 3}, {5, 2}, {4, 4}, {4, 3}, {4, 2}, {3, 2}, {2, 2}, {3, 1}, {2, 1}, {1, 1}};

// Warps of a group of few_experts_down_TYPE: accumulators of a row that something is added to.
unsigned down_parts(const ExpertShape& shape) { return std::min(group_warps, static_cast<unsigned>(shape.hidden) / 256); }

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
    return of.groups * (of.stages * tile_rows * row_stride(shape) + room) + choices(shape, tokens) * kFewItemBytes +
           round_up(static_cast<unsigned>(shape.experts) * sizeof(ExpertAddresses)) + code_bytes(static_cast<unsigned>(tokens), static_cast<unsigned>(shape.width));
}
unsigned down_bytes(Queue queue, const ExpertShape& shape, std::int32_t tokens, const Shape& of) {
    const unsigned room = down_parts(shape) * 4 * 32 * 2 * sizeof(float);  // the sums of a group's warps, twice
    return of.groups * (of.stages * tile_rows * shape.down_row_bytes + room) + (1 + choices(shape, tokens)) * kFewItemBytes +
           code_bytes(code_rows(queue, shape, tokens), static_cast<unsigned>(shape.hidden));
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
    // From the first on that has no more warps than a block.
    const std::span<const Shape> shapes = down_shapes;
    const auto first = std::ranges::find_if(shapes, [&](const Shape& of) { return of.groups * down_parts(shape) * 32 <= kFewThreads; });
    return fitting(queue, shapes.subspan(static_cast<std::size_t>(first - shapes.begin())), [&](const Shape& of) { return down_bytes(queue, shape, tokens, of); });
}

}  // namespace

bool groups_experts(Queue queue, const ExpertShape& shape, std::int32_t tokens) noexcept {
    return tokens > 1 && tokens <= kMostFewTokens && shape.used <= kMostFewUsed && shape.experts <= kMostFewExperts && has_matrix_units(queue) &&
           gate_up_kernel(shape) && down_kernel(shape) && shape.gate_row_bytes % 16 == 0 && shape.hidden % 8 == 0 &&
           shape.width % static_cast<std::int32_t>(tile_rows) == 0 && gate_up_shape(queue, shape, tokens) && down_shape(queue, shape, tokens);
}

Result<> few_experts(Queue queue, const ExpertsGateUpArguments& gate_up, const ExpertsDownArguments& down, void* list) {
    const ExpertShape& shape = gate_up.shape;
    if (!groups_experts(queue, shape, gate_up.tokens) || down.outputs == nullptr || list == nullptr) {
        return fail(ErrorKind::invalid_argument, "few_experts: {} tokens with experts of {} x {} cannot be grouped", gate_up.tokens, shape.hidden, shape.width);
    }
    const Shape first = *gate_up_shape(queue, shape, gate_up.tokens), second = *down_shape(queue, shape, gate_up.tokens);
    FewGateUpArguments arguments{.of = gate_up, .list = list};
    arguments.of.stages = static_cast<std::int32_t>(first.stages);
    arguments.of.row_stride = static_cast<std::int32_t>(row_stride(shape));
    HR_CHECK(queue.kernels.launch(*gate_up_kernel(shape), {multiprocessors(queue)}, {first.groups * group_warps * 32},
                                  gate_up_bytes(shape, gate_up.tokens, first), queue.stream, arguments));
    FewDownArguments behind{.of = down, .list = list};
    behind.of.stages = static_cast<std::int32_t>(second.stages);
    behind.of.code_rows = static_cast<std::int32_t>(code_rows(queue, shape, gate_up.tokens));
    return queue.kernels.launch(*down_kernel(shape), {multiprocessors(queue)}, {second.groups * down_parts(shape) * 32},
                                down_bytes(queue, shape, gate_up.tokens, second), queue.stream, behind);
}

}  // namespace headroom::kernels
