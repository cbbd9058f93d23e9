#include "core/compute/cpu/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/compute/cpu/floats.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <type_traits>

#include "core/compute/cpu/product.h"
#include "core/compute/cpu/reference.h"

#include "core/compute/cpu/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headroom::cpu::HWY_NAMESPACE {

#if HEADROOM_KERNELS

struct FloatF32 {
    static constexpr int kBytes = 4;
    static HWY_INLINE VF load_lanes(const std::byte* from) { return load(reinterpret_cast<const float*>(from)); }
    static float element(const std::byte* from) { return load_unaligned<float>(from); }
};
struct FloatF16 {
    static constexpr int kBytes = 2;
    static HWY_INLINE VF load_lanes(const std::byte* from) { return load_halves(reinterpret_cast<const std::uint16_t*>(from)); }
    static float element(const std::byte* from) { return half_to_float(load_unaligned<std::uint16_t>(from)); }
};
struct FloatBf16 {
    static constexpr int kBytes = 2;
    static HWY_INLINE VF load_lanes(const std::byte* from) { return load_bfloats(reinterpret_cast<const std::uint16_t*>(from)); }
    static float element(const std::byte* from) { return bfloat_to_float(load_unaligned<std::uint16_t>(from)); }
};

// R rows with T tokens.
template <class Type, int R, int T>
HWY_INLINE void float_dots(const std::byte* w, std::int64_t row_bytes, const float* const* x, std::int64_t cols, float (&out)[T][R]) {
    VF sums[R][T][kSum32];
    HEADROOM_UNROLL
    for (int r = 0; r < R; ++r) {
        HEADROOM_UNROLL
        for (int t = 0; t < T; ++t) {
            HEADROOM_UNROLL
            for (int j = 0; j < kSum32; ++j) sums[r][t][j] = hn::Zero(DF());
        }
    }
    const std::int64_t whole = cols / 32 * 32;
    for (std::int64_t k = 0; k < whole; k += 32) {
        HEADROOM_UNROLL
        for (int j = 0; j < kSum32; ++j) {
            VF values[T];
            HEADROOM_UNROLL
            for (int t = 0; t < T; ++t) values[t] = load(x[t] + k + j * kLanes);
            HEADROOM_UNROLL
            for (int r = 0; r < R; ++r) {
                const VF weights = Type::load_lanes(w + r * row_bytes + (k + j * kLanes) * Type::kBytes);
                HEADROOM_UNROLL
                for (int t = 0; t < T; ++t) sums[r][t][j] = hn::MulAdd(weights, values[t], sums[r][t][j]);
            }
        }
    }
    HEADROOM_UNROLL
    for (int r = 0; r < R; ++r) {
        HEADROOM_UNROLL
        for (int t = 0; t < T; ++t) {
            if (whole == cols) {
                out[t][r] = fold(sums[r][t]);
                continue;
            }
            float accumulators[32];
            for (int j = 0; j < kSum32; ++j) store(sums[r][t][j], accumulators + j * kLanes);
            for (std::int64_t k = whole; k < cols; ++k) {
                accumulators[k - whole] = fma(Type::element(w + r * row_bytes + k * Type::kBytes), x[t][k], accumulators[k - whole]);
            }
            out[t][r] = reference::fold(accumulators);
        }
    }
}

template <class Type, int R>
HWY_INLINE void multiply_float_rows(const Tile& tile, std::int64_t row) {
    const auto token = [&](std::int64_t i) { return tile.x->x + tile.token(i) * tile.x->stride; };
    const std::byte* w = tile.w->data + row * tile.w->row_bytes;
    const auto run = [&]<int T>(std::integral_constant<int, T>, std::int64_t first) {
        const float* x[T];
        for (int t = 0; t < T; ++t) x[t] = token(first + t);
        float out[T][R];
        float_dots<Type, R, T>(w, tile.w->row_bytes, x, tile.w->cols, out);
        for (int t = 0; t < T; ++t) std::copy(out[t], out[t] + R, tile.y + (first + t) * tile.y_stride + row);
    };
    constexpr int kMost = kLanes == 16 ? 3 : 1;
    std::int64_t i = 0;
    for (; i + kMost <= tile.count; i += kMost) run(std::integral_constant<int, kMost>(), i);
    for (; i < tile.count; ++i) run(std::integral_constant<int, 1>(), i);
}

template <class Type>
void multiply_float_tile(const Tile& tile) {
    const std::int64_t end = std::min(tile.w->rows, tile.row + tile.rows);
    constexpr int kRowsAtOnce = kLanes == 16 ? 4 : 2;
    std::int64_t row = tile.row;
    for (; row + kRowsAtOnce <= end; row += kRowsAtOnce) multiply_float_rows<Type, kRowsAtOnce>(tile, row);
    for (; row < end; ++row) multiply_float_rows<Type, 1>(tile, row);
}

void multiply_floats(const Tile& tile) {
    using gguf::TensorType;
    switch (tile.w->type) {
        case TensorType::f16: return multiply_float_tile<FloatF16>(tile);
        case TensorType::bf16: return multiply_float_tile<FloatBf16>(tile);
        default: return multiply_float_tile<FloatF32>(tile);
    }
}

#else

void multiply_floats(const Tile& tile) { multiply_plain(tile); }

#endif

}  // namespace headroom::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace headroom::cpu {

HWY_EXPORT(multiply_floats);

TileKernel float_kernel() { return HWY_DYNAMIC_DISPATCH(multiply_floats); }

}  // namespace headroom::cpu

#endif  // HWY_ONCE
