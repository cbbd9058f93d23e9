#include <limits>

#include "core/compute/gpu/shapes.h"

namespace headroom::kernels {
namespace {

constexpr auto no_kernel = static_cast<Kernel>(kKernelCount);

#define HR_TILES_CASE(prefix, type) \
    case gguf::TensorType::type: return Kernel::prefix##_##type;
#define HR_TILES_SWITCH(prefix)                                                                                               \
    switch (type) {                                                                                                           \
        HR_TILES_CASE(prefix, q4_0) HR_TILES_CASE(prefix, q4_1) HR_TILES_CASE(prefix, q5_0) HR_TILES_CASE(prefix, q5_1)       \
        HR_TILES_CASE(prefix, q8_0) HR_TILES_CASE(prefix, q2_k) HR_TILES_CASE(prefix, q3_k) HR_TILES_CASE(prefix, q4_k)       \
        HR_TILES_CASE(prefix, q5_k) HR_TILES_CASE(prefix, q6_k) HR_TILES_CASE(prefix, iq4_nl) HR_TILES_CASE(prefix, iq4_xs)   \
        default: return no_kernel;                                                                                        \
    }

// Not a kernel for types without tiles.
Kernel product_tiles_kernel(gguf::TensorType type) { HR_TILES_SWITCH(product_tiles) }
Kernel experts_tiles_kernel(gguf::TensorType type) { HR_TILES_SWITCH(experts_tiles) }

// Shared memory of a block: kernels/tiles.h has a second stage where it uses matrix units.
unsigned tile_bytes(Queue queue) {
    return (has_matrix_units(queue) ? 2 : 1) * kTileStageBytes + kTileParkedBytes;
}

Result<> check_tiles(const char* kernel, gguf::TensorType type, std::int32_t rows, std::int32_t cols, std::int64_t tokens, std::int64_t tiles) {
    HR_CHECK(check_matrix(kernel, static_cast<std::uint32_t>(type), rows, cols));
    if (!has_tiles(type)) return fail(ErrorKind::invalid_argument, "{}: {} is not a quantized type", kernel, gguf::type_info(type).name);
    if (tokens * cols > std::numeric_limits<std::int32_t>::max() || tiles > 65535) {
        return fail(ErrorKind::invalid_argument, "{}: {} rows of {} activations are too many for one launch", kernel, tokens, cols);
    }
    return {};
}

}  // namespace

bool has_tiles(gguf::TensorType type) noexcept { return product_tiles_kernel(type) != no_kernel; }

Result<> product_tiles(Queue queue, const ProductTilesArguments& arguments) {
    if (arguments.tokens <= 0) return {};
    const Matrix& w = arguments.target.w;
    const auto type = static_cast<gguf::TensorType>(w.type);
    const std::int32_t tiles = (arguments.tokens + kTileTokens - 1) / kTileTokens;
    HR_CHECK(check_tiles("product_tiles", type, w.rows, w.cols, arguments.tokens, tiles));
    const gpu::Grid grid{static_cast<unsigned>((w.rows + kTileRows - 1) / kTileRows), static_cast<unsigned>(tiles)};
    return queue.kernels.launch(product_tiles_kernel(type), grid, {kTileThreads}, tile_bytes(queue), queue.stream, arguments);
}

Result<> experts_tiles(Queue queue, gguf::TensorType type, const ExpertsTilesArguments& arguments) {
    if (arguments.choices <= 0) return {};
    // Each expert's choices may end with a tile that is not full.
    const std::int64_t tiles = (arguments.choices + std::int64_t{kTileTokens - 1} * std::min(arguments.experts, arguments.choices)) / kTileTokens;
    HR_CHECK(check_tiles("experts_tiles", type, arguments.rows, arguments.cols, arguments.choices, tiles));
    const gpu::Grid grid{static_cast<unsigned>((arguments.rows + kTileRows - 1) / kTileRows), static_cast<unsigned>(tiles)};
    return queue.kernels.launch(experts_tiles_kernel(type), grid, {kTileThreads}, tile_bytes(queue), queue.stream, arguments);
}

}  // namespace headroom::kernels
