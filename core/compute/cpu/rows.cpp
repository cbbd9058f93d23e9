#include "core/compute/cpu/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/compute/cpu/rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <type_traits>

#include "core/compute/cpu/product.h"

#include "core/compute/cpu/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headroom::cpu::HWY_NAMESPACE {

#if HEADROOM_KERNELS

template <class Type, class QuadType>
void multiply_tile(const Tile& tile, const QuadType* quads) {
    const std::int64_t end = std::min(tile.w->rows, tile.row + tile.rows);
    for (std::int64_t row = tile.row; row < end; row += 4) {
        for (std::int64_t i = 0; i < tile.count; ++i) {
            multiply_four_rows<Type>(*tile.w, row, quads + tile.token(i), tile.x->tokens, tile.y + i * tile.y_stride);
        }
    }
}

void multiply_rows(const Tile& tile) {
    using gguf::TensorType;
    const Quad256* quads_256 = tile.x->quads_256.data();
    const Quad32* quads_32 = tile.x->quads_32.data();
    switch (tile.w->type) {
        case TensorType::q2_k: return multiply_tile<TypeQ2K>(tile, quads_256);
        case TensorType::q3_k: return multiply_tile<TypeQ3K>(tile, quads_256);
        case TensorType::q4_k: return multiply_tile<TypeQ4K>(tile, quads_256);
        case TensorType::q5_k: return multiply_tile<TypeQ5K>(tile, quads_256);
        case TensorType::q6_k: return multiply_tile<TypeQ6K>(tile, quads_256);
        case TensorType::iq4_xs: return multiply_tile<TypeIq4Xs>(tile, quads_256);
        case TensorType::q4_0: return multiply_tile<TypeQ40>(tile, quads_32);
        case TensorType::q4_1: return multiply_tile<TypeQ41>(tile, quads_32);
        case TensorType::q8_0: return multiply_tile<TypeQ80>(tile, quads_32);
        case TensorType::iq4_nl: return multiply_tile<TypeIq4Nl>(tile, quads_32);
        default: return multiply_plain(tile);
    }
}

#else

void multiply_rows(const Tile& tile) { multiply_plain(tile); }

#endif

}  // namespace headroom::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace headroom::cpu {

HWY_EXPORT(multiply_rows);

TileKernel row_kernel() { return HWY_DYNAMIC_DISPATCH(multiply_rows); }

}  // namespace headroom::cpu

#endif  // HWY_ONCE
