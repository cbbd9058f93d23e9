#pragma once

// Products of many tokens: a block takes 64 rows of weights and 64 tokens through all columns, 256 at a time. The weights are taken apart
// once for the 64 tokens and lie in shared memory as int8 codes, the tokens' codes beside them. Integer sums come from matrix instructions
// (NVIDIA from sm_80 on) or from dot4; the float operations and the order of the additions are those of docs/arithmetic.md.
//
// To keep registers few the blocks of a row are walked in two passes, the even ones (accumulators 0 and 2), then the odd ones (1 and 3): the
// first pass leaves a[0] + a[2] in shared memory.

#include "kernels/arguments.h"
#include "kernels/quants.h"
#include "kernels/targets.h"

#if defined(HR_CUDA) && __CUDA_ARCH__ >= 800
#define HR_MATRIX_UNITS 1
#else
#define HR_MATRIX_UNITS 0
#endif

namespace headroom::device {

using kernels::Quantized;

inline constexpr int kTileRows = kernels::kTileRows, kTileTokens = kernels::kTileTokens;
inline constexpr int kTileThreads = kernels::kTileThreads;
[[maybe_unused]] inline constexpr int kTileSteps = HR_MATRIX_UNITS != 0 ? 2 : 1;  // of 32 columns that are unrolled
inline constexpr bool kTileAhead = HR_MATRIX_UNITS != 0;  // the next 256 columns are staged while these are multiplied

// 256 columns of both matrices. A run is 16 columns; types with 32-wide blocks have 8 blocks here, others one superblock. Runs are swapped
// within a row (place_of), so that the same run of eight neighbouring rows lies in eight different groups of banks.
struct alignas(16) Stage {
    Words4 rows[kTileRows][16];
    Words4 tokens[kTileTokens][16];
    std::int8_t scales[kTileRows][16];  // of each run; superblocks only, as the minima
    std::int8_t minima[kTileRows][16];
    std::uint32_t factors[kTileRows][8];   // of each block; superblocks: the first
    float token_scales[8][kTileTokens];    // of each group; 256-wide groups: the first
    std::int16_t sums[kTileTokens][16];
};
static_assert(sizeof(Stage) == kernels::kTileStageBytes && kernels::kTileParkedBytes == kTileRows * kTileTokens * 4);

HR_DEVICE int place_of(int row, int run) { return run ^ (row & 7); }

// ---- The integer sums of a thread's outputs ----
//
// Of a warp's 16 rows and 32 tokens a thread has rows lane / 4 and lane / 4 + 8, tokens 8 n + 2 (lane % 4) and the next, n = 0 … 3: output
// (n, i) is row i / 2, token i % 2 of them. That is how matrix instructions hand out their results.

#if HR_MATRIX_UNITS

HR_DEVICE unsigned shared_address(const void* at) { return static_cast<unsigned>(__cvta_generic_to_shared(at)); }

HR_DEVICE void load_matrices(const void* at, int (&out)[4]) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(shared_address(at)));
}

struct Multiplier {
    int a[4];
    int b[4];
    // Columns 32 j … 32 j + 31 of the warp's rows.
    HR_DEVICE void load_rows(const Stage& stage, int row, int j) {
        load_matrices(&stage.rows[row + (lane() & 15)][place_of(lane(), 2 * j + (lane() >> 4))], a);
    }
    // The same of tokens 16 h … 16 h + 15.
    HR_DEVICE void load_tokens(const Stage& stage, int token, int h, int j) {
        load_matrices(&stage.tokens[token + 16 * h + (lane() & 7) + 8 * (lane() >> 4)][place_of(lane(), 2 * j + ((lane() >> 3) & 1))], b);
    }
    // Products over the 32 columns, or over run c of them, with tokens 8 n of those loaded (n is 0 or 1).
    HR_DEVICE void dot_32(int n, int (&out)[4]) const {
        asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %10, %10, %10};"
            : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[2 * n]), "r"(b[2 * n + 1]), "r"(0));
    }
    HR_DEVICE void dot_16(int n, int c, int (&out)[4]) const {
        asm("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %7, %7, %7};"
            : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
            : "r"(a[2 * c]), "r"(a[2 * c + 1]), "r"(b[2 * n + c]), "r"(0));
    }
};

