#include "core/compute/gpu/shapes.h"

#include <optional>

namespace headroom::kernels {
namespace {

constexpr unsigned rows_threads = 256;

// Pairs of rows, as products.cu deals them.
std::int64_t units(const ProductArguments& arguments) {
    if (arguments.swiglu) return arguments.targets[0].w.rows;
    std::int64_t count = 0;
    for (std::int32_t i = 0; i < arguments.target_count; ++i) count += (arguments.targets[i].w.rows + 1) / 2;
    return count;
}

Result<> check(const char* kernel, const ProductArguments& arguments) {
    if (arguments.target_count < 1 || arguments.target_count > 3 || (arguments.swiglu && arguments.target_count != 2)) {
        return fail(ErrorKind::invalid_argument, "{}: {} matrices{}; it takes one to three, or a gate and an up matrix", kernel, arguments.target_count,
                    arguments.swiglu ? " with SwiGLU" : "");
    }
    const Matrix& first = arguments.targets[0].w;
    for (std::int32_t i = 0; i < arguments.target_count; ++i) {
        const Matrix& w = arguments.targets[i].w;
        HR_CHECK(check_matrix(kernel, w.type, w.rows, w.cols));
        if (w.cols != first.cols || (arguments.swiglu && w.rows != first.rows)) {
            return fail(ErrorKind::invalid_argument, "{}: matrices of {} x {} and {} x {} do not go together", kernel, first.rows, first.cols, w.rows,
                        w.cols);
        }
        if ((arguments.forms & form_of(w.type)) == 0) {
            return fail(ErrorKind::invalid_argument, "{}: the activations are not given in the form that {} needs", kernel,
                        gguf::find_type(w.type)->name);
        }
    }
    return {};
}

// The kernel for the types of these matrices, where there is one of its own.
std::optional<Kernel> row_kernel(const ProductArguments& arguments) {
    std::uint32_t low = UINT32_MAX, high = 0;  // by their numbers: Q4_K, Q5_K, Q6_K
    for (std::int32_t i = 0; i < arguments.target_count; ++i) {
        low = std::min(low, arguments.targets[i].w.type);
        high = std::max(high, arguments.targets[i].w.type);
    }
    if (arguments.swiglu && low != high) return std::nullopt;
    for (std::int32_t i = 0; i < arguments.target_count; ++i) {
        if (arguments.targets[i].w.type != low && arguments.targets[i].w.type != high) return std::nullopt;
    }
    constexpr auto q4_k = static_cast<std::uint32_t>(gguf::TensorType::q4_k), q5_k = static_cast<std::uint32_t>(gguf::TensorType::q5_k),
                   q6_k = static_cast<std::uint32_t>(gguf::TensorType::q6_k);
    if (low == q4_k && high == q4_k) return Kernel::product_row_q4_k;
    if (low == q5_k && high == q5_k) return Kernel::product_row_q5_k;
    if (low == q6_k && high == q6_k) return Kernel::product_row_q6_k;
    if (low == q4_k && high == q6_k) return Kernel::product_row_q4_k_q6_k;
    if (low == q5_k && high == q6_k) return Kernel::product_row_q5_k_q6_k;
    return std::nullopt;
}

// Shared memory of product_few: the tokens' codes, sums and scales, and the sums of each group of four warps, twice.
unsigned few_bytes(unsigned cols, unsigned threads = kFewThreads) {
    const unsigned of_token = cols + 32 + (cols / 8 + 127) / 128 * 128 + 32 + cols / 256 * 4;
    return kFewTokens * of_token + threads * 4 * 4 * 2;
}

// How product_few_q6_k is launched: groups of four warps, and pieces of each on their way. Nothing: it does not take these matrices.
struct FewPieces {
    unsigned groups, stages, bytes;
};
std::optional<FewPieces> few_pieces(Queue queue, const ProductArguments& arguments) {
    const Matrix& w = arguments.targets[0].w;
    const auto cols = static_cast<unsigned>(w.cols);
    if (arguments.target_count != 1 || static_cast<gguf::TensorType>(w.type) != gguf::TensorType::q6_k || cols % 2048 != 0 || w.row_bytes % 16 != 0) return std::nullopt;
    constexpr unsigned own_bytes = 256;  // the kernel's own shared memory at most
    for (const auto& [groups, stages] : {std::pair{3U, 2U}, {2U, 2U}, {3U, 1U}, {2U, 1U}}) {
        const unsigned bytes = few_bytes(cols, groups * 128) + groups * stages * 16 * kFewPieceStride;
        if (bytes + own_bytes <= queue.kernels.shared_limit()) return FewPieces{groups, stages, bytes};
    }
    return std::nullopt;
}

// Whether product_few_wide is for these matrices.
bool takes_wide(const ProductArguments& arguments, unsigned blocks) {
    const unsigned superblocks = static_cast<unsigned>(arguments.targets[0].w.cols) / 256, groups = kFewThreads / 32 / superblocks;
    unsigned tiles = 0;
    for (std::int32_t i = 0; i < arguments.target_count; ++i) tiles += static_cast<unsigned>(arguments.targets[i].w.rows + 15) / 16;
    return !arguments.swiglu && superblocks > 4 && groups > 0 && tiles <= groups * blocks;
}

bool few_fits(Queue queue, const ProductArguments& arguments) {
    if (arguments.tokens < 2 || !has_matrix_units(queue)) return false;
    for (std::int32_t i = 0; i < arguments.target_count; ++i) {
        const auto type = static_cast<gguf::TensorType>(arguments.targets[i].w.type);
        if (type != gguf::TensorType::q4_k && type != gguf::TensorType::q5_k && type != gguf::TensorType::q6_k) return false;
    }
    if (arguments.swiglu && arguments.targets[0].w.type != arguments.targets[1].w.type) return false;
    return few_bytes(static_cast<unsigned>(arguments.targets[0].w.cols)) <= queue.kernels.shared_limit();
}

}  // namespace

Result<> product_row(Queue queue, const ProductArguments& arguments) {
    HR_CHECK(check("product_row", arguments));
    if (arguments.tokens != 1) return fail(ErrorKind::invalid_argument, "product_row takes one token; there are {}", arguments.tokens);
    const auto n = static_cast<unsigned>(arguments.targets[0].w.cols);
    if (const auto special = row_kernel(arguments)) {
        // One block to a multiprocessor: each of them makes the row's codes once.
        const unsigned blocks = static_cast<unsigned>(std::min<std::int64_t>(units(arguments), multiprocessors(queue)));
        return queue.kernels.launch(*special, {blocks}, {wide_block(queue)}, row_bytes(n) + (arguments.norm ? n * 4 : 0), queue.stream, arguments);
    }
    unsigned shared = 0;
    if ((arguments.forms & kFormFloats) && arguments.norm) shared += round_up(n * 4);
    if (arguments.forms & kForm256) shared += quantized_bytes(n, 256);
    if (arguments.forms & kForm32) shared += quantized_bytes(n, 32);
    const unsigned threads = queue.kernels.device().architecture.starts_with("gfx") ? kProductRowThreadsHip : kProductRowThreads;
    const unsigned blocks = blocks_for(queue, units(arguments), threads / 32, 1);
    return queue.kernels.launch(Kernel::product_row, {blocks}, {threads}, shared, queue.stream, arguments);
}

Result<> product_rows(Queue queue, const ProductArguments& arguments) {
    if (arguments.tokens <= 0) return {};
    HR_CHECK(check("product_rows", arguments));
    const auto passes = static_cast<unsigned>((arguments.tokens + kFewTokens - 1) / kFewTokens);
    if (few_fits(queue, arguments)) {
        if (const auto pieces = few_pieces(queue, arguments)) {
            ProductArguments set = arguments;
            set.stages = static_cast<std::int32_t>(pieces->stages);
            const unsigned blocks = blocks_for(queue, (arguments.targets[0].w.rows + 15) / 16, 1, 1);
            return queue.kernels.launch(Kernel::product_few_q6_k, {blocks, passes}, {pieces->groups * 128}, pieces->bytes, queue.stream, set);
        }
        // A tile of 16 rows to four warps, one block to a multiprocessor.
        const unsigned blocks = blocks_for(queue, (units(arguments) + 7) / 8, 1, 1);
        return queue.kernels.launch(takes_wide(arguments, blocks) ? Kernel::product_few_wide : Kernel::product_few, {blocks, passes}, {kFewThreads},
                                    few_bytes(static_cast<unsigned>(arguments.targets[0].w.cols)), queue.stream, arguments);
    }
    const unsigned blocks = blocks_for(queue, units(arguments), rows_threads / 32, 2);
    return queue.kernels.launch(Kernel::product_rows, {blocks, passes}, {rows_threads}, 0, queue.stream, arguments);
}

}  // namespace headroom::kernels
