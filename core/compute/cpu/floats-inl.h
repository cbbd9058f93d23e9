// Products with float weights (F32, F16, BF16), once for each Highway target with kernels.

#if defined(HEADROOM_FLOATS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADROOM_FLOATS_INL
#undef HEADROOM_FLOATS_INL
#else
#define HEADROOM_FLOATS_INL
#endif

#include "core/compute/cpu/vector-inl.h"

#if HEADROOM_KERNELS

HWY_BEFORE_NAMESPACE();
namespace headroom::cpu::HWY_NAMESPACE {

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
    const auto token = [&](std::int64_t i) { return tile.x->x + (tile.tokens != nullptr ? tile.tokens[i] : i) * tile.x->stride; };
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
    const std::int64_t end = std::min(tile.w->rows, tile.row + kTileRows);
    constexpr int kRowsAtOnce = kLanes == 16 ? 4 : 2;
    std::int64_t row = tile.row;
    for (; row + kRowsAtOnce <= end; row += kRowsAtOnce) multiply_float_rows<Type, kRowsAtOnce>(tile, row);
    for (; row < end; ++row) multiply_float_rows<Type, 1>(tile, row);
}

}  // namespace headroom::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEADROOM_KERNELS
#endif
