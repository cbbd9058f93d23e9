#pragma once

// Attention of one token where K and V are int8 codes (docs/arithmetic.md): a warp has a strip, as in attention_chunk.h, and works on it with what the
// device has: CodeTiles with matrix units, PlainCodes without.

#include "kernels/attention_sections.h"
#include "kernels/code_pool.h"
#include "kernels/code_tiles.h"

namespace headroom::device {

inline constexpr int kCodeHeads = kernels::kCodeHeads;
inline constexpr float kMostWeightCode = 16383;  // of a value's weight as an integer

struct alignas(16) CodeWords {
    int w[4];
};

// The query heads of a block as codes, in shared memory: codes [8][code_row(width)], scales [width / 32][8].
struct QueryCodes {
    unsigned char* codes;
    float* scales;
    int row;

    HR_DEVICE QueryCodes(unsigned char* at, int width) : codes(at), scales(reinterpret_cast<float*>(at + kCodeHeads * kernels::code_row(width))), row(kernels::code_row(width)) {}
    HR_DEVICE void put(int head, const float* x, int width) const {
#pragma unroll 1
        for (int first = 0; first < width; first += 4 * kWarp) {
            const int i = first + 4 * lane();
            const Floats<4> four = i < width ? *reinterpret_cast<const Floats<4>*>(x + i) : Floats<4>{};
            const float largest = largest_of_block(four);
            const bool some = largest >= kSmallestGroup;
            if (i >= width) continue;
            *reinterpret_cast<std::uint32_t*>(codes + head * row + i) = codes_of(four, some ? 127.0F / largest : 0.0F);
            if (i % kCodeBlock == 0) scales[i / kCodeBlock * kCodeHeads + head] = some ? largest / 127.0F : 0.0F;
        }
    }
};

// The token's own K and V of a KV head, made by this block; in shared memory.
struct FreshCodes {
    unsigned char *k, *v;
    std::uint16_t *k_scales, *v_scales;

    HR_DEVICE FreshCodes(unsigned char* at, int width, int width_v)
        : k(at), v(at + width), k_scales(reinterpret_cast<std::uint16_t*>(v + width_v)), v_scales(k_scales + width / kCodeBlock) {}
};

// Maximum and sum of a strip's weights, for each of the heads.
struct StripSums {
    float *largest, *sum;
};

// Without matrix units. A lane has a position, then an element of each block.
template <int W>
struct PlainCodes {
    static HR_DEVICE int bytes(int, int width_v) { return kernels::plain_strip_bytes(width_v); }

    float *output, *weights;  // [heads, 32]
    unsigned char* codes;     // [heads][high and low parts][32]
    float* factors;           // [heads]
    const std::uint8_t *k, *v;
    const std::uint16_t *k_scales, *v_scales;
    int width, width_v;

    HR_DEVICE void start(unsigned char* memory, const KvPool& pool, const WarpStrip& at, int kv_head) {
        width = width_or<W>(pool.head_dim);
        width_v = width_or<W>(pool.head_dim_v);
        output = reinterpret_cast<float*>(memory);
        weights = reinterpret_cast<float*>(memory + kernels::output_bytes(width_v));
        codes = reinterpret_cast<unsigned char*>(weights + kCodeHeads * kStrip);
        factors = reinterpret_cast<float*>(codes + kCodeHeads * 64);
        const PageCodes key = key_codes<W>(pool, at.page, kv_head), value = value_codes<W>(pool, at.page, kv_head);
        k = key.codes + (at.strip * kStrip + lane()) * width;
        k_scales = key.scales + (at.strip * kStrip + lane()) * (width / kCodeBlock);
        v = value.codes + (at.strip * width_v + lane()) * kStrip;
        v_scales = value.scales + at.strip * width_v + lane();
    }

    static HR_DEVICE int dot_32(const CodeWords (&a)[2], const CodeWords* b) {
        int sum = 0;
        HR_UNROLL
        for (int i = 0; i < 8; ++i) sum = dot4(a[i / 4].w[i % 4], b[i / 4].w[i % 4], sum);
        return sum;
    }

