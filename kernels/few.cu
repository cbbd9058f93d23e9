// Products of two to eight tokens on matrix units (kernels/few.h).
//
// Four warps share a tile of 16 rows: warp w adds up the superblocks b with b mod 4 = w, which is the row's accumulator w, and the sums meet in
// shared memory.

#include "kernels/arguments.h"
#include "kernels/copies.h"
#include "kernels/few.h"
#include "kernels/targets.h"

#if defined(HR_CODE_TILES)

namespace headroom::device {
namespace {

using kernels::ProductArguments;

inline constexpr int kTokens = kernels::kFewTokens;  // a tile's columns
inline constexpr int kParts = 4;  // warps to a tile

// How the tiles are dealt to the groups of four warps: numbered through all targets, blocks first. Of a gate and an up matrix a tile has eight
// rows each.
struct Tiles {
    bool gated;
    int targets;
    int step;

    HR_DEVICE explicit Tiles(const ProductArguments& a)
        : gated(a.swiglu != 0), targets(a.swiglu != 0 ? 1 : a.target_count), step(grid_x() * (threads() / kWarp / kParts)) {}
    HR_DEVICE int of(const ProductArguments& a, int target) const { return gated ? (a.targets[0].w.rows + 7) / 8 : (a.targets[target].w.rows + 15) / 16; }
    HR_DEVICE void rows(const ProductArguments& a, int target, int tile, const std::uint8_t* (&at)[2]) const {
        const kernels::Matrix& w = a.targets[target].w;
        const int row = (gated ? 8 : 16) * tile + (lane() >> 2);
        const auto address = [&](const kernels::Matrix& of, int number) {
            return of.data + static_cast<std::int64_t>(number < of.rows ? number : of.rows - 1) * of.row_bytes;
        };
        at[0] = address(w, row);
        at[1] = gated ? address(a.targets[1].w, row) : address(w, row + 8);
    }
};

HR_DEVICE float with_bias(const Target& target, int row, float value) { return target.bias != nullptr ? value + target.bias[row] : value; }

// The tiles of one target from `tile` on. Returns the number behind the last of them. sums: room for the group's four warps, twice;
// turn: which of the two is next.
template <class Weights>
HR_DEVICE int run_tiles(const ProductArguments& a, const Tiles& tiles, int target, int tile, const Columns& x, int first_token, float* sums, int& turn) {
    const int part = warp() % kParts, group = warp() / kParts;
    const Target& to = a.targets[target];
    const int blocks = to.w.cols / 256, count = tiles.of(a, target);
    const bool some = part < blocks;
    const std::uint8_t* at[2];
    tiles.rows(a, target, tile, at);
    typename Weights::Raw ahead = Weights::load(at, (some ? part : 0) * Weights::kBytes);
    for (; tile < count; tile += tiles.step, turn ^= 1) {
        const int next = tile + tiles.step;
        const std::uint8_t* next_at[2];
        tiles.rows(a, target, next < count ? next : tile, next_at);
        float accumulators[4] = {};
        for (int b = part; b < blocks; b += kParts) {
            const typename Weights::Raw raw = ahead;
            const bool more = b + kParts < blocks;
            const std::uint8_t* const from[2] = {more ? at[0] : next_at[0], more ? at[1] : next_at[1]};
            ahead = Weights::load(from, (more ? b + kParts : part) * Weights::kBytes);
            add_superblock<Weights>(raw, b, x, accumulators);
        }
        at[0] = next_at[0];
        at[1] = next_at[1];
        float* room = sums + turn * (kParts * 4 * kWarp);  // [part][output][lane]
        HR_UNROLL
        for (int i = 0; i < 4; ++i) room[(part * 4 + i) * kWarp + lane()] = accumulators[i];
        sync_part(group, kParts * kWarp);
        // Warp `part` stores the outputs of column `part` of the lane's two.
        const int token = first_token + 2 * (lane() & 3) + part;
        if (part < 2 && token < a.tokens) {
            float value[2];
            HR_UNROLL
            for (int r = 0; r < 2; ++r) {
                const float* sum = room + (2 * r + part) * kWarp + lane();
                value[r] = (sum[0] + sum[2 * 4 * kWarp]) + (sum[4 * kWarp] + sum[3 * 4 * kWarp]);
            }
            const int row = (tiles.gated ? 8 : 16) * tile + (lane() >> 2);
            if (tiles.gated) {
                float& y = to.y[static_cast<std::int64_t>(token) * to.y_stride + row];
                if (row < to.w.rows) y = silu(with_bias(to, row, value[0])) * with_bias(a.targets[1], row, value[1]);
            } else {
                if (row < to.w.rows) store(to, token, row, value[0]);
                if (row + 8 < to.w.rows) store(to, token, row + 8, value[1]);
            }
        }
    }
    return tile;
}

}  // namespace

// A row of blocks for each eight tokens. Shared memory: see products.cpp.
HR_EARLY_KERNEL(product_few, ProductArguments, kernels::kFewThreads) {
    const Tiles tiles(a);
    const int cols = a.targets[0].w.cols, blocks = cols / 256;
    const int first_token = block_y() * kTokens, group = warp() / kParts;
    const int number = group * grid_x() + block_x();
    // The first rows are on the way while the tokens' codes are still being made.
    for (int target = 0, before = 0; target < tiles.targets; before += tiles.of(a, target), ++target) {
        const int tile = number - before, part = warp() % kParts;
        if (tile < 0 || tile >= tiles.of(a, target)) continue;
        const kernels::Matrix& w = a.targets[tiles.gated ? part / 2 : target].w;
        const int row = tiles.gated ? 8 * tile + part % 2 * 4 : 16 * tile + part * 4;  // four of them
        const int rows = row + 4 < w.rows ? 4 : w.rows - row;
        if (rows > 0) prefetch(w.data + static_cast<std::int64_t>(row) * w.row_bytes, rows * static_cast<int>(w.row_bytes));
    }
    wait_for_previous();

    const int code_stride = cols + 32, sum_stride = (cols / 8 + 127) / 128 * 64 + 16;
    unsigned char* shared = dynamic_shared();
    auto* codes = reinterpret_cast<std::int8_t*>(shared);
    auto* sums = reinterpret_cast<std::int16_t*>(codes + kTokens * code_stride);
    auto* scales = reinterpret_cast<float*>(sums + kTokens * sum_stride);
    float* room = scales + kTokens * blocks + group * (2 * kParts * 4 * kWarp);
    for (int t = warp(); t < kTokens; t += threads() / kWarp) {
        const bool there = first_token + t < a.tokens;
        const std::int64_t row = there ? first_token + t : first_token;
        for (int i = lane() * 16; i < cols; i += kWarp * 16) start_copy(codes + t * code_stride + i, a.groups_256.codes + row * cols + i, there);
        for (int i = lane() * 8; i < cols / 16; i += kWarp * 8) start_copy(sums + t * sum_stride + i, a.groups_256.sums + row * (cols / 16) + i, there);
        for (int b = lane(); b < blocks; b += kWarp) scales[b * kTokens + t] = there ? a.groups_256.scales[row * blocks + b] : 0.0F;
    }
    close_copies();
    wait_for_copies<0>();
    sync();

    // Rows are padded further apart, so that the eight tokens' words lie in different banks.
    const int column = lane() >> 2;
    const float* own_scales = scales + 2 * (lane() & 3);
    const Columns x = {codes + column * code_stride, sums + column * sum_stride, {own_scales, own_scales + 1}, kTokens};
    int tile = number, turn = 0;
    for (int target = 0; target < tiles.targets; ++target) {
        const int count = tiles.of(a, target);
        if (tile < count) {
            switch (static_cast<TensorType>(a.targets[target].w.type)) {
                case TensorType::q4_k: tile = run_tiles<FewQ4K>(a, tiles, target, tile, x, first_token, room, turn); break;
                case TensorType::q5_k: tile = run_tiles<FewQ5K>(a, tiles, target, tile, x, first_token, room, turn); break;
                default: tile = run_tiles<FewQ6K>(a, tiles, target, tile, x, first_token, room, turn); break;
            }
        }
        tile -= count;
    }
}

}  // namespace headroom::device

#endif
