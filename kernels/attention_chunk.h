#pragma once

// Attention of one token over pages of the KV pool, in the order of docs/arithmetic.md.
//
// A block has a section (two pages) of a KV head and several of its query heads, a warp one strip of a page: it scores the strip's keys, turns
// the scores into weights and adds up the values by itself, its tiles of K and V arriving meanwhile. The block waits for its warps only where the
// heads have been made ready and where the strips are put together. A block of 16 warps has both pages at once, one of 8 one after the other.

#include "kernels/attention_sections.h"

namespace headroom::device {

// How tiles of K and V lie in shared memory: row r in the r mod 4-th of four groups, which are 32 bytes apart beyond their size, so that 8 lanes to
// each of four neighbouring rows read from all banks.
struct TileShape {
    int width, width_v;
    int rows;  // of a tile: 8, 16 or 32

    // Halves from group to group.
    HR_DEVICE int group(int row_width) const { return rows / 4 * row_width + 16; }
    HR_DEVICE int place(int row, int row_width) const { return row % 4 * group(row_width) + row / 4 * row_width; }
};

// The warp's tiles: those of its strip's K, then those of its V. One is used while the next ones arrive.
template <int W>
struct Stream : TileShape {
    static constexpr int kSlotHalves = kernels::kSlotBytes / 2;

    int first;  // row of the first tile in the strip
    int tiles;  // of K, and of V
    int slots;  // 1 to 4

    // begin, end: the strip's visible rows; none: nothing is copied.
    HR_DEVICE Stream(const KvPool& pool, int page, int kv_head, int strip, int begin, int end, int all_slots)
        : TileShape{width_or<W>(pool.head_dim), width_or<W>(pool.head_dim_v), 0}, slots(all_slots) {
        const int wider = width > width_v ? width : width_v;
        rows = wider <= 64 ? 32 : wider <= 128 ? 16 : 8;
        first = begin / rows * rows;
        tiles = begin < end ? (end - 1) / rows - begin / rows + 1 : 0;
        next_ = keys(pool, page, kv_head) + (strip * kStrip + first) * width + lane() * 8;
        to_values_ = values(pool, page, kv_head) + (strip * kStrip + first) * width_v + lane() * 8 - (next_ + tiles * rows * width);
#pragma unroll 1
        for (int i = 0; i < slots; ++i) start(slot(i));
    }
    // The warp's memory, when all tiles have been used.
    HR_DEVICE float* memory() const { return reinterpret_cast<float*>(slot(0)); }
    // The next tile, for the whole warp.
    HR_DEVICE std::uint16_t* next() const {
        if (slots == 4) wait_for_copies<3>();
        else if (slots == 3) wait_for_copies<2>();
        else if (slots == 2) wait_for_copies<1>();
        else wait_for_copies<0>();
        sync_warp();
        return slot(at_);
    }
    // The warp is done with it.
    HR_DEVICE void release() {
        sync_warp();
        start(slot(at_));
        at_ = at_ + 1 == slots ? 0 : at_ + 1;
    }

private:
    // Copies the next tile that has not been started yet, if there is one.
    HR_DEVICE void start(std::uint16_t* to) {
        if (started_ < 2 * tiles) {
            const int row_width = started_ < tiles ? width : width_v;
            if constexpr (W == 64 || W == 128) {
                constexpr int kLanes = W / 8, kRows = kWarp / kLanes, kTurns = 4 / kRows;  // lanes to a row, rows at once
                to += lane() / kLanes * group(W) + lane() % kLanes * 8;
                HR_UNROLL
                for (int i = 0; i < 2048 / (kWarp * 8); ++i) start_copy(to + i % kTurns * kRows * group(W) + i / kTurns * W, next_ + i * kWarp * 8, true);
            } else {
                const int lanes = row_width / 8;
                int row = 0, column = lane();
#pragma unroll 1
                for (int i = 0; i < rows * row_width; i += kWarp * 8, column += kWarp) {
                    for (; column >= lanes; column -= lanes) ++row;
                    if (row < rows) start_copy(to + place(row, row_width) + column * 8, next_ + i, true);
                }
            }
            next_ += rows * row_width;
            if (++started_ == tiles) next_ += to_values_;
        }
        close_copies();
    }