    HR_DEVICE void attend(const WarpStrip& at, bool, const FreshCodes&, const QueryCodes& queries, int heads, float scale, const StripSums& sums) {
        const bool seen = lane() >= at.begin && lane() < at.end;
#pragma unroll 1
        for (int h = 0; h < heads; ++h) weights[h * kStrip + lane()] = 0;
#pragma unroll 1
        for (int b = 0; b < width / kCodeBlock; ++b) {
            const CodeWords* from = reinterpret_cast<const CodeWords*>(k + b * kCodeBlock);
            const CodeWords words[2] = {from[0], from[1]};
            const float d = half_to_float(k_scales[b]);
#pragma unroll 1
            for (int h = 0; h < heads; ++h) {
                const int product = dot_32(words, reinterpret_cast<const CodeWords*>(queries.codes + h * queries.row + b * kCodeBlock));
                float& s = weights[h * kStrip + lane()];
                s = fma(d * queries.scales[b * kCodeHeads + h], static_cast<float>(product), s);
            }
        }
#pragma unroll 1
        for (int h = 0; h < heads; ++h) {
            const float score = seen ? weights[h * kStrip + lane()] * scale : bits_to_float(0xff800000U);
            const float largest = max_32(score), p = exp_value(score - largest), sum = fold_32(p);
            weights[h * kStrip + lane()] = p;
            if (lane() == 0) {
                sums.largest[h] = largest;
                sums.sum[h] = sum;
            }
        }
#pragma unroll 1
        for (int b = 0; b < width_v / kCodeBlock; ++b) {
            const float d = seen ? half_to_float(v_scales[b * kStrip]) : 0.0F;
#pragma unroll 1
            for (int h = 0; h < heads; ++h) {
                const float weight = weights[h * kStrip + lane()] * d, largest = max_32(weight);
                const bool some = largest >= kSmallestGroup;
                const int code = static_cast<int>(rint(weight * (some ? kMostWeightCode / largest : 0.0F)));
                codes[h * 64 + lane()] = static_cast<unsigned char>(code >> 7);
                codes[h * 64 + 32 + lane()] = static_cast<unsigned char>(code & 127);
                if (lane() == 0) factors[h] = some ? largest / kMostWeightCode : 0.0F;
            }
            sync_warp();
            const CodeWords* from = reinterpret_cast<const CodeWords*>(v + b * kCodeBlock * kStrip);
            const CodeWords words[2] = {from[0], from[1]};
#pragma unroll 1
            for (int h = 0; h < heads; ++h) {
                const CodeWords* parts = reinterpret_cast<const CodeWords*>(codes + h * 64);
                const int product = 128 * dot_32(words, parts) + dot_32(words, parts + 2);
                output[h * kernels::output_row(width_v) + b * kCodeBlock + lane()] = static_cast<float>(product) * factors[h];
            }
            sync_warp();
        }
    }
};

#if defined(HR_CODE_TILES)

// With matrix units, eight heads to a tile.
//
// The rows of a tile of keys are positions in an order of their own: row r of the j-th eight is position 8 (r / 2) + 2 j + r % 2. A lane then has, of
// two heads, the scores of positions that differ in bits 1 and 2 alone; and when its integer weights of eight rows and eight heads have been turned
// (a lane has a head then), it has those of eight neighbouring positions, as it reads them of the values.
template <int W>
struct CodeTiles {
    static constexpr int kInteger = 0x4b400000;        // as a float 12,582,912: so many more, and an integer's bits are its float's last ones
    static constexpr float kIntegerFloat = 12582912.0F;
    static constexpr int kTogether = 4;                // blocks of values whose weights are made integers together

    static HR_DEVICE int bytes(int width, int width_v) { return kernels::tiles_strip_bytes(width, width_v); }
    static HR_DEVICE float to_float(int sum) { return bits_to_float(static_cast<std::uint32_t>(sum)) - kIntegerFloat; }

    unsigned char *k, *v;  // the output takes the keys' place
    std::uint16_t *k_scales, *v_scales;
    Floats<2>* factors;    // [32]
    int width, width_v, row;

