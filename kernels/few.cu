// Products of two to eight tokens on matrix units (kernels/few.h).
//
// Four warps share a tile of 16 rows: warp w adds up the superblocks b with b mod 4 = w, which is the row's accumulator w, and the sums meet in
// shared memory.

#include "kernels/arguments.h"
#include "kernels/few.h"
#include "kernels/row_copies.h"
#include "kernels/targets.h"

#if defined(HR_CODE_TILES)

namespace headroom::device {
namespace {

using kernels::ProductArguments;

inline constexpr int kTokens = kernels::kFewTokens;  // a tile's columns
inline constexpr int kParts = 4;  // warps to a tile
inline constexpr int kRowsOfTile = 16;

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

// Fetches memory that will be read soon, some KiB from a multiple of 4. Where the kernel before may still be at work there is time to bring it into this
// multiprocessor's cache: a word of each 32 bytes.
HR_DEVICE void fetch(const std::uint8_t* from, int bytes) {
#if defined(HR_CUDA) && __CUDA_ARCH__ >= 900
    int all = 0;
    for (int at = lane() * 32; at < bytes; at += kWarp * 32) all |= load_4(from + at);
    // Something must come of what was read.
    asm volatile("{ .reg .pred none; setp.eq.s32 none, %0, 0; @none prefetch.global.L2 [%1]; }" ::"r"(all), "l"(from));
#else
    prefetch(from, bytes);
#endif
}

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

// The codes of up to eight tokens in shared memory. Rows are padded further apart, so that the tokens' words lie in different banks.
struct TokenCodes {
    std::int8_t* codes;
    std::int16_t* sums;
    float* scales;  // [blocks, kTokens]
    int cols, code_stride, sum_stride;