    HR_DEVICE std::uint16_t* slot(int number) const {
        return reinterpret_cast<std::uint16_t*>(dynamic_shared()) + (warp() * slots + number) * kSlotHalves;
    }

    const std::uint16_t* next_;  // the lane's part of the first tile not yet started
    std::int64_t to_values_;     // from behind K's last to V's first
    int started_ = 0;
    int at_ = 0;                 // the slot in use
};

// The token's own K and V of a KV head, made by this block. The pool's rows of it are not read.
template <int W>
struct Fresh {
    static HR_DEVICE std::uint16_t* k() {
        __shared__ Halves<4> own[(W > 0 ? W : kMostWidth) / 4];
        return reinterpret_cast<std::uint16_t*>(own);
    }
    static HR_DEVICE std::uint16_t* v() {
        __shared__ Halves<4> own[(W > 0 ? W : kMostWidth) / 4];
        return reinterpret_cast<std::uint16_t*>(own);
    }
};

// A row of a tile, from elsewhere in shared memory.
HR_DEVICE void put_row(std::uint16_t* to, const std::uint16_t* from, int width) {
#pragma unroll 1
    for (int i = lane() * 4; i < width; i += kWarp * 4) *reinterpret_cast<Halves<4>*>(to + i) = *reinterpret_cast<const Halves<4>*>(from + i);
    sync_warp();
}

// ---- Scores ----
//
// Eight lanes have a key, a lane words l, l + 8, … of it: accumulators 2 l and 2 l + 1 of the dot product. The warp takes four keys at once
// and each with H heads. The first addition of the sum is the lane's own, the others are exchanges between the eight lanes; while there are
// several heads left they also halve what a lane still holds. Which half a lane gives away depends on its number; that costs nothing, because
// a lane keeps its queries in an order of its own: head s ^ turn in place s.

// scores[position][HB] of the tile's rows and of `heads` heads, H at a time; those too many mean nothing. queries: [HB, width]. J: words to a lane; or more, where kExact is false: the elements
// too many count as zero and change nothing.
template <int H, int J, bool kExact, int HB, int W>
HR_DEVICE void score_heads(const TileShape& shape, const std::uint16_t* tile, const float* queries, int heads, float scale, float* scores) {
    constexpr int kSteps = H >= 4 && W == 0 ? 1 : H >= 2 || W == 0 ? 2 : 4;  // on their way together: few heads are all latency
    const int l = lane() % 8, turn = l % H, width = kExact ? 16 * J : shape.width;
    const int steps = shape.rows / 4;
    tile += lane() / 8 * shape.group(width) + 2 * l;
    scores += lane() / 8 * HB + l;
#pragma unroll 1
    for (int set = 0; set < heads; set += H) {
        float x[H][J][2];
        HR_UNROLL
        for (int s = 0; s < H; ++s) {
            const float* from = queries + (set + (s ^ turn)) * width + 2 * l;
            HR_UNROLL
            for (int j = 0; j < J; ++j) {
                const Floats<2> two = kExact || 16 * j < width ? *reinterpret_cast<const Floats<2>*>(from + 16 * j) : Floats<2>{{0, 0}};
                x[s][j][0] = two.x[0];
                x[s][j][1] = two.x[1];
            }
        }
#pragma unroll 1
        for (int first = 0; first < steps; first += kSteps) {
            HR_UNROLL
            for (int step = first; step < first + kSteps; ++step) {
                const std::uint16_t* key = tile + step * width;
                float sums[H][2] = {};
                HR_UNROLL
                for (int j = 0; j < J; ++j) {
                    const std::uint32_t word = kExact || 16 * j < width ? *reinterpret_cast<const std::uint32_t*>(key + 16 * j) : 0U;
                    const float low = low_half_to_float(word), high = high_half_to_float(word);
                    HR_UNROLL
                    for (int s = 0; s < H; ++s) {
                        sums[s][0] = fma(x[s][j][0], low, sums[s][0]);
                        sums[s][1] = fma(x[s][j][1], high, sums[s][1]);
                    }
                }
                float folded[H];
                HR_UNROLL
                for (int s = 0; s < H; ++s) folded[s] = sums[s][0] + sums[s][1];
                HR_UNROLL
                for (int d = 1; d < 8; d *= 2) {
                    HR_UNROLL
                    for (int s = 0; s < H; s += 2 * d) folded[s] = folded[s] + shuffle_xor(folded[d < H ? s + d : s], d);
                }
                if (l < H) scores[4 * step * HB + set] = folded[0] * scale;
            }
        }
    }
}

template <int HB, int W>
HR_DEVICE void score(const Stream<W>& stream, const std::uint16_t* tile, const float* queries, int heads, float scale, float* scores) {
    constexpr int kMost = HB < 4 ? HB : 4, kFew = HB < 2 ? HB : 2;  // so that the queries fit the registers
    if constexpr (W > 0) {
        static_assert(W <= 128);
        score_heads<kMost, W / 16, true, HB, W>(stream, tile, queries, heads, scale, scores);
    } else {
        if (stream.width == 64) return score_heads<kMost, 4, true, HB, W>(stream, tile, queries, heads, scale, scores);
        if (stream.width == 128) return score_heads<kMost, 8, true, HB, W>(stream, tile, queries, heads, scale, scores);
        if (stream.width == 256) return score_heads<kFew, 16, true, HB, W>(stream, tile, queries, heads, scale, scores);
        score_heads<kFew, 16, false, HB, W>(stream, tile, queries, heads, scale, scores);
    }
}

// Turns the scores [kStrip, HB] of a strip, of which [begin, end) are to be seen, into weights. Every lane gets maximum and sum of head lane % HB.
template <int HB>
HR_DEVICE void weigh(float* scores, int begin, int end, float& largest, float& sum) {
    float x[HB];
    largest = bits_to_float(0xff800000U);
    HR_UNROLL
    for (int i = 0; i < HB; ++i) {
        const int position = (i * kWarp + lane()) / HB;
        const bool seen = position >= begin && position < end;
        x[i] = seen ? scores[i * kWarp + lane()] : bits_to_float(0xff800000U);
        largest = max_of(largest, x[i]);
    }
    HR_UNROLL
    for (int d = HB; d < kWarp; d *= 2) largest = max_of(largest, shuffle_xor(largest, d));
    HR_UNROLL
    for (int i = 0; i < HB; ++i) {
        x[i] = exp_value(x[i] - largest);  // 0 where nothing is to be seen, which changes no sum
        scores[i * kWarp + lane()] = x[i];
    }
    HR_UNROLL
    for (int h = HB / 2; h > 0; h /= 2) {
        HR_UNROLL
        for (int i = 0; i < h; ++i) x[i] = x[i] + x[i + h];
    }
    sum = x[0];
    HR_UNROLL
    for (int d = kWarp / 2; d >= HB; d /= 2) sum = sum + shuffle_xor(sum, d);
}

// ---- Values ----

// What a lane has of a strip's output: 4 neighbouring elements, and those kApart behind them (C times), of N of the HB heads.
template <int C, int N, int HB>
struct Share {
    static constexpr int kApart = 4 * kWarp;
    int head = 0, element = 0;
    bool some;  // else the lane's work is nobody's
    float o[C][N][4] = {};