    // Starts the copies of the strip.
    HR_DEVICE void start(unsigned char* memory, const KvPool& pool, const WarpStrip& at, int kv_head) {
        width = width_or<W>(pool.head_dim);
        width_v = width_or<W>(pool.head_dim_v);
        row = kernels::code_row(width);
        k = memory;
        v = k + kernels::tiles_keys_bytes(width, width_v);
        k_scales = reinterpret_cast<std::uint16_t*>(v + kStrip * width_v);
        v_scales = k_scales + width;
        factors = reinterpret_cast<Floats<2>*>(v_scales + width_v);
        if (at.begin >= at.end) return;
        const PageCodes key = key_codes<W>(pool, at.page, kv_head), value = value_codes<W>(pool, at.page, kv_head);
        const int chunks = width / 16;  // of 16 bytes in a key
        const std::uint8_t* from = key.codes + at.strip * kStrip * width;
        HR_UNROLL
        for (int n = lane(); n < kStrip * chunks; n += kWarp) {
            const int position = n / chunks;
            start_copy(k + row_of(position) * row + n % chunks * 16, from + n * 16, true);
        }
        const int of_keys = width / 8;
        HR_UNROLL
        for (int n = lane(); n < of_keys + width_v / 8; n += kWarp) {
            start_copy(k_scales + n * 8, n < of_keys ? key.scales + at.strip * width + n * 8 : value.scales + at.strip * width_v + (n - of_keys) * 8, true);
        }
        close_copies();
        HR_UNROLL
        for (int n = lane(); n < 2 * width_v; n += kWarp) start_copy(v + n * 16, value.codes + at.strip * kStrip * width_v + n * 16, true);
        close_copies();
    }
    static HR_DEVICE int row_of(int position) { return position / 2 % 4 * 8 + position / 8 * 2 + position % 2; }

    // makes_own: the token's own K and V are not in the pool, but in `fresh`.
    HR_DEVICE void attend(const WarpStrip& at, bool makes_own, const FreshCodes& fresh, const QueryCodes& queries, int heads, float scale, const StripSums& sums) {
        const int r = lane() / 4, c = lane() % 4;
        const bool own = makes_own && at.fresh >= 0 && at.fresh < kStrip;
        wait_for_copies<1>();
        sync_warp();
        if (own || at.begin > 0 || at.end < kStrip) patch_keys(at, own, fresh);
        float p[4][2] = {};  // of row r of the j-th eight, heads 2 c and 2 c + 1
        score(queries, p);
        float largest[2] = {bits_to_float(0xff800000U), bits_to_float(0xff800000U)};
        HR_UNROLL
        for (int j = 0; j < 4; ++j) {
            const int position = r / 2 * 8 + 2 * j + r % 2;
            const bool seen = position >= at.begin && position < at.end;
            HR_UNROLL
            for (int h = 0; h < 2; ++h) {
                p[j][h] = seen ? p[j][h] * scale : bits_to_float(0xff800000U);
                largest[h] = max_of(largest[h], p[j][h]);
            }
        }
        {
            const bool upper = r % 2 != 0;
            float kept = max_of(upper ? largest[1] : largest[0], shuffle_xor(upper ? largest[0] : largest[1], 4));
            kept = max_of(kept, shuffle_xor(kept, 8));
            kept = max_of(kept, shuffle_xor(kept, 16));
            const float other = shuffle_xor(kept, 4);
            largest[0] = upper ? other : kept;
            largest[1] = upper ? kept : other;
        }
        // The strided sum of 32: bits 4 and 3 of a position are bits 2 and 1 of r, bits 2 and 1 those of j.
        const bool upper = r / 4 != 0;
        float s[4];
        HR_UNROLL
        for (int j = 0; j < 4; ++j) {
            HR_UNROLL
            for (int h = 0; h < 2; ++h) p[j][h] = exp_value(p[j][h] - largest[h]);
            s[j] = (upper ? p[j][1] : p[j][0]) + shuffle_xor(upper ? p[j][0] : p[j][1], 16);
        }
        HR_UNROLL
        for (int j = 0; j < 4; ++j) s[j] = s[j] + shuffle_xor(s[j], 8);
        float sum = (s[0] + s[2]) + (s[1] + s[3]);
        sum = sum + shuffle_xor(sum, 4);
        if (r % 4 == 0) {
            sums.largest[2 * c + r / 4] = upper ? largest[1] : largest[0];
            sums.sum[2 * c + r / 4] = sum;
        }
        wait_for_copies<0>();
        sync_warp();
        if (own) {
            for (int i = lane(); i < width_v; i += kWarp) v[i * kStrip + at.fresh] = fresh.v[i];
            sync_warp();
        }
#pragma unroll 1
        for (int first = 0; first < width_v / kCodeBlock; first += kTogether) add_values(p, first, heads);
    }

private:
    // The token's own key and the scales of its value; and the values' scales that are not to be seen become 0, since they need not be numbers.
    HR_DEVICE void patch_keys(const WarpStrip& at, bool own, const FreshCodes& fresh) const {
        if (lane() < at.begin || lane() >= at.end) {
            for (int b = 0; b < width_v / kCodeBlock; ++b) v_scales[b * kStrip + lane()] = 0;
        }
        if (own) {
            for (int i = lane() * 4; i < width; i += kWarp * 4) *reinterpret_cast<int*>(k + row_of(at.fresh) * row + i) = *reinterpret_cast<const int*>(fresh.k + i);
            if (lane() < width / kCodeBlock) k_scales[at.fresh * (width / kCodeBlock) + lane()] = fresh.k_scales[lane()];
            if (lane() < width_v / kCodeBlock) v_scales[lane() * kStrip + at.fresh] = fresh.v_scales[lane()];
        }
        sync_warp();
    }

