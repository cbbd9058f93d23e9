#include "core/compute/gpu/shapes.h"

#include <optional>

namespace headroom::kernels {
namespace {

constexpr std::int32_t most_experts = 512;  // kMostExperts and kMostUsed of experts.cu
constexpr std::int32_t most_used = 16;

Result<> check_choice(const char* kernel, std::int32_t experts, std::int32_t used) {
    if (experts < 1 || experts > most_experts || used < 1 || used > most_used || used > experts) {
        return fail(ErrorKind::invalid_argument, "{}: {} of {} experts; it takes up to {} of up to {}", kernel, used, experts, most_used, most_experts);
    }
    return {};
}

// Shared memory of experts_gate_up_TYPE: the tokens' codes, and a list of the choices.
unsigned gate_up_bytes(const ExpertShape& shape, std::int32_t tokens) {
    return row_bytes(static_cast<unsigned>(tokens * shape.width)) + static_cast<unsigned>(tokens * shape.used) * 2;
}

std::optional<Kernel> gate_up_kernel(Queue queue, const ExpertShape& shape, std::int32_t tokens) {
    constexpr unsigned of_choice = 4096;  // the kernel's own shared memory
    if (shape.gate_type != shape.up_type || gate_up_bytes(shape, tokens) + of_choice > queue.kernels.shared_limit()) return std::nullopt;
    return of_type(shape.gate_type, Kernel::experts_gate_up_q4_k, Kernel::experts_gate_up_q5_k, Kernel::experts_gate_up_q6_k);
}

}  // namespace

bool chooses_by_itself(Queue queue, const ExpertShape& shape, std::int32_t tokens) noexcept {
    return tokens == 1 ? gate_up_kernel(queue, shape, 1).has_value() : groups_experts(queue, shape, tokens);
}

Result<> router_row(Queue queue, const RouterArguments& arguments) {
    if (arguments.tokens <= 0) return {};
    HR_CHECK(check_choice("router_row", arguments.w.rows, arguments.used));
    HR_CHECK(check_matrix("router_row", arguments.w.type, arguments.w.rows, arguments.w.cols));
    const auto n = static_cast<unsigned>(arguments.w.cols);
    const std::uint32_t form = form_of(arguments.w.type);
    const unsigned shared = round_up(n * 4) + (form == kFormFloats ? 0 : quantized_bytes(n, 32));
    // Each block norms its token's row: with several tokens as few as fill the device.
    const unsigned pairs = static_cast<unsigned>(arguments.w.rows + 1) / 2;
    const unsigned blocks = std::min(pairs, std::max(1U, multiprocessors(queue) / static_cast<unsigned>(arguments.tokens)));
    return queue.kernels.launch(Kernel::router_row, {blocks, static_cast<unsigned>(arguments.tokens)}, {256}, shared, queue.stream, arguments);
}

Result<> choose_experts(Queue queue, const ChooseArguments& arguments) {
    if (arguments.tokens <= 0) return {};
    HR_CHECK(check_choice("choose_experts", arguments.experts, arguments.used));
    const auto threads = static_cast<unsigned>((arguments.experts + 31) / 32 * 32);
    return queue.kernels.launch(Kernel::choose_experts, {static_cast<unsigned>(arguments.tokens)}, {threads}, 0, queue.stream, arguments);
}

Result<> experts_gate_up(Queue queue, const ExpertsGateUpArguments& arguments) {
    if (arguments.tokens <= 0) return {};
    const ExpertShape& shape = arguments.shape;
    HR_CHECK(check_choice("experts_gate_up", shape.experts, shape.used));
    HR_CHECK(check_matrix("experts_gate_up", shape.gate_type, shape.hidden, shape.width));
    HR_CHECK(check_matrix("experts_gate_up", shape.up_type, shape.hidden, shape.width));
    if (arguments.scores && (arguments.tokens > 1 || !chooses_by_itself(queue, shape, 1))) {
        return fail(ErrorKind::invalid_argument, "experts_gate_up: these types have no kernel that chooses");
    }
    constexpr unsigned threads = 256;
    const std::int64_t units = std::int64_t{arguments.tokens} * shape.used * shape.hidden;
    if (const auto special = gate_up_kernel(queue, shape, arguments.tokens)) {
        const unsigned blocks = static_cast<unsigned>(std::min<std::int64_t>(units, multiprocessors(queue)));
        return queue.kernels.launch(*special, {blocks}, {wide_block(queue)}, gate_up_bytes(shape, arguments.tokens), queue.stream, arguments);
    }
    const auto choices = static_cast<unsigned>(arguments.tokens * shape.used);
    // Three blocks to a multiprocessor, dealt evenly to the choices.
    const unsigned of_choice = std::max(1U, 3 * multiprocessors(queue) / choices);
    const unsigned blocks = std::min(of_choice, (static_cast<unsigned>(shape.hidden) + threads / 32 - 1) / (threads / 32));
    return queue.kernels.launch(Kernel::experts_gate_up, {blocks, choices}, {threads}, 0, queue.stream, arguments);
}

Result<> experts_down(Queue queue, const ExpertsDownArguments& arguments) {
    if (arguments.tokens <= 0) return {};
    const ExpertShape& shape = arguments.shape;
    HR_CHECK(check_choice("experts_down", shape.experts, shape.used));
    HR_CHECK(check_matrix("experts_down", shape.down_type, shape.width, shape.hidden));
    const auto used = static_cast<unsigned>(shape.used), width = static_cast<unsigned>(shape.width), n = static_cast<unsigned>(shape.hidden);
    const unsigned warps = 16 / used * used;
    // As many rows to a block as give each multiprocessor one block of some token, and the warps of a rank at least a pair of rows each.
    const unsigned of_token = std::max(1U, multiprocessors(queue) / static_cast<unsigned>(arguments.tokens));
    const unsigned pairs_for_all = (width + 2 * of_token - 1) / (2 * of_token);
    const unsigned rows = 2 * std::clamp(pairs_for_all, warps / used, static_cast<unsigned>(kMostDownRows / 2));
    const unsigned blocks = (width + rows - 1) / rows;
    // The kernel's own rows to a block, from the number of blocks.
    const unsigned rows_of_block = (width + 2 * blocks - 1) / (2 * blocks) * 2;
    const gpu::Grid grid{blocks, static_cast<unsigned>(arguments.tokens)};
    // A block of one type's kernel may have fewer warps than there are ranks: the general one takes these.
    const unsigned of_one_type = wide_block(queue) * 3 / 4 / 32 / used * used;
    if (const auto special = of_type(shape.down_type, Kernel::experts_down_q4_k, Kernel::experts_down_q5_k, Kernel::experts_down_q6_k); special && of_one_type > 0) {
        return queue.kernels.launch(*special, grid, {of_one_type * 32}, round_up(used * rows_of_block * 4) + row_bytes(used * n), queue.stream, arguments);
    }
    const std::uint32_t form = form_of(shape.down_type);
    const unsigned shared = round_up(used * rows_of_block * 4) + (form == kFormFloats ? 0 : quantized_bytes(used * n, 32));
    return queue.kernels.launch(Kernel::experts_down, grid, {warps * 32}, shared, queue.stream, arguments);
}

Result<> group_rows(Queue queue, const GroupArguments& arguments) {
    if (arguments.experts < 1 || arguments.choices < 0) {
        return fail(ErrorKind::invalid_argument, "group_rows: {} choices of {} experts", arguments.choices, arguments.experts);
    }
    const auto threads = static_cast<unsigned>(std::clamp((arguments.choices + 31) / 32, 1, 32) * 32);
    return queue.kernels.launch(Kernel::group_rows, {static_cast<unsigned>(arguments.experts)}, {threads}, 0, queue.stream, arguments);
}

Result<> combine_rows(Queue queue, const CombineArguments& arguments) {
    if (arguments.tokens <= 0) return {};
    const gpu::Grid grid{static_cast<unsigned>((arguments.n + 255) / 256), static_cast<unsigned>(arguments.tokens)};
    return queue.kernels.launch(Kernel::combine_rows, grid, {256}, 0, queue.stream, arguments);
}

Result<> hand_over(Queue queue, const HandOverArguments& arguments) {
    return queue.kernels.launch(Kernel::hand_over, {1}, {1024}, 0, queue.stream, arguments);
}

Result<> await_host(Queue queue, const AwaitArguments& arguments) {
    return queue.kernels.launch(Kernel::await_host, {1}, {32}, 0, queue.stream, arguments);
}

}  // namespace headroom::kernels