    HR_DEVICE TokenCodes(unsigned char* from, int columns)
        : codes(reinterpret_cast<std::int8_t*>(from)), cols(columns), code_stride(columns + 32), sum_stride((columns / 8 + 127) / 128 * 64 + 16) {
        sums = reinterpret_cast<std::int16_t*>(codes + kTokens * code_stride);
        scales = reinterpret_cast<float*>(sums + kTokens * sum_stride);
    }
    // Behind everything.
    HR_DEVICE float* end() const { return scales + kTokens * (cols / 256); }
    // By the whole block. Ends with a barrier.
    HR_DEVICE void load(const ProductArguments& a, int first_token) const {
        const int blocks = cols / 256;
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
    }
    HR_DEVICE Columns columns() const {
        const int column = lane() >> 2;
        const float* own_scales = scales + 2 * (lane() & 3);
        return {codes + column * code_stride, sums + column * sum_stride, {own_scales, own_scales + 1}, kTokens};
    }
};

// A tile by as many warps as its rows have superblocks, one of each. values: room for what each of them leaves. own: which one the warp has; the first four put the four
// outputs of each lane together.
template <class Weights>
HR_DEVICE void wide_tile(const Target& to, int tile, const Columns& x, int first_token, int tokens, float* values, int group, int own) {
    const int blocks = to.w.cols / 256, token = first_token + 2 * (lane() & 3) + own % 2, row = kRowsOfTile * tile + (lane() >> 2) + own / 2 % 2 * 8;
    const bool stores = own < 4 && token < tokens && row < to.w.rows;
    float* y = to.y + static_cast<std::int64_t>(token) * to.y_stride + row;
    const float before = stores && to.add != 0 ? *y : 0.0F;
    const auto address = [&](int number) { return to.w.data + static_cast<std::int64_t>(number < to.w.rows ? number : to.w.rows - 1) * to.w.row_bytes; };
    const std::uint8_t* const at[2] = {address(kRowsOfTile * tile + (lane() >> 2)), address(kRowsOfTile * tile + (lane() >> 2) + 8)};
    float value[4] = {};
    add_superblock<Weights>(Weights::load(at, own * Weights::kBytes), own, x, value);
    HR_UNROLL
    for (int i = 0; i < 4; ++i) values[(own * 4 + i) * kWarp + lane()] = value[i];  // [superblock][output][lane]
    sync_part(group, blocks * kWarp);
    if (!stores) return;
    float sums[4] = {};
#pragma unroll 1
    for (int b = 0; b < blocks; b += 4) {
        HR_UNROLL
        for (int k = 0; k < 4; ++k) {
            if (b + k < blocks) sums[k] = sums[k] + values[((b + k) * 4 + own) * kWarp + lane()];
        }
    }
    const float product = with_bias(to, row, (sums[0] + sums[2]) + (sums[1] + sums[3]));
    *y = to.add != 0 ? before + product : product;
}

}  // namespace

// A row of blocks for each eight tokens. Shared memory: see products.cpp.
HR_EARLY_KERNEL(product_few, ProductArguments, kernels::kFewThreads) {
    const Tiles tiles(a);
    const int first_token = block_y() * kTokens, group = warp() / kParts;
    const int number = group * grid_x() + block_x();
    // The first rows come to this multiprocessor's cache while the tokens' codes are still being made.
    for (int target = 0, before = 0; target < tiles.targets; before += tiles.of(a, target), ++target) {
        const int tile = number - before, part = warp() % kParts;
        if (tile < 0 || tile >= tiles.of(a, target)) continue;
        const kernels::Matrix& w = a.targets[tiles.gated ? part / 2 : target].w;
        const int row = tiles.gated ? 8 * tile + part % 2 * 4 : 16 * tile + part * 4;  // four of them
        const int rows = row + 4 < w.rows ? 4 : w.rows - row;
        if (rows > 0) fetch(w.data + static_cast<std::int64_t>(row) * w.row_bytes, rows * static_cast<int>(w.row_bytes));
    }
    wait_for_previous();

    const TokenCodes tokens(dynamic_shared(), a.targets[0].w.cols);
    float* room = tokens.end() + group * (2 * kParts * 4 * kWarp);
    tokens.load(a, first_token);
    const Columns x = tokens.columns();
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

// The same where there are few rows, of few superblocks: a group of warps has a tile at most, and a warp one superblock of its rows.
HR_EARLY_KERNEL(product_few_wide, ProductArguments, kernels::kFewThreads) {
    const int blocks = a.targets[0].w.cols / 256, groups = threads() / kWarp / blocks, group = warp() / blocks, own = warp() % blocks, first_token = block_y() * kTokens;
    int tile = group < groups ? group * grid_x() + block_x() : -1, target = 0;
    HR_UNROLL
    for (int i = 0; i < 3; ++i) {
        const int count = i < a.target_count ? (a.targets[i].w.rows + kRowsOfTile - 1) / kRowsOfTile : 0;
        if (target != i || tile < count) continue;
        tile -= count;
        ++target;
    }
    if (target >= a.target_count) tile = -1;
    const Target& to = a.targets[tile < 0 ? 0 : target];
    // The tile comes to this multiprocessor's cache while the tokens' codes are still being made.
    if (tile >= 0 && kRowsOfTile * (tile + 1) <= to.w.rows) {
        const int bytes = kRowsOfTile * static_cast<int>(to.w.row_bytes) / blocks;
        fetch(to.w.data + static_cast<std::int64_t>(kRowsOfTile * tile) * to.w.row_bytes + own * bytes, bytes);
    }
    wait_for_previous();
    const TokenCodes tokens(dynamic_shared(), to.w.cols);
    tokens.load(a, first_token);
    if (tile < 0) return;
    const Columns x = tokens.columns();
    float* values = tokens.end() + group * (blocks * 4 * kWarp);
    switch (static_cast<TensorType>(to.w.type)) {
        case TensorType::q4_k: return wide_tile<FewQ4K>(to, tile, x, first_token, a.tokens, values, group, own);
        case TensorType::q5_k: return wide_tile<FewQ5K>(to, tile, x, first_token, a.tokens, values, group, own);
        default: return wide_tile<FewQ6K>(to, tile, x, first_token, a.tokens, values, group, own);
    }
}

// One matrix of Q6_K, whose blocks of 210 bytes are best read from shared memory: rows come there in pieces of eight superblocks, several pieces ahead.
HR_EARLY_KERNEL(product_few_q6_k, ProductArguments, kernels::kFewThreads) {
    constexpr int kPiece = 8;
    constexpr int kPieceBytes = kPiece * FewQ6K::kBytes, kStride = kernels::kFewPieceStride, kStageBytes = kRowsOfTile * kStride;
    static_assert(kPieceBytes % 16 == 0 && kStride >= kPieceBytes && kStride % 128 == 32);
    __shared__ Arrival arrivals[kernels::kFewThreads / kWarp / kParts][kMostCopies];
    const Target& to = a.targets[0];
    const int group = warp() / kParts, groups = threads() / kWarp / kParts, part = warp() % kParts;
    const int pieces = to.w.cols / 256 / kPiece, first_token = block_y() * kTokens;
    const int number = group * grid_x() + block_x(), step = groups * grid_x(), count = (to.w.rows + kRowsOfTile - 1) / kRowsOfTile;
    unsigned char* own_stages = dynamic_shared() + group * a.stages * kStageBytes;
    const TokenCodes tokens(dynamic_shared() + groups * a.stages * kStageBytes, to.w.cols);
    float* room = tokens.end() + group * (2 * kParts * 4 * kWarp);
    if (part == kParts - 1 && lane() < a.stages) prepare_arrival(&arrivals[group][lane()]);
    sync();
    // item: of the group's pieces, one after the other.
    const auto start = [&](int item, int stage) {
        const int tile = number + item / pieces * step;
        if (tile >= count) {
            start_no_rows();
            return;
        }
        const int row = kRowsOfTile * tile + (lane() & 15);
        const std::uint8_t* from = to.w.data + static_cast<std::int64_t>(row < to.w.rows ? row : to.w.rows - 1) * to.w.row_bytes + item % pieces * kPieceBytes;
        start_rows(own_stages + stage * kStageBytes + (lane() & 15) * kStride, from, kRowsOfTile, kPieceBytes, &arrivals[group][stage]);
    };
    if (part == kParts - 1) {
        for (int stage = 0; stage < a.stages; ++stage) start(stage, stage);
    }
    wait_for_previous();
    tokens.load(a, first_token);
    const Columns x = tokens.columns();

    int item = 0, stage = 0, turn = 0, half = 0;
    for (int tile = number; tile < count; tile += step, half ^= 1) {
        float accumulators[4] = {};
        float* sums = room + half * (kParts * 4 * kWarp);  // [part][output][lane]
        for (int piece = 0; piece < pieces; ++piece, ++item) {
            await_rows(&arrivals[group][stage], turn, a.stages - 1, kParts * kWarp);
            const std::uint8_t* row = own_stages + stage * kStageBytes + (lane() >> 2) * kStride;
            const std::uint8_t* const at[2] = {row, row + 8 * kStride};
            for (int b = part; b < kPiece; b += kParts) {
                add_superblock<FewQ6K>(FewQ6K::load(at, b * FewQ6K::kBytes), piece * kPiece + b, x, accumulators);
            }
            if (piece == pieces - 1) {
                HR_UNROLL
                for (int i = 0; i < 4; ++i) sums[(part * 4 + i) * kWarp + lane()] = accumulators[i];
            }
            sync_part(group, kParts * kWarp);
            if (part == kParts - 1) start(item + a.stages, stage);
            if (++stage == a.stages) {
                stage = 0;
                turn ^= 1;
            }
        }
        const int token = first_token + 2 * (lane() & 3) + part;
        if (part < 2 && token < a.tokens) {
            HR_UNROLL
            for (int r = 0; r < 2; ++r) {
                const float* sum = sums + (2 * r + part) * kWarp + lane();
                const int row = kRowsOfTile * tile + (lane() >> 2) + 8 * r;
                if (row < to.w.rows) store(to, token, row, (sum[0] + sum[2 * 4 * kWarp]) + (sum[4 * kWarp] + sum[3 * 4 * kWarp]));
            }
        }
    }
}

}  // namespace headroom::device

#endif