    HR_DEVICE void score(const QueryCodes& queries, float (&s)[4][2]) const {
        const int r = lane() / 4, c = lane() % 4, blocks = width / kCodeBlock;
        const unsigned char* mine = k + r * row + 8 * c;
        const unsigned char* query = queries.codes + r * queries.row + 8 * c;
        const std::uint16_t* scales = k_scales + (r / 2 * 8 + r % 2) * blocks;
        // Those of all of the lane's positions at once, where their number is known.
        constexpr int kBlocks = W > 0 ? W / kCodeBlock : 2;
        Halves<kBlocks> all[4];
        HR_UNROLL
        for (int j = 0; j < 4; ++j) all[j] = W > 0 ? *reinterpret_cast<const Halves<kBlocks>*>(scales + 2 * j * blocks) : Halves<kBlocks>{};
        HR_UNROLL
        for (int b = 0; b < blocks; ++b) {
            const Pair right = *reinterpret_cast<const Pair*>(query + b * kCodeBlock);
            const Floats<2> query_scale = *reinterpret_cast<const Floats<2>*>(queries.scales + b * kCodeHeads + 2 * c);
            HR_UNROLL
            for (int t = 0; t < 2; ++t) {
                const Pair top = *reinterpret_cast<const Pair*>(mine + 16 * t * row + b * kCodeBlock);
                const Pair bottom = *reinterpret_cast<const Pair*>(mine + (16 * t + 8) * row + b * kCodeBlock);
                int sum[4] = {kInteger, kInteger, kInteger, kInteger};
                add_codes({top.w[0], bottom.w[0], top.w[1], bottom.w[1]}, right.w[0], right.w[1], sum);
                HR_UNROLL
                for (int i = 0; i < 4; ++i) {
                    const int j = 2 * t + i / 2;
                    const float d = W > 0 ? all[j].value(b) : half_to_float(scales[2 * j * blocks + b]);
                    s[j][i % 2] = fma(d * query_scale.x[i % 2], to_float(sum[i]), s[j][i % 2]);
                }
            }
        }
    }

    // What the values of block b weigh: p times their scales.
    HR_DEVICE void weigh(const float (&p)[4][2], int b, float (&weights)[4][2]) const {
        const int r = lane() / 4;
        const Halves<8> scales = *reinterpret_cast<const Halves<8>*>(v_scales + b * kStrip + r / 2 * 8);
        HR_UNROLL
        for (int j = 0; j < 4; ++j) {
            const float d = half_to_float(static_cast<std::uint16_t>(scales.x[j] >> (r % 2 * 16)));
            HR_UNROLL
            for (int h = 0; h < 2; ++h) weights[j][h] = p[j][h] * d;
        }
    }

