#include "core/compute/cpu/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/compute/cpu/panels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <type_traits>

#include "core/compute/cpu/product.h"

#include "core/compute/cpu/panel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headroom::cpu::HWY_NAMESPACE {

#if HEADROOM_KERNELS

// Tokens that share an unpacked panel: their accumulators stay in the second-level cache.
constexpr std::int64_t kTokenBlock = 128;

template <class Type, class Group>
HWY_INLINE void multiply_panel(const Panel& panel, std::int64_t block, int blocks, const Group* const* x, std::int64_t count, float* accumulators) {
    const auto run = [&]<int T>(std::integral_constant<int, T>, std::int64_t t) {
        float* a = accumulators + t * kTokenFloats;
        if constexpr (std::is_same_v<Group, Group256>) multiply_superblock<Type, T>(panel, x + t, a + block % 4 * kRows);
        else multiply_blocks<Type, T>(panel, blocks, x + t, a);
    };
    std::int64_t t = 0;
    constexpr int kMost = kRows == 16 ? 8 : 4;
    for (; t + kMost <= count; t += kMost) run(std::integral_constant<int, kMost>(), t);
    if constexpr (kMost == 8) {
        if (count - t >= 4) {
            run(std::integral_constant<int, 4>(), t);
            t += 4;
        }
    }
    if (count - t >= 2) {
        run(std::integral_constant<int, 2>(), t);
        t += 2;
    }
    if (count - t == 1) run(std::integral_constant<int, 1>(), t);
}

// kRows rows from `row` on, for up to kTokenBlock tokens from `first` on.
template <class Type, class Group>
void multiply_rows(const Tile& tile, std::int64_t row, const Group* groups, std::int64_t first, std::int64_t count) {
    constexpr bool kSuper = std::is_same_v<Group, Group256>;
    const Matrix& w = *tile.w;
    const std::int64_t rows = std::min<std::int64_t>(kRows, w.rows - row);
    alignas(kCacheLine) Panel panel;
    alignas(kCacheLine) float accumulators[kTokenBlock * kTokenFloats];
    const Group* x[kTokenBlock];
    const std::byte* pointers[kRows];
    for (std::int64_t r = 0; r < kRows; ++r) pointers[r] = w.data + (row + std::min(r, rows - 1)) * w.row_bytes;
    for (std::int64_t t = 0; t < count; ++t) x[t] = groups + (tile.token(first + t));
    std::fill(accumulators, accumulators + count * kTokenFloats, 0.0F);

    const std::int64_t blocks = w.cols / (kSuper ? kSuperblock : kBlock);
    const std::byte* ahead = pointers[kRows - 1] + w.row_bytes;  // the next tile
    for (std::int64_t b = 0; b < blocks;) {
        const int in_panel = kSuper ? 1 : static_cast<int>(std::min<std::int64_t>(8, blocks - b));
        if constexpr (kSuper) {
            Type::unpack({pointers, ahead}, panel);
            ahead += kRows * Type::kBytes;
        } else {
            for (int j = 0; j < in_panel; ++j) {
                Type::unpack({pointers, ahead}, panel, j);
                ahead += kRows * Type::kBytes;
                HEADROOM_UNROLL
                for (int r = 0; r < kRows; ++r) pointers[r] += Type::kBytes;
            }
        }
        multiply_panel<Type>(panel, b, in_panel, x, count, accumulators);
        if constexpr (kSuper) {
            HEADROOM_UNROLL
            for (int r = 0; r < kRows; ++r) pointers[r] += Type::kBytes;
        }
        for (std::int64_t t = 0; t < count; ++t) x[t] += tile.x->tokens;
        b += in_panel;
    }
    const DF d;
    for (std::int64_t t = 0; t < count; ++t) {
        const float* a = accumulators + t * kTokenFloats;
        const VF sum = hn::Add(hn::Add(hn::Load(d, a), hn::Load(d, a + 2 * kRows)), hn::Add(hn::Load(d, a + kRows), hn::Load(d, a + 3 * kRows)));
        float* y = tile.y + (first + t) * tile.y_stride + row;
        if (rows == kRows) {
            hn::StoreU(sum, d, y);
        } else {
            alignas(kCacheLine) float values[kRows];
            hn::Store(sum, d, values);
            std::copy(values, values + rows, y);
        }
    }
}

// Tokens outside, rows inside: the activations of a block of tokens stay in the second-level cache for all rows of the tile.
template <class Type, class Group>
void multiply_tile(const Tile& tile, const Group* groups) {
    const std::int64_t end = std::min(tile.w->rows, tile.row + tile.rows);
    for (std::int64_t t = 0; t < tile.count; t += kTokenBlock) {
        const std::int64_t count = std::min(kTokenBlock, tile.count - t);
        for (std::int64_t row = tile.row; row < end; row += kRows) multiply_rows<Type>(tile, row, groups, t, count);
    }
}

void multiply_panels(const Tile& tile) {
    using gguf::TensorType;
    const Group256* groups_256 = tile.x->groups_256.data();
    const Groups32* groups_32 = tile.x->groups_32.data();
    switch (tile.w->type) {
        case TensorType::q2_k: return multiply_tile<TypeQ2K>(tile, groups_256);
        case TensorType::q3_k: return multiply_tile<TypeQ3K>(tile, groups_256);
        case TensorType::q4_k: return multiply_tile<TypeQ4K>(tile, groups_256);
        case TensorType::q5_k: return multiply_tile<TypeQ5K>(tile, groups_256);
        case TensorType::q6_k: return multiply_tile<TypeQ6K>(tile, groups_256);
        case TensorType::iq4_xs: return multiply_tile<TypeIq4Xs>(tile, groups_256);
        case TensorType::q4_0: return multiply_tile<TypeQ40>(tile, groups_32);
        case TensorType::q4_1: return multiply_tile<TypeQ41>(tile, groups_32);
        case TensorType::q5_0: return multiply_tile<TypeQ50>(tile, groups_32);
        case TensorType::q5_1: return multiply_tile<TypeQ51>(tile, groups_32);
        case TensorType::q8_0: return multiply_tile<TypeQ80>(tile, groups_32);
        case TensorType::iq4_nl: return multiply_tile<TypeIq4Nl>(tile, groups_32);
        default: return multiply_plain(tile);
    }
}

#else

void multiply_panels(const Tile& tile) { multiply_plain(tile); }

#endif

}  // namespace headroom::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace headroom::cpu {

HWY_EXPORT(multiply_panels);

TileKernel panel_kernel() { return HWY_DYNAMIC_DISPATCH(multiply_panels); }

}  // namespace headroom::cpu

#endif  // HWY_ONCE