// The sums of minimum times sum of codes over the 16 runs; tokens from `token` on. The sums are split into an unsigned low and a signed high
// byte.
HR_DEVICE void dot_minima(const Stage& stage, int row, int token, int (&out)[4]) {
    const int part = lane() & 3, first = lane() >> 2;
    const int a0 = load_4(&stage.minima[row + first][4 * part]), a1 = load_4(&stage.minima[row + first + 8][4 * part]);
    const Words2 sums = load_8(&stage.sums[token + first][4 * part]);
    const auto low = static_cast<int>(__byte_perm(static_cast<unsigned>(sums.w[0]), static_cast<unsigned>(sums.w[1]), 0x6420U));
    const auto high = static_cast<int>(__byte_perm(static_cast<unsigned>(sums.w[0]), static_cast<unsigned>(sums.w[1]), 0x7531U));
    int upper[4];
    asm("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %7, %7, %7};"
        : "=r"(upper[0]), "=r"(upper[1]), "=r"(upper[2]), "=r"(upper[3])
        : "r"(a0), "r"(a1), "r"(high), "r"(0));
    asm("mma.sync.aligned.m16n8k16.row.col.s32.s8.u8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %8, %9, %10};"
        : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
        : "r"(a0), "r"(a1), "r"(low), "r"(upper[0] << 8), "r"(upper[1] << 8), "r"(upper[2] << 8), "r"(upper[3] << 8));
}

HR_DEVICE void copy_16(void* to, const void* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from));
}
HR_DEVICE void await_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

#else

struct Multiplier {
    Words4 a[2][2];  // [row][run]
    const Words4 (*tokens)[16];  // the first two of them that are this thread's
    int step;
    HR_DEVICE void load_rows(const Stage& stage, int row, int j) {
        HR_UNROLL
        for (int i = 0; i < 4; ++i) {
            const int own = row + (lane() >> 2) + 8 * (i / 2);
            a[i / 2][i % 2] = stage.rows[own][place_of(own, 2 * j + i % 2)];
        }
    }
    // Codes are read where they are used: registers are short.
    HR_DEVICE void load_tokens(const Stage& stage, int token, int h, int j) {
        tokens = &stage.tokens[token + 16 * h + 2 * (lane() & 3)];
        step = j;
    }
    HR_DEVICE void dot_16(int n, int c, int (&out)[4]) const {
        HR_UNROLL
        for (int t = 0; t < 2; ++t) {
            const Words4 b = tokens[8 * n + t][place_of(2 * (lane() & 3) + t, 2 * step + c)];
            HR_UNROLL
            for (int r = 0; r < 2; ++r) {
                int sum = 0;
                HR_UNROLL
                for (int k = 0; k < 4; ++k) sum = dot4(a[r][c].w[k], b.w[k], sum);
                out[2 * r + t] = sum;
            }
        }
    }
    HR_DEVICE void dot_32(int n, int (&out)[4]) const {
        int second[4];
        dot_16(n, 0, out);
        dot_16(n, 1, second);
        HR_UNROLL
        for (int i = 0; i < 4; ++i) out[i] += second[i];
    }
};

HR_DEVICE void dot_minima(const Stage& stage, int row, int token, int (&out)[4]) {
    HR_UNROLL
    for (int i = 0; i < 4; ++i) {
        const std::int8_t* minima = stage.minima[row + (lane() >> 2) + 8 * (i / 2)];
        const std::int16_t* sums = stage.sums[token + 2 * (lane() & 3) + i % 2];
        out[i] = 0;
        for (int k = 0; k < 16; ++k) out[i] += minima[k] * sums[k];
    }
}

