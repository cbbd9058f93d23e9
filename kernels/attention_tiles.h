#pragma once

// Attention of many tokens on matrix units.

#include "kernels/code_pool.h"
#include "kernels/half_tiles.h"

#if defined(HR_HALF_TILES)

namespace headroom::device {

// Where a block's tiles of K and V come from: start(key, page, stage) begins to copy the one of the keys from `key` on, arrived(…) makes it ready behind
// the copies' end and a barrier, and load_values gets a part of V for multiply_add: keys 16 step … of elements 16 pair …
//
// Halves: tiles as they lie in the pool, two of them in shared memory, [K, V][keys][kStride].
template <int W>
struct HalvesTiles {
    static constexpr int kTile = kernels::kPrefillKeys<W>, kStride = kernels::kPrefillRow<W>, kChunks = W / 8;  // of 16 bytes in a row

    const KvPool& pool;
    int kv_head, highest;  // the last position that is seen

    HR_DEVICE void start(int key, int page, int stage) const {
        const std::uint16_t* k = device::keys(pool, page, kv_head) + key % kPage * W;
        const std::uint16_t* v = device::values(pool, page, kv_head) + key % kPage * W;
        std::uint16_t* to = tile(stage);
        HR_UNROLL
        for (int i = 0; i < kTile * kChunks / kBlock; ++i) {
            const int chunk = thread() + i * kBlock;
            const int r = chunk / kChunks, c = chunk % kChunks;
            const bool there = key + r <= highest;  // what lies behind need not be a number
            start_copy(to + r * kStride + c * 8, k + r * W + c * 8, there);
            start_copy(to + (kTile + r) * kStride + c * 8, v + r * W + c * 8, there);
        }
        close_copies();
    }
    HR_DEVICE void arrived(int) const {}
    HR_DEVICE std::uint16_t* tile(int stage) const { return reinterpret_cast<std::uint16_t*>(dynamic_shared()) + stage * 2 * kTile * kStride; }
    HR_DEVICE const std::uint16_t* keys(int stage) const { return tile(stage); }
    HR_DEVICE const std::uint16_t* values(int stage) const { return tile(stage) + kTile * kStride + lane() % 16 * kStride + lane() / 16 * 8; }
    static HR_DEVICE void load_values(const std::uint16_t* from, int step, int pair, std::uint32_t (&to)[4]) { load_tiles_turned(from + step * 16 * kStride + pair * 16, to); }
};

// Codes: one tile is copied while the one before, made halves, is used: K [keys][kStride], V [W][kKeysStride] as it lies in the pool.
template <int W>
struct CodesTiles {
    static constexpr int kTile = kernels::kPrefillKeys<W>, kStride = kernels::kPrefillRow<W>, kKeysStride = kTile + 8, kBlocks = W / kCodeBlock;
    static constexpr int kRun = kTile < 32 ? kTile : 32;  // neighbouring positions of an element of V

    const KvPool& pool;
    int kv_head, highest;

    HR_DEVICE std::uint16_t* k() const { return reinterpret_cast<std::uint16_t*>(dynamic_shared()); }
    HR_DEVICE std::uint16_t* v() const { return k() + kTile * kStride; }
    HR_DEVICE std::uint8_t* k_codes() const { return reinterpret_cast<std::uint8_t*>(v() + W * kKeysStride); }
    HR_DEVICE std::uint8_t* v_codes() const { return k_codes() + kTile * W; }  // [strips][W][kRun]
    HR_DEVICE std::uint16_t* k_scales() const { return reinterpret_cast<std::uint16_t*>(v_codes() + kTile * W); }
    HR_DEVICE std::uint16_t* v_scales() const { return k_scales() + kTile * kBlocks; }  // [strips][kBlocks][kRun]

    HR_DEVICE void start(int key, int page, int) const {
        const int first = key % kPage, strip = first / 32;
        const PageCodes k_from = key_codes<W>(pool, page, kv_head), v_from = value_codes<W>(pool, page, kv_head);
        HR_UNROLL
        for (int n = thread(); n < kTile * W / 16; n += kBlock) {
            start_copy(k_codes() + n * 16, k_from.codes + first * W + n * 16, true);
            start_copy(v_codes() + n * 16, v_from.codes + strip * W * 32 + run_at(n * 16, first), true);
        }
        constexpr int kOfScales = kTile * kBlocks / 8;
        for (int n = thread(); n < 2 * kOfScales; n += kBlock) {
            const int m = n - kOfScales;
            if (m < 0) start_copy(k_scales() + n * 8, k_from.scales + first * kBlocks + n * 8, true);
            else start_copy(v_scales() + m * 8, v_from.scales + strip * kBlocks * 32 + run_at(m * 8, first), true);
        }
        close_copies();
    }
    // Where in the pool's runs of 32 lies what is number n of the tile's.
    static HR_DEVICE int run_at(int n, int first) { return kRun == 32 ? n : n / kRun * 32 + n % kRun + first % 32; }