    // Blocks first … first + kTogether - 1 of the values, weighed by p.
    HR_DEVICE void add_values(const float (&p)[4][2], int first, int heads) const {
        const int r = lane() / 4, c = lane() % 4, blocks = width_v / kCodeBlock;
        float largest[kTogether][2];
        HR_UNROLL
        for (int b = 0; b < kTogether; ++b) {
            float weights[4][2];
            weigh(p, first + b < blocks ? first + b : blocks - 1, weights);
            HR_UNROLL
            for (int h = 0; h < 2; ++h) largest[b][h] = max_of(max_of(weights[0][h], weights[1][h]), max_of(weights[2][h], weights[3][h]));
        }
        {
            // Each lane keeps one of the eight maxima: block r / 2, head r % 2.
            static_assert(kTogether == 4);
            float pairs[2][2], heads_of[2];
            HR_UNROLL
            for (int b = 0; b < 2; ++b) {
                HR_UNROLL
                for (int h = 0; h < 2; ++h) {
                    pairs[b][h] = max_of(r / 4 != 0 ? largest[b + 2][h] : largest[b][h], shuffle_xor(r / 4 != 0 ? largest[b][h] : largest[b + 2][h], 16));
                }
            }
            const bool second = r / 2 % 2 != 0;
            HR_UNROLL
            for (int h = 0; h < 2; ++h) heads_of[h] = max_of(second ? pairs[1][h] : pairs[0][h], shuffle_xor(second ? pairs[0][h] : pairs[1][h], 8));
            const bool odd = r % 2 != 0;
            const float most = max_of(odd ? heads_of[1] : heads_of[0], shuffle_xor(odd ? heads_of[0] : heads_of[1], 4));
            const bool some = most >= kSmallestGroup;
            factors[c * 8 + r] = {{some ? kMostWeightCode / most : 0.0F, some ? most / kMostWeightCode : 0.0F}};
            sync_warp();
        }
        float* output = reinterpret_cast<float*>(k) + 2 * c * kernels::output_row(width_v) + r;
        const bool stores = W > 0 || 2 * c < heads;
#pragma unroll 1
        for (int b = 0; b < kTogether && first + b < blocks; ++b) {
            float weights[4][2];
            weigh(p, first + b, weights);
            const Floats<4> both = *reinterpret_cast<const Floats<4>*>(factors + c * 8 + b * 2);  // of two heads
            std::uint32_t turned[4];
            HR_UNROLL
            for (int j = 0; j < 4; ++j) {
                // The integer is in the last bits of the sum.
                const std::uint32_t low = float_to_bits(weights[j][0] * both.x[0] + kIntegerFloat), high = float_to_bits(weights[j][1] * both.x[2] + kIntegerFloat);
                turned[j] = turn_tile(pick_bytes(low, high, 0x5410));
            }
            // 256 times the first parts and the second ones.
            int parts[2][2];
            HR_UNROLL
            for (int i = 0; i < 2; ++i) {
                parts[0][i] = static_cast<int>(pick_bytes(turned[2 * i], turned[2 * i + 1], 0x7531));
                parts[1][i] = static_cast<int>(pick_bytes(turned[2 * i], turned[2 * i + 1], 0x6420));
            }
            HR_UNROLL
            for (int t = 0; t < 2; ++t) {
                const int element = (first + b) * kCodeBlock + t * 16;
                const Pair top = *reinterpret_cast<const Pair*>(v + (element + r) * kStrip + 8 * c);
                const Pair bottom = *reinterpret_cast<const Pair*>(v + (element + r + 8) * kStrip + 8 * c);
                const int left[4] = {top.w[0], bottom.w[0], top.w[1], bottom.w[1]};
                int upper[4] = {kInteger, kInteger, kInteger, kInteger}, lower[4] = {kInteger, kInteger, kInteger, kInteger};
                add_unsigned_codes(left, parts[0][0], parts[0][1], upper);
                add_unsigned_codes(left, parts[1][0], parts[1][1], lower);
                HR_UNROLL
                for (int i = 0; i < 4; ++i) {
                    const float sum = fma(to_float(upper[i]), 256.0F, to_float(lower[i]));
                    if (stores) output[i % 2 * kernels::output_row(width_v) + element + i / 2 * 8] = sum * both.x[2 * (i % 2) + 1];
                }
            }
        }
        sync_warp();
    }

    struct alignas(8) Pair {
        int w[2];
    };
};

#endif

// What a block has in shared memory behind its warps' strips (code_block_bytes).
struct CodeMemory {
    QueryCodes queries;
    float *strips_largest, *strips_sum;  // [warps, 8]
    float* made;                         // [heads and two more, width]
    FreshCodes fresh;

