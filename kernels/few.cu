// Products of two to eight tokens on matrix units: a weight is taken apart once for all of them, by the lane that loaded it.
//
// Four warps share a tile of 16 rows: warp w adds up the superblocks b with b mod 4 = w, which is the row's accumulator w, and the sums meet in
// shared memory. Of each 32 bytes of codes the four lanes of a row take 8 neighbouring ones each, and the same of every token's codes.

#include "kernels/arguments.h"
#include "kernels/code_tiles.h"
#include "kernels/copies.h"
#include "kernels/dot.h"
#include "kernels/targets.h"

#if defined(HR_CODE_TILES)

namespace headroom::device {
namespace {

using kernels::ProductArguments;

inline constexpr int kTokens = kernels::kFewTokens;  // a tile's columns
inline constexpr int kParts = 4;  // warps to a tile

// The tokens' codes in shared memory. Rows are `padded` further apart, so that the eight tokens' words lie in different banks.
struct Columns {
    const std::int8_t* codes;    // [kTokens, code_stride]
    const std::int16_t* sums;    // [kTokens, sum_stride]
    const float* scales;         // [blocks, kTokens]
    int code_stride, sum_stride;
};

// The integers of a lane's four outputs (kernels/code_tiles.h), and the factors of its two rows.
struct Integers {
    int products[4];
    int minima[4];
};

HR_DEVICE int byte_of(int word, int number) { return (word >> (8 * number)) & 255; }
HR_DEVICE int signed_byte_of(int word, int number) { return static_cast<std::int8_t>(word >> (8 * number)); }

// Types with 32 codes to a scale. Raw: what a lane loads of a superblock of both of its rows; codes(raw, j, …): the codes of sub-blocks 2 j and
// 2 j + 1 as multiply_codes takes them.
struct FewQ4K {
    using Layout = cpu::Q4K;
    static constexpr int kBytes = Layout::kBytes;
    static constexpr bool kMinima = true;
    struct Raw {
        Words4 head[2];
        Words2 low[2][4];
    };
    static HR_DEVICE Raw load(const std::uint8_t* const (&rows)[2], int offset) {
        Raw raw;
        HR_UNROLL
        for (int r = 0; r < 2; ++r) {
            const std::uint8_t* block = rows[r] + offset;
            raw.head[r] = load_16(block);
            HR_UNROLL
            for (int j = 0; j < 4; ++j) raw.low[r][j] = load_8(block + Layout::kLow + 32 * j + 8 * (lane() & 3));
        }
        return raw;
    }
    static HR_DEVICE std::uint32_t factors(const Raw& raw, int r) { return static_cast<std::uint32_t>(raw.head[r].w[0]); }
    static HR_DEVICE void codes(const Raw& raw, int j, int (&first)[4], int (&second)[4]) {
        HR_UNROLL
        for (int i = 0; i < 4; ++i) {
            const int low = raw.low[i % 2][j].w[i / 2];
            first[i] = low & 0x0f0f0f0f;
            second[i] = (low >> 4) & 0x0f0f0f0f;
        }
    }
};

struct FewQ5K {
    using Layout = cpu::Q5K;
    static constexpr int kBytes = Layout::kBytes;
    static constexpr bool kMinima = true;
    struct Raw {
        Words4 head[2];
        Words2 high[2];
        Words2 low[2][4];
    };
    static HR_DEVICE Raw load(const std::uint8_t* const (&rows)[2], int offset) {
        Raw raw;
        HR_UNROLL
        for (int r = 0; r < 2; ++r) {
            const std::uint8_t* block = rows[r] + offset;
            raw.head[r] = load_16(block);
            raw.high[r] = load_8(block + Layout::kHigh + 8 * (lane() & 3));
            HR_UNROLL
            for (int j = 0; j < 4; ++j) raw.low[r][j] = load_8(block + Layout::kLow + 32 * j + 8 * (lane() & 3));
        }
        return raw;
    }
    static HR_DEVICE std::uint32_t factors(const Raw& raw, int r) { return static_cast<std::uint32_t>(raw.head[r].w[0]); }
    static HR_DEVICE void codes(const Raw& raw, int j, int (&first)[4], int (&second)[4]) {
        HR_UNROLL
        for (int i = 0; i < 4; ++i) {
            const int low = raw.low[i % 2][j].w[i / 2], high = raw.high[i % 2].w[i / 2] >> (2 * j);
            first[i] = (low & 0x0f0f0f0f) | ((high & 0x01010101) << 4);
            second[i] = ((low >> 4) & 0x0f0f0f0f) | ((high & 0x02020202) << 3);
        }
    }
};

// The integers of Q4_K's and Q5_K's superblock b.
template <class Weights>
HR_DEVICE void integers_of(const typename Weights::Raw& raw, int b, const Columns& x, Integers& out) {
    const int token = lane() >> 2, part = lane() & 3;
    const std::int8_t* codes = x.codes + token * x.code_stride + b * 256 + 8 * part;
    int scales[2][2], minima[2];
    HR_UNROLL
    for (int r = 0; r < 2; ++r) {
        const Words4& head = raw.head[r];
        scales[r][0] = head.w[1] & 0x3f3f3f3f;
        scales[r][1] = (head.w[3] & 0x0f0f0f0f) | ((head.w[1] >> 2) & 0x30303030);
        // The minima of this lane's four runs of 16 elements: those of sub-blocks 2 part and 2 part + 1, twice each.
        const int four = part < 2 ? head.w[2] & 0x3f3f3f3f : ((head.w[3] >> 4) & 0x0f0f0f0f) | ((head.w[2] >> 2) & 0x30303030);
        const int two = four >> (16 * (part & 1));
        minima[r] = (two & 0xff) * 0x0101 + ((two >> 8) & 0xff) * 0x01010000;
    }
    HR_UNROLL
    for (int i = 0; i < 4; ++i) out.products[i] = 0;
    HR_UNROLL
    for (int j = 0; j < 4; ++j) {
        int left[2][4];
        Weights::codes(raw, j, left[0], left[1]);
        HR_UNROLL
        for (int c = 0; c < 2; ++c) {
            const Words2 right = load_8(codes + 64 * j + 32 * c);
            int dot[4];
            multiply_codes(left[c], right.w[0], right.w[1], dot);
            HR_UNROLL
            for (int i = 0; i < 4; ++i) out.products[i] += byte_of(scales[i / 2][j / 2], 2 * j % 4 + c) * dot[i];
        }
    }
    const Words2 sums = load_8(x.sums + token * x.sum_stride + b * 16 + 4 * part);
    multiply_sums(minima[0], minima[1], sums.w, out.minima);
}

// 16 codes to a scale: the lanes of a row's first half of 32 codes and those of the second are multiplied one after the other, with zeros in the
// others' place.
struct FewQ6K {
    using Layout = cpu::Q6K;
    static constexpr int kBytes = Layout::kBytes;
    static constexpr bool kMinima = false;
    struct Raw {
        int low[2][4][2], high[2][2][2];
        int scales[2][4];
        int d[2];
    };
    static HR_DEVICE Raw load(const std::uint8_t* const (&rows)[2], int offset) {
        Raw raw;
        HR_UNROLL
        for (int r = 0; r < 2; ++r) {
            const std::uint8_t* block = rows[r] + offset;
            HR_UNROLL
            for (int j = 0; j < 4; ++j) load_words(block + Layout::kLow + 32 * j + 8 * (lane() & 3), raw.low[r][j]);
            HR_UNROLL
            for (int j = 0; j < 2; ++j) load_words(block + Layout::kHigh + 32 * j + 8 * (lane() & 3), raw.high[r][j]);
            load_words(block + Layout::kScales, raw.scales[r]);
            raw.d[r] = load_2(block + Layout::kD);
        }
        return raw;
    }
    static HR_DEVICE std::uint32_t factors(const Raw& raw, int r) { return static_cast<std::uint32_t>(raw.d[r]); }
};

template <>
HR_DEVICE void integers_of<FewQ6K>(const FewQ6K::Raw& raw, int b, const Columns& x, Integers& out) {
    const int token = lane() >> 2, part = lane() & 3;
    const std::int8_t* codes = x.codes + token * x.code_stride + b * 256 + 8 * part;
    const int of_first = part < 2 ? -1 : 0;
    // The codes are 32 too large: scale times sum of the tokens' codes is what that makes.
    const auto own = [&](const int (&words)[4]) { return part < 2 ? (part == 0 ? words[0] : words[1]) : (part == 2 ? words[2] : words[3]); };
    const Words2 sums = load_8(x.sums + token * x.sum_stride + b * 16 + 4 * part);
    multiply_sums(own(raw.scales[0]), own(raw.scales[1]), sums.w, out.products);
    HR_UNROLL
    for (int i = 0; i < 4; ++i) out.products[i] = -32 * out.products[i];
    HR_UNROLL
    for (int j = 0; j < 8; ++j) {  // 32 codes: quarter j % 4 of half j / 4
        int left[4];
        HR_UNROLL
        for (int i = 0; i < 4; ++i) {
            const int low = raw.low[i % 2][j / 4 * 2 + j % 2][i / 2] >> (j % 4 / 2 * 4), high = raw.high[i % 2][j / 4][i / 2] >> (j % 4 * 2);
            left[i] = (low & 0x0f0f0f0f) | ((high & 0x03030303) << 4);
        }
        const Words2 right = load_8(codes + 32 * j);
        HR_UNROLL
        for (int c = 0; c < 2; ++c) {
            const int mask = c == 0 ? of_first : ~of_first;
            int dot[4];
            multiply_codes(left, right.w[0] & mask, right.w[1] & mask, dot);
            HR_UNROLL
            for (int i = 0; i < 4; ++i) out.products[i] += signed_byte_of(raw.scales[i / 2][j / 2], 2 * j % 4 + c) * dot[i];
        }
    }
}

template <class Weights>
HR_DEVICE void add_superblock(const typename Weights::Raw& raw, int b, const Columns& x, float (&accumulators)[4]) {
    Integers integers;
    integers_of<Weights>(raw, b, x, integers);
    HR_UNROLL
    for (int i = 0; i < 4; ++i) {
        const float scale = x.scales[b * kTokens + 2 * (lane() & 3) + i % 2];
        const std::uint32_t halves = Weights::factors(raw, i / 2);
        const auto product = static_cast<float>(integers.products[i]);
        float value;
        if constexpr (Weights::kMinima) {
            value = scale * fma(low_half(halves), product, -(high_half(halves) * static_cast<float>(integers.minima[i])));
        } else {
            value = scale * (low_half(halves) * product);
        }
        accumulators[i] = accumulators[i] + value;
    }
}

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

    const Columns x = {codes, sums, scales, code_stride, sum_stride};
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