    HR_DEVICE void arrived(int key) const {
        HR_UNROLL
        for (int n = thread(); n < kTile * W / 16; n += kBlock) {
            const int r = n / (W / 16), c = n % (W / 16);
            const std::uint32_t two = k_scales()[r * kBlocks + c / 2] * 0x10001U;
            const std::uint32_t scales[8] = {two, two, two, two, two, two, two, two};
            convert(k_codes() + n * 16, scales, k() + r * kStride + c * 16);
        }
        HR_UNROLL
        for (int n = thread(); n < kTile * W / 16; n += kBlock) {
            const int at = n * 16, strip = at / (W * kRun), element = at / kRun % W, position = strip * 32 + at % kRun;
            std::uint32_t scales[8];
            const Words* from = reinterpret_cast<const Words*>(v_scales() + (strip * kBlocks + element / kCodeBlock) * kRun + at % kRun);
            HR_UNROLL
            for (int i = 0; i < 8; ++i) {
                const int seen = highest - (key + position + 2 * i);  // what lies behind need not be a number
                scales[i] = from[i / 4].x[i % 4] & (seen > 0 ? 0xffffffffU : seen == 0 ? 0xffffU : 0U);
            }
            convert(v_codes() + at, scales, v() + element * kKeysStride + position);
        }
        sync();
    }
    HR_DEVICE const std::uint16_t* keys(int) const { return k(); }
    HR_DEVICE const std::uint16_t* values(int) const { return v() + (lane() / 16 * 8 + lane() % 8) * kKeysStride + lane() / 8 % 2 * 8; }
    static HR_DEVICE void load_values(const std::uint16_t* from, int step, int pair, std::uint32_t (&to)[4]) { load_tiles(from + pair * 16 * kKeysStride + step * 16, to); }

private:
    struct alignas(16) Words {
        std::uint32_t x[4];
    };
    // 16 codes, and their scales two by two.
    static HR_DEVICE void convert(const std::uint8_t* codes, const std::uint32_t (&scales)[8], std::uint16_t* to) {
        const Words from = *reinterpret_cast<const Words*>(codes);
        HR_UNROLL
        for (int half = 0; half < 2; ++half) {
            Words out;
            HR_UNROLL
            for (int i = 0; i < 4; ++i) out.x[i] = codes_to_halves(from.x[half * 2 + i / 2], i % 2, scales[half * 4 + i]);
            reinterpret_cast<Words*>(to)[half] = out;
        }
    }
};

// For heads of one width: a block has 128 rows (tokens and the query heads of its KV head), a warp 16 of them; all
// walk over the keys in tiles, of which one is used in shared memory while one arrives. The softmax is kept up to date from
// tile to tile. Queries and weights are rounded to halves, sums are floats.
template <int W, class Tiles>
HR_DEVICE void prefill(const AttentionArguments& a) {
    constexpr int kTile = Tiles::kTile;                       // keys
    constexpr int kStride = Tiles::kStride;                   // halves from row to row in shared memory: no two of 8 rows in the same banks
    constexpr int kFragments = W > 128 ? 2 : 3;               // tiles of the second factor in registers
    constexpr float kLog2E = 1.44269504F;
    const int group = a.heads / a.pool.kv_heads, kv_head = block_y();
    const int tokens = kernels::kPrefillRows / group;
    const int first_token = (grid_x() - 1 - block_x()) * tokens;  // the last tokens see the most: they go first
    const int last_token = first_token + tokens < a.tokens ? first_token + tokens - 1 : a.tokens - 1;
    const int lowest = a.places.positions[first_token], highest = a.places.positions[last_token];
    const float infinity = bits_to_float(0x7f800000U);

    // The lane's two rows.
    int position[2];
    int row[2];  // of q and out; -1: none
    HR_UNROLL
    for (int r = 0; r < 2; ++r) {
        const int i = warp() * 16 + r * 8 + lane() / 4;
        const int token = first_token + i / group;
        const bool some = i < tokens * group && token <= last_token;
        position[r] = some ? a.places.positions[token] : highest;
        row[r] = some ? token * a.heads + kv_head * group + i % group : -1;
    }
    std::uint32_t q[W / 16][4];
    HR_UNROLL
    for (int step = 0; step < W / 16; ++step) {
        HR_UNROLL
        for (int part = 0; part < 4; ++part) {
            const float* from = a.q + static_cast<std::int64_t>(row[part % 2]) * W + step * 16 + part / 2 * 8 + lane() % 4 * 2;
            q[step][part] = row[part % 2] >= 0 ? pack_halves(from[0], from[1]) : 0U;
        }
    }

    const int begin = (a.window > 0 && lowest >= a.window ? lowest - a.window + 1 : 0) / kTile * kTile;
    const Tiles tiles{a.pool, kv_head, highest};
    const auto page_for = [&](int key) { return key <= highest ? page_of(a.places, first_token, key / kPage) : 0; };

    float out[W / 8][4] = {};
    float largest[2] = {-infinity, -infinity}, sum[2] = {0, 0};  // the sum: of the lane's own columns
    const float factor = a.scale * kLog2E;
    tiles.start(begin, page_for(begin), 0);
    int next_page = page_for(begin + kTile);
    int stage = 0;
    for (int key = begin; key <= highest; key += kTile, stage ^= 1) {
        wait_for_copies<0>();
        sync();
        tiles.arrived(key);
        if (key + kTile <= highest) {
            tiles.start(key + kTile, next_page, stage ^ 1);
            next_page = page_for(key + 2 * kTile);
        }

        // Tiles of K are loaded a few products ahead of their use, those of V below too.
        float s[kTile / 8][4] = {};
        {
            constexpr int kPairs = kTile / 16, kAll = W / 16 * kPairs;
            const std::uint16_t* mine = tiles.keys(stage) + (lane() / 16 * 8 + lane() % 8) * kStride + lane() / 8 % 2 * 8;
            std::uint32_t b[kFragments][4];
            const auto load = [&](int i) { load_tiles(mine + i % kPairs * 16 * kStride + i / kPairs * 16, b[i % kFragments]); };
            HR_UNROLL
            for (int i = 0; i < kFragments - 1; ++i) load(i);
            HR_UNROLL
            for (int i = 0; i < kAll; ++i) {
                if (i + kFragments - 1 < kAll) load(i + kFragments - 1);
                const std::uint32_t(&now)[4] = b[i % kFragments];
                multiply_add(q[i / kPairs], now[0], now[1], s[i % kPairs * 2]);
                multiply_add(q[i / kPairs], now[2], now[3], s[i % kPairs * 2 + 1]);
            }
        }
        if (key + kTile - 1 > lowest || (a.window > 0 && key <= highest - a.window)) {
            HR_UNROLL
            for (int n = 0; n < kTile / 8; ++n) {
                HR_UNROLL
                for (int i = 0; i < 4; ++i) {
                    const int at = key + n * 8 + lane() % 4 * 2 + i % 2, of = position[i / 2];
                    if (at > of || (a.window > 0 && at <= of - a.window)) s[n][i] = -infinity;
                }
            }
        }
        HR_UNROLL
        for (int r = 0; r < 2; ++r) {
            float now = largest[r];
            HR_UNROLL
            for (int n = 0; n < kTile / 8; ++n) now = max_of(now, max_of(s[n][2 * r], s[n][2 * r + 1]));
            now = max_of(now, shuffle_xor(now, 1));
            now = max_of(now, shuffle_xor(now, 2));
            const float shift = now == -infinity ? 0.0F : now * factor;  // a row may see nothing of a tile
            const float kept = fast_exp2(fma(largest[r], factor, -shift));
            largest[r] = now;
            sum[r] = sum[r] * kept;
            HR_UNROLL
            for (int n = 0; n < kTile / 8; ++n) {
                s[n][2 * r] = fast_exp2(fma(s[n][2 * r], factor, -shift));
                s[n][2 * r + 1] = fast_exp2(fma(s[n][2 * r + 1], factor, -shift));
                sum[r] = sum[r] + (s[n][2 * r] + s[n][2 * r + 1]);
            }
            HR_UNROLL
            for (int n = 0; n < W / 8; ++n) {
                out[n][2 * r] = out[n][2 * r] * kept;
                out[n][2 * r + 1] = out[n][2 * r + 1] * kept;
            }
        }
        {
            constexpr int kPairs = W / 16, kAll = kTile / 16 * kPairs;
            const std::uint16_t* mine = tiles.values(stage);
            std::uint32_t b[kFragments][4], p[4];
            const auto load = [&](int i) { Tiles::load_values(mine, i / kPairs, i % kPairs, b[i % kFragments]); };
            HR_UNROLL
            for (int i = 0; i < kFragments - 1; ++i) load(i);
            HR_UNROLL
            for (int i = 0; i < kAll; ++i) {
                if (i + kFragments - 1 < kAll) load(i + kFragments - 1);
                if (i % kPairs == 0) {
                    HR_UNROLL
                    for (int part = 0; part < 4; ++part) {
                        const float(&two)[4] = s[i / kPairs * 2 + part / 2];
                        p[part] = pack_halves(two[part % 2 * 2], two[part % 2 * 2 + 1]);
                    }
                }
                const std::uint32_t(&now)[4] = b[i % kFragments];
                multiply_add(p, now[0], now[1], out[i % kPairs * 2]);
                multiply_add(p, now[2], now[3], out[i % kPairs * 2 + 1]);
            }
        }
    }
    HR_UNROLL
    for (int r = 0; r < 2; ++r) {
        float all = sum[r] + shuffle_xor(sum[r], 1);
        all = all + shuffle_xor(all, 2);
        if (row[r] < 0) continue;
        const float inverse = 1.0F / all;
        HR_UNROLL
        for (int n = 0; n < W / 8; ++n) {
            const Floats<2> two = {{out[n][2 * r] * inverse, out[n][2 * r + 1] * inverse}};
            *reinterpret_cast<Floats<2>*>(a.out + static_cast<std::int64_t>(row[r]) * W + n * 8 + lane() % 4 * 2) = two;
        }
    }
}

}  // namespace headroom::device

#endif