HR_DEVICE void copy_16(void* to, const void* from) { *static_cast<Words4*>(to) = load_16(from); }
HR_DEVICE void await_copies() {}

#endif

// Which rows and tokens a block multiplies.
struct TileWork {
    const std::uint8_t* weights;  // row 0
    std::uint32_t row_bytes;
    int row, rows;      // the first, and of the whole matrix
    int token, tokens;  // the first entry, and the end of the entries: entry i is row of_entry(i) of x
    int cols;
    Quantized x;
};

// of_entry(i): the row of x that belongs to entry i. store(i, row, value).
template <class Weights, class OfEntry, class Store>
HR_DEVICE void multiply_tile(const TileWork& work, OfEntry of_entry, Store store_value) {
    constexpr bool kWide = Weights::kElements == 256;
    Stage* stages = reinterpret_cast<Stage*>(dynamic_shared());
    float* parked = reinterpret_cast<float*>(stages + (kTileAhead ? 2 : 1)) + thread();  // what the first pass leaves, of each thread
    const int blocks = work.cols / Weights::kElements;

    // A thread stages two lanes' shares of the weights, a quarter of a token's codes, and a share of the rest.
    constexpr int kShares = kTileRows * 8 / kTileThreads;
    const int share_lane = thread() & 7, share_row = thread() >> 3;  // and rows further by an eighth of the threads
    const auto row_there = [&](int i) {
        const int row = work.row + share_row + i * (kTileThreads / 8);
        return row < work.rows ? row : work.rows - 1;
    };
    const std::uint8_t* share_from = work.weights + static_cast<std::int64_t>(row_there(0)) * work.row_bytes;
    const std::uint32_t further = static_cast<std::uint32_t>(row_there(kShares - 1) - row_there(0)) * work.row_bytes;
    static_assert(kShares == 2);
    const int token = thread() >> 2, token_part = thread() & 3;
    const int entry = work.token + token < work.tokens ? work.token + token : work.tokens - 1;
    const int token_at = of_entry(entry) * work.cols;

    // Block j of a step; those behind the row's end are read as the last one and count as zero.
    const auto block_of = [&](int pass, int step, int j) { return kWide ? pass + 2 * step : pass + 2 * (8 * step + j); };
    const auto load = [&](int pass, int step, typename Weights::Raw (&raw)[kShares]) {
        const int wanted = block_of(pass, step, share_lane), b = wanted < blocks ? wanted : blocks - 1;
        HR_UNROLL
        for (int i = 0; i < kShares; ++i) raw[i] = Weights::load(share_from + (i * further + static_cast<std::uint32_t>(b * Weights::kBytes)), share_lane);
    };
    const auto put_weights = [&](int pass, int step, Stage& stage, const typename Weights::Raw (&raw)[kShares]) {
        HR_UNROLL
        for (int i = 0; i < kShares; ++i) {
            const int row = share_row + i * (kTileThreads / 8);
            Share share;
            Weights::unpack(raw[i], share_lane, share);
            HR_UNROLL
            for (int c = 0; c < 2; ++c) {
                int at = 32 * share_lane + 16 * c;
                if constexpr (kWide) at = Weights::offset(share_lane, c);
                Words4 codes;
                HR_UNROLL
                for (int k = 0; k < 4; ++k) {
                    codes.w[k] = share.q[c][k];
                    // Bytes below 128 less a bias, without borrowing from the next.
                    if (Weights::kBias != 0) {
                        codes.w[k] = static_cast<int>((static_cast<std::uint32_t>(codes.w[k]) | 0x80808080U) - Weights::kBias * 0x01010101U) ^
                                     static_cast<int>(0x80808080U);
                    }
                }
                stage.rows[row][place_of(row, at / 16)] = codes;
                if constexpr (kWide) {
                    stage.scales[row][at / 16] = static_cast<std::int8_t>(share.scale[c]);
                    if (Weights::kMinima) stage.minima[row][at / 16] = static_cast<std::int8_t>(share.minimum[c]);
                }
            }
            const bool there = block_of(pass, step, share_lane) < blocks;
            if (!kWide || share_lane == 0) stage.factors[row][kWide ? 0 : share_lane] = there ? Weights::factors(raw[i]) : 0U;
        }
    };
    const auto put_tokens = [&](int pass, int step, Stage& stage) {
        HR_UNROLL
        for (int i = 0; i < 4; ++i) {
            // Sixteen neighbouring bytes; a token's four threads read 64 at a time.
            const int at = 64 * i + 16 * token_part;
            const int wanted = block_of(pass, step, at / 32), b = wanted < blocks ? wanted : blocks - 1;
            const int column = kWide ? b * 256 + at : b * 32 + at % 32;
            copy_16(&stage.tokens[token][place_of(token, at / 16)], work.x.codes + token_at + column);
        }
        if constexpr (kWide) {
            const int b = block_of(pass, step, 0);
            if (token_part == 0) stage.token_scales[0][token] = work.x.scales[token_at / 256 + b];
            if (Weights::kMinima && token_part < 2) copy_16(&stage.sums[token][8 * token_part], work.x.sums + token_at / 16 + b * 16 + 8 * token_part);
        } else {
            HR_UNROLL
            for (int i = 0; i < 2; ++i) {
                const int j = token_part + 4 * i;
                const int wanted = block_of(pass, step, j), b = wanted < blocks ? wanted : blocks - 1;
                stage.token_scales[j][token] = work.x.scales[token_at / 32 + b];
                if (Weights::kMinima) {
                    stage.sums[token][2 * j] = work.x.sums[token_at / 16 + 2 * b];
                    stage.sums[token][2 * j + 1] = work.x.sums[token_at / 16 + 2 * b + 1];
                }
            }
        }
    };

    const int first_row = 16 * (warp() % (kTileRows / 16)), first_token = 32 * (warp() / (kTileRows / 16));
    const bool some = work.token + first_token < work.tokens;  // nothing is computed for tokens that are not there
    float sums[2][4][4];
    const auto compute = [&](int step, const Stage& stage) {
        const int row = first_row + (lane() >> 2);
        Multiplier m;
        if constexpr (kWide) {
            int products[4][4] = {};
#pragma unroll kTileSteps
            for (int j = 0; j < 8; ++j) {
                m.load_rows(stage, first_row, j);
                int scales[2][2];  // [row][run]
                HR_UNROLL
                for (int i = 0; i < 2; ++i) {
                    const std::int8_t* two = &stage.scales[row + 8 * i][2 * j];
                    scales[i][0] = two[0];
                    scales[i][1] = two[1];
                }
                HR_UNROLL
                for (int h = 0; h < 2; ++h) {
                    m.load_tokens(stage, first_token, h, j);
                    HR_UNROLL
                    for (int n = 0; n < 2; ++n) {
                        int dot[4];
                        HR_UNROLL
                        for (int c = 0; c < (Weights::kRun == 16 ? 2 : 1); ++c) {
                            if constexpr (Weights::kRun == 16) {
                                m.dot_16(n, c, dot);
                            } else {
                                m.dot_32(n, dot);
                            }
                            HR_UNROLL
                            for (int i = 0; i < 4; ++i) products[2 * h + n][i] += scales[i / 2][c] * dot[i];
                        }
                    }
                }
            }
            float d[2], dmin[2];
            HR_UNROLL
            for (int i = 0; i < 2; ++i) {
                d[i] = low_half(stage.factors[row + 8 * i][0]);
                dmin[i] = high_half(stage.factors[row + 8 * i][0]);
            }
            const bool second = (step & 1) != 0;
            HR_UNROLL
            for (int n = 0; n < 4; ++n) {
                int minima[4];
                if constexpr (Weights::kMinima) dot_minima(stage, first_row, first_token + 8 * n, minima);
                HR_UNROLL
                for (int i = 0; i < 4; ++i) {
                    const float scale = stage.token_scales[0][first_token + 8 * n + 2 * (lane() & 3) + i % 2];
                    const auto product = static_cast<float>(products[n][i]);
                    float value;
                    if constexpr (Weights::kMinima) {
                        value = scale * fma(d[i / 2], product, -(dmin[i / 2] * static_cast<float>(minima[i])));
                    } else {
                        value = scale * (d[i / 2] * product);
                    }
                    // One of the two is left as it is: an addition of a zero changes nothing.
                    sums[0][n][i] = second ? sums[0][n][i] : sums[0][n][i] + value;
                    sums[1][n][i] = second ? sums[1][n][i] + value : sums[1][n][i];
                }
            }
        } else {
            (void)step;
#pragma unroll 1
            for (int pair = 0; pair < 4; ++pair) {
                HR_UNROLL
                for (int odd = 0; odd < 2; ++odd) {
                    const int j = 2 * pair + odd;
                    m.load_rows(stage, first_row, j);
                    float d[2], minimum[2];
                    HR_UNROLL
                    for (int i = 0; i < 2; ++i) {
                        const std::uint32_t factors = stage.factors[row + 8 * i][j];
                        d[i] = low_half(factors);
                        minimum[i] = high_half(factors);
                    }
                    HR_UNROLL
                    for (int h = 0; h < 2; ++h) {
                        m.load_tokens(stage, first_token, h, j);
                        HR_UNROLL
                        for (int n = 0; n < 2; ++n) {
                            int dot[4];
                            m.dot_32(n, dot);
                            HR_UNROLL
                            for (int i = 0; i < 4; ++i) {
                                const int token_of = first_token + 16 * h + 8 * n + 2 * (lane() & 3) + i % 2;
                                const float scale = stage.token_scales[j][token_of];
                                const auto product = static_cast<float>(dot[i]);
                                float value;
                                if constexpr (Weights::kMinima) {
                                    const auto sum = static_cast<float>(stage.sums[token_of][2 * j] + stage.sums[token_of][2 * j + 1]);
                                    value = scale * fma(d[i / 2], product, minimum[i / 2] * sum);
                                } else {
                                    value = (d[i / 2] * scale) * product;
                                }
                                float& to = sums[odd][2 * h + n][i];
                                to = to + value;
                            }
                        }
                    }
                }
            }
        }
    };

    for (int pass = 0; pass < 2; ++pass) {
        HR_UNROLL
        for (int n = 0; n < 4; ++n) {
            HR_UNROLL
            for (int i = 0; i < 4; ++i) sums[0][n][i] = sums[1][n][i] = 0.0F;
        }
        const int of_pass = (blocks - pass + 1) / 2;
        const int steps = kWide ? of_pass : (of_pass + 7) / 8;
        typename Weights::Raw raw[kShares];
        if (kTileAhead) {
            sync();  // the last pass is done with both stages
            if (steps > 0) {
                load(pass, 0, raw);
                put_tokens(pass, 0, stages[0]);
                put_weights(pass, 0, stages[0], raw);
                if (steps > 1) load(pass, 1, raw);
            }
        }
        for (int step = 0; step < steps; ++step) {
            Stage& stage = stages[kTileAhead ? step & 1 : 0];
            if (kTileAhead) {
                await_copies();
                sync();
                if (step + 1 < steps) {
                    Stage& next = stages[(step + 1) & 1];
                    put_tokens(pass, step + 1, next);
                    put_weights(pass, step + 1, next, raw);
                    if (step + 2 < steps) load(pass, step + 2, raw);
                }
            } else {
                load(pass, step, raw);
                sync();
                put_tokens(pass, step, stage);
                put_weights(pass, step, stage, raw);
                sync();
            }
            if (some) compute(step, stage);
        }
        HR_UNROLL
        for (int n = 0; n < 4; ++n) {
            HR_UNROLL
            for (int i = 0; i < 4; ++i) {
                sums[0][n][i] = sums[0][n][i] + sums[1][n][i];
                float& even = parked[(4 * n + i) * kTileThreads];
                if (pass == 0) {
                    even = sums[0][n][i];
                } else {
                    sums[0][n][i] = even + sums[0][n][i];
                }
            }
        }
    }
    HR_UNROLL
    for (int n = 0; n < 4; ++n) {
        HR_UNROLL
        for (int i = 0; i < 4; ++i) {
            const int row = work.row + first_row + (lane() >> 2) + 8 * (i / 2);
            const int at = work.token + first_token + 8 * n + 2 * (lane() & 3) + i % 2;
            if (row < work.rows && at < work.tokens) store_value(at, row, sums[0][n][i]);
        }
    }
}