    HR_DEVICE CodeMemory(int warps, int strip_bytes, int width, int width_v)
        : queries(dynamic_shared() + warps * strip_bytes, width), strips_largest(queries.scales + width / kCodeBlock * kCodeHeads),
          strips_sum(strips_largest + warps * kCodeHeads), made(strips_sum + warps * kCodeHeads),
          fresh(reinterpret_cast<unsigned char*>(made + (kCodeHeads + 2) * width), width, width_v) {}
    HR_DEVICE StripSums sums() const { return {strips_largest + warp() * kCodeHeads, strips_sum + warp() * kCodeHeads}; }
};

// Leaves the query heads' codes in the block's shared memory, and those of the token's own K and V, which are kept in the pool if the block stores them.
template <int W>
HR_DEVICE void make_codes(HeadTasks<W>& tasks, const WarpStrip& at, bool stores, const CodeMemory& memory) {
#pragma unroll 1
    for (; !tasks.done(); tasks.next()) {
        float* row = memory.made + tasks.number * W;
        tasks.make(row);
        if (tasks.is_query()) {
            memory.queries.put(tasks.number, row, W);
            continue;
        }
        const bool is_k = tasks.is_key();
        const KvPool& kv = tasks.a.pool;
        const PageCodes pool = is_k ? key_codes<W>(kv, at.own_page, tasks.kv_head) : value_codes<W>(kv, at.own_page, tasks.kv_head);
        unsigned char* kept = is_k ? memory.fresh.k : memory.fresh.v;
        std::uint16_t* scales = is_k ? memory.fresh.k_scales : memory.fresh.v_scales;
        quantize_kept(row, W, [&](int i, std::uint32_t codes, std::uint16_t scale) {
            *reinterpret_cast<std::uint32_t*>(kept + i) = codes;
            if (i % kCodeBlock == 0) scales[i / kCodeBlock] = scale;
            if (!stores) return;
            if (is_k) pool.put_key(W, at.own_row, i, codes, scale);
            else pool.put_value(W, at.own_row, i, codes, scale);
        });
    }
}

// As attend in attention_chunk.h: the query heads head … head + heads - 1 of a token, at most code_heads of the values' width, over its pages from … to - 1.
// Work: PlainCodes or CodeTiles. raw: with CodeTiles only.
template <int W, class Work, bool kManySections>
HR_DEVICE void attend_codes(const AttentionArguments& a, int token, int kv_head, int head, int heads, const Visible& visible, int from, int to, bool whole,
                            const HeadArguments* raw) {
    const int width = width_or<W>(a.pool.head_dim), width_v = width_or<W>(a.pool.head_dim_v);
    const int row = token * a.heads + head;
    const int warps = threads() / kWarp, at_once = warps / kStrips;  // pages
    const int strip_bytes = Work::bytes(width, width_v);
    const CodeMemory memory(warps, strip_bytes, width, width_v);
    // The thread's part of the output: 4 elements of one head.
    const int part = thread() / (width_v / 4), element = thread() % (width_v / 4) * 4;
    const int own = part < heads ? part : 0;
    Running<4> section, all;
    int started = 0;
#pragma unroll 1
    for (int first_page = from; first_page < to; first_page += at_once) {
        const WarpStrip at(a, token, visible, first_page, at_once, to);
        unsigned char* own_memory = dynamic_shared() + warp() * strip_bytes;
        Work work;
        if constexpr (W > 0) {
            HeadTasks<W> tasks(a, *raw, token, kv_head, head, heads, at.makes_own, first_page != from);
            work.start(own_memory, a.pool, at, kv_head);
            make_codes<W>(tasks, at, stores_own(a, head), memory);
        } else {
            work.start(own_memory, a.pool, at, kv_head);
#pragma unroll 1
            for (int h = warp(); h < (first_page == from ? heads : 0); h += warps) memory.queries.put(h, a.q + static_cast<std::int64_t>(row + h) * width, width);
        }
        if (!whole && first_page == from) started = start_section(a, row);
        sync();
        const StripSums sums = memory.sums();
        if (at.begin < at.end) {
            work.attend(at, raw != nullptr, memory.fresh, memory.queries, heads, a.scale, sums);
        } else if (lane() < kCodeHeads) {
            sums.largest[lane()] = bits_to_float(0xff800000U);
            sums.sum[lane()] = 0;
        }
        sync();
        if (warp() < kStrips) {  // no thread beyond has a part of the output
            const StripsLeft<kCodeHeads> left{dynamic_shared() + (own * kernels::output_row(width_v) + element) * 4, strip_bytes, memory.strips_largest + own,
                                              memory.strips_sum + own};
            add_pages<kCodeHeads, kManySections>(left, visible, first_page, at_once, from, to, section, all);
        }
        if (first_page + at_once < to) sync();  // everyone is done with the pages before the next ones come
    }
    finish<W, W == 128 && !kManySections>(a, row, part, heads, element, kManySections ? all : section, visible, from, whole, started, warps * strip_bytes);
}

// The same for any number of heads.
template <int W, class Work, bool kManySections>
HR_DEVICE void attend_all_codes(const AttentionArguments& a, int token, int kv_head, int head, int heads, const Visible& visible, int from, int to,
                                bool whole, const HeadArguments* raw) {
    const int most = kernels::code_heads(width_or<W>(a.pool.head_dim_v));
#pragma unroll 1
    for (int h = 0; h < heads; h += most) {
        attend_codes<W, Work, kManySections>(a, token, kv_head, head + h, heads - h < most ? heads - h : most, visible, from, to, whole, raw);
        if (h + most < heads) sync();
    }
}

}  // namespace headroom::device
