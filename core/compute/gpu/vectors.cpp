#include <algorithm>
#include <limits>

#include "core/compute/gpu/ops.h"

namespace headroom::kernels {
namespace {

constexpr unsigned share_threads = 256;  // a warp for each 256 elements, eight warps to a block

gpu::Grid share_blocks(std::int64_t rows, std::int64_t n) {
    const std::int64_t warps = rows * ((n + 255) / 256);
    return {static_cast<unsigned>((warps + 7) / 8)};
}

// The widths that the quantized forms can have.
Result<> check_groups(const char* kernel, std::int64_t n, const Quantized& groups_256, const Quantized& groups_32) {
    if ((groups_256.codes && n % 256 != 0) || (groups_32.codes && n % 32 != 0)) {
        return fail(ErrorKind::invalid_argument, "{}: rows of {} elements cannot be quantized in groups of {}", kernel, n,
                    groups_256.codes && n % 256 != 0 ? 256 : 32);
    }
    return {};
}

}  // namespace

Result<> embed_rows(Queue queue, const EmbedArguments& arguments) {
    if (arguments.count <= 0) return {};
    const gpu::Grid grid{static_cast<unsigned>(arguments.count), static_cast<unsigned>((arguments.table.cols + 255) / 256)};
    return queue.kernels.launch(Kernel::embed_rows, grid, {256}, 0, queue.stream, arguments);
}

Result<> norm_rows(Queue queue, const NormArguments& arguments) {
    if (arguments.count <= 0) return {};
    HR_CHECK(check_groups("norm_rows", arguments.n, arguments.groups_256, arguments.groups_32));
    if (!arguments.weight) {
        return queue.kernels.launch(Kernel::norm_rows, share_blocks(arguments.count, arguments.n), {share_threads}, 0, queue.stream, arguments);
    }
    // A few rows leave most of the device idle: more threads each, for what comes after the sum. Many fill it with small blocks.
    unsigned threads = 256;
    if (arguments.count <= queue.kernels.device().multiprocessors) {
        threads = static_cast<unsigned>(std::clamp((arguments.n + 255) / 256 * 32, 256, 1024));
    }
    return queue.kernels.launch(Kernel::norm_rows, {static_cast<unsigned>(arguments.count)}, {threads}, 0, queue.stream, arguments);
}

Result<> combine_norm_rows(Queue queue, const CombineNormArguments& arguments) {
    const auto& [combine, norm] = arguments;
    if (combine.tokens <= 0) return {};
    HR_CHECK(check_groups("combine_norm_rows", norm.n, norm.groups_256, norm.groups_32));
    if (combine.host_outputs || norm.x != combine.x || !norm.weight || norm.rows || norm.n != combine.n || norm.n % 4 != 0) {
        return fail(ErrorKind::invalid_argument, "combine_norm_rows: rows of {} and {} elements do not go together", combine.n, norm.n);
    }
    const auto threads = static_cast<unsigned>(std::clamp((norm.n + 127) / 128 * 32, 256, 512));
    return queue.kernels.launch(Kernel::combine_norm_rows, {static_cast<unsigned>(combine.tokens)}, {threads}, static_cast<unsigned>(norm.n) * 2 * sizeof(float),
                                queue.stream, arguments);
}

Result<> swiglu_rows(Queue queue, const SwigluArguments& arguments) {
    if (arguments.rows <= 0) return {};
    HR_CHECK(check_groups("swiglu_rows", arguments.n, arguments.groups_256, arguments.groups_32));
    return queue.kernels.launch(Kernel::swiglu_rows, share_blocks(arguments.rows, arguments.n), {share_threads}, 0, queue.stream, arguments);
}

Result<> copy_words(Queue queue, gpu::DevicePointer to, const void* from, std::uint64_t bytes) {
    const std::uint64_t words = bytes / sizeof(float);
    if (bytes % sizeof(float) != 0 || words > static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max())) {
        return fail(ErrorKind::invalid_argument, "copy_words: {} bytes are not a number of words that one kernel can copy", bytes);
    }
    if (words == 0) return {};
    NormArguments arguments{};
    arguments.x = static_cast<const float*>(from);
    arguments.count = 1;
    arguments.n = static_cast<std::int32_t>(words);
    arguments.out = reinterpret_cast<float*>(to);
    return norm_rows(queue, arguments);
}

}  // namespace headroom::kernels