template <class Weights>
HR_DEVICE void product_tiles(const kernels::ProductTilesArguments& a) {
    const auto& w = a.target.w;
    const TileWork work = {w.data, w.row_bytes, block_x() * kTileRows, w.rows, block_y() * kTileTokens, a.tokens, w.cols, a.x};
    multiply_tile<Weights>(work, [](int i) { return i; }, [&](int i, int row, float value) { store(a.target, i, row, value); });
}

// The blocks of the grid's second dimension are dealt to the experts, one for each 64 of their choices; those that are left over have
// nothing to do.
template <class Weights>
HR_DEVICE void experts_tiles(const kernels::ExpertsTilesArguments& a) {
    __shared__ int found[2];  // the expert and its tile
    if (thread() == 0) found[0] = -1;
    sync();
    if (warp() == 0) {
        int before = 0;  // tiles of the experts before
        for (int base = 0; base < a.experts && before <= block_y(); base += kWarp) {
            const int expert = base + lane();
            const int tiles = expert < a.experts ? (a.offsets[expert + 1] - a.offsets[expert] + kTileTokens - 1) / kTileTokens : 0;
            int until = tiles;
            for (int h = 1; h < kWarp; h *= 2) {
                const int other = shuffle(until, lane() >= h ? lane() - h : lane());
                if (lane() >= h) until += other;
            }
            const int tile = block_y() - (before + until - tiles);
            if (tile >= 0 && tile < tiles) {
                found[0] = expert;
                found[1] = tile;
            }
            before += shuffle(until, kWarp - 1);
        }
    }
    sync();
    const int expert = found[0];
    if (expert < 0) return;
    const kernels::ExpertAddresses& addresses = a.table[expert];
    const std::uint8_t* weights = a.which == 0 ? addresses.gate : a.which == 1 ? addresses.up : addresses.down;
    if (weights == nullptr) return;
    const TileWork work = {weights, a.row_bytes, block_x() * kTileRows, a.rows, a.offsets[expert] + found[1] * kTileTokens, a.offsets[expert + 1],
                           a.cols, a.x};
    multiply_tile<Weights>(
        work, [&](int i) { return a.grouped[i] / a.divisor; },
        [&](int i, int row, float value) { a.y[static_cast<std::int64_t>(a.grouped[i]) * a.rows + row] = value; });
}

}  // namespace headroom::device

// Both kernels of a type.
#define HR_TILES(type, weights)                                                                                        \
    HR_KERNEL_OF(product_tiles_##type, ProductTilesArguments, headroom::kernels::kTileThreads, 2) { product_tiles<weights>(a); } \
    HR_KERNEL_OF(experts_tiles_##type, ExpertsTilesArguments, headroom::kernels::kTileThreads, 2) { experts_tiles<weights>(a); }