    // lanes: to a row.
    HR_DEVICE explicit Share(int lanes) : some(lane() / lanes * N < HB) {
        if (!some) return;
        head = lane() / lanes * N;
        element = lane() % lanes * 4;
    }

    // Adds the tile's rows of the fours first … last - 1, ascending. weights: [rows, HB].
    HR_DEVICE void add(const TileShape& shape, const std::uint16_t* tile, int first, int last, const float* weights) {
        const int width = shape.width_v, group = shape.group(width);
        const std::uint16_t* from = tile + element + first * width;
        weights += head + first * 4 * HB;
#pragma unroll 1
        for (int j = first; j < last; ++j, from += width, weights += 4 * HB) {
            HR_UNROLL
            for (int t = 0; t < 4; ++t) {
                const Floats<N> weight = *reinterpret_cast<const Floats<N>*>(weights + t * HB);
                HR_UNROLL
                for (int c = 0; c < C; ++c) {
                    const Halves<4> row = *reinterpret_cast<const Halves<4>*>(from + t * group + c * kApart);
                    HR_UNROLL
                    for (int d = 0; d < 4; ++d) {
                        const float value = row.value(d);
                        HR_UNROLL
                        for (int n = 0; n < N; ++n) o[c][n][d] = fma(weight.x[n], value, o[c][n][d]);
                    }
                }
            }
        }
    }
    // out: [HB, width].
    HR_DEVICE void store(float* out, int width) const {
        HR_UNROLL
        for (int c = 0; c < C; ++c) {
            if (!some || element + c * kApart >= width) continue;
            HR_UNROLL
            for (int n = 0; n < N; ++n) {
                *reinterpret_cast<Floats<4>*>(out + (head + n) * width + element + c * kApart) = {{o[c][n][0], o[c][n][1], o[c][n][2], o[c][n][3]}};
            }
        }
    }
};

// The values of a strip's tiles, weighed, left in shared memory where its tiles were: [HB, width]. fresh: the strip's row that is the token's own; -1: none.
template <int C, int N, int HB, int W>
HR_DEVICE void add_values(Stream<W>& stream, const float* weights, int begin, int end, int fresh, int lanes) {
    Share<C, N, HB> share(lanes);
    const int width = stream.width_v;
#pragma unroll 1
    for (int number = 0; number < stream.tiles; ++number) {
        std::uint16_t* tile = stream.next();
        const int first = stream.first + number * stream.rows;
        const int from = begin > first ? begin - first : 0, to = end - first < stream.rows ? end - first : stream.rows;  // to be seen
        // Rows beside these in their fours weigh 0, but need not be numbers: they become -0, which changes no sum.
        if ((from | to) % 4 != 0) {
#pragma unroll 1
            for (int row = from / 4 * 4; row < (to + 3) / 4 * 4; ++row) {
                if (row >= from && row < to) continue;
                for (int i = lane() * 4; i < width; i += kWarp * 4) *reinterpret_cast<Halves<4>*>(tile + stream.place(row, width) + i) = {{0x80008000U, 0x80008000U}};
            }
            sync_warp();
        }
        if (fresh >= first && fresh < first + stream.rows) put_row(tile + stream.place(fresh - first, width), Fresh<W>::v(), width);
        share.add(stream, tile, from / 4, (to + 3) / 4, weights + first * HB);
        stream.release();
    }
    share.store(stream.memory(), width);
}

// ---- One token, some heads of a KV head, one or several pages ----

// Attention of the query heads head … head + heads - 1 of a token (all of one KV head) over its pages from … to - 1. whole: these are all
// that it sees, and the output is finished; else its part goes to the partials. kManySections: the pages may be of several sections. HB: `heads` or more.
// raw: the token's heads have still to be made ready; null: they are, and K and V in the pool. A block with a token's last page makes its K and V,
// the one that has the KV head's first query head stores them.
template <int HB, int W, bool kManySections>
HR_DEVICE void attend(const AttentionArguments& a, int token, int kv_head, int head, int heads, const Visible& visible, int from, int to, bool whole,
                      const HeadArguments* raw) {
    const int width = width_or<W>(a.pool.head_dim), width_v = width_or<W>(a.pool.head_dim_v);
    const int row = token * a.heads + head;
    const int warps = threads() / kWarp, at_once = warps / kStrips;                                     // pages
    float* queries = reinterpret_cast<float*>(dynamic_shared() + warps * a.tile_slots * kernels::kSlotBytes);  // [HB, width], and a row to make K in
    float* strips_largest = queries + (HB + 1) * width;                                                  // [warps, HB], and their sums
    float* strips_sum = strips_largest + warps * HB;
    float* scores = strips_sum + warps * HB + warp() * kStrip * HB;  // the warp's: [kStrip, HB], then weights
    // The thread's part of the output: 4 elements of one head.
    const int part = thread() / (width_v / 4), element = thread() % (width_v / 4) * 4;
    const int own = part < heads ? part : 0;
    Running<4> section, all;
    int started = 0;
#pragma unroll 1
    for (int first_page = from; first_page < to; first_page += at_once) {
        const WarpStrip at(a, token, visible, first_page, at_once, to);
        // With raw heads the pool's other rows are those of steps before: they are on their way while the kernel before is still at work.
        Stream<W> stream(a.pool, at.page, kv_head, at.strip, at.begin, at.end, a.tile_slots);
        if (raw == nullptr) {
            for (int i = thread(); i < heads * width; i += threads()) queries[i] = a.q[static_cast<std::int64_t>(row) * width + i];
        } else {
            float* made = queries + HB * width;
            const int done = first_page == from ? 0 : heads;
#pragma unroll 1
            for (int task = done + warp(), first = true; task < heads + (at.makes_own ? 2 : 0); task += warps, first = false) {
                const bool is_q = task < heads, is_k = task == heads;
                const HeadFactors<W> factors(*raw, token, is_q ? raw->q_norm : is_k ? raw->k_norm : nullptr, is_q || is_k);
                if (first) wait_for_previous();
                const std::int64_t kv_row = static_cast<std::int64_t>(token) * a.pool.kv_heads + kv_head;
                if (is_q) {
                    make_head<W>(*raw, factors, raw->q + static_cast<std::int64_t>(row + task) * width, queries + task * width);
                    continue;
                }
                std::uint16_t* kept = is_k ? Fresh<W>::k() : Fresh<W>::v();
                std::uint16_t* pool = is_k ? keys(a.pool, at.own_page, kv_head) + at.own_row * width : values(a.pool, at.own_page, kv_head) + at.own_row * width_v;
                const float* x = raw->v + kv_row * width_v;
                if (is_k) {
                    make_head<W>(*raw, factors, raw->k + kv_row * width, made);
                    x = made;
                }
                for (int i = lane(); i < (is_k ? width : width_v); i += kWarp) {
                    const std::uint16_t half = float_to_half(x[i]);
                    kept[i] = half;
                    if (stores_own(a, head)) pool[i] = half;
                }
            }
            wait_for_previous();
        }
        if (!whole && first_page == from) started = start_section(a, row);
        sync();
        float strip_largest = bits_to_float(0xff800000U), strip_sum = 0;
        if (at.begin < at.end) {
            const int fresh = raw != nullptr ? at.fresh : -1;
#pragma unroll 1
            for (int tile = 0; tile < stream.tiles; ++tile) {
                std::uint16_t* k = stream.next();
                const int first = stream.first + tile * stream.rows;
                if (fresh >= first && fresh < first + stream.rows) put_row(k + stream.place(fresh - first, width), Fresh<W>::k(), width);
                score<HB, W>(stream, k, queries, heads, a.scale, scores + first * HB);
                stream.release();
            }
            weigh<HB>(scores, at.begin, at.end, strip_largest, strip_sum);
            sync_warp();
            constexpr int kHalf = HB > 1 ? HB / 2 : 1;
            if constexpr (W == 128) {
                add_values<1, HB, HB>(stream, scores, at.begin, at.end, fresh, 32);
            } else if constexpr (W == 64) {
                add_values<1, kHalf, HB>(stream, scores, at.begin, at.end, fresh, 16);
            } else {
                if (width_v <= 128) add_values<1, HB, HB>(stream, scores, at.begin, at.end, fresh, width_v / 4);
                else add_values<2, kHalf, HB>(stream, scores, at.begin, at.end, fresh, 32);
            }
        }
        if (lane() < HB) {
            strips_largest[warp() * HB + lane()] = strip_largest;
            strips_sum[warp() * HB + lane()] = strip_sum;
        }
        sync();
        if (warp() < kStrips) {  // no thread beyond has a part of the output
            const int strip_bytes = a.tile_slots * kernels::kSlotBytes;
            const StripsLeft<HB> left{dynamic_shared() + (own * width_v + element) * 4, strip_bytes, strips_largest + own, strips_sum + own};
            add_pages<HB, kManySections>(left, visible, first_page, at_once, from, to, section, all);
        }
        if (first_page + at_once < to) sync();  // everyone is done with the pages before the next ones come
    }
    finish<W, W == 128 && HB % 2 == 0 && !kManySections>(a, row, part, heads, element, kManySections ? all : section, visible, from, whole, started,
                                                         warps * a.tile_slots * kernels::kSlotBytes);
}

// The same for any number of heads, HB at a time; of wider values half as many.
template <int HB, int W, bool kManySections>
HR_DEVICE void attend_all(const AttentionArguments& a, int token, int kv_head, int head, int heads, const Visible& visible, int from, int to,
                          bool whole, const HeadArguments* raw) {
    const int most = HB > 1 && width_or<W>(a.pool.head_dim_v) > 128 ? HB / 2 : HB;
#pragma unroll 1
    for (int h = 0; h < heads; h += most) {
        attend<HB, W, kManySections>(a, token, kv_head, head + h, heads - h < most ? heads - h : most, visible, from, to, whole, raw);
        if (h + most < heads) sync();
    }
}

}  // namespace headroom::device
