#pragma once

// Attention of one token over pages of the KV pool, in the order of docs/arithmetic.md.

#include "kernels/copies.h"
#include "kernels/heads.h"

namespace headroom::device {

// ---- Scores ----
//
// A warp takes H heads and P positions at once. A lane is an accumulator of the strided sum: it holds elements lane, lane + 32, … of the
// queries and reads those of the keys. That leaves H * P sums in every lane, which the levels of the butterfly (16, 8, 4, 2, 1) turn into one
// finished score to a lane, each level halving what a lane still holds: 31 exchanges for 32 scores instead of 160. Which half a lane gives
// away depends on its number; for heads that costs nothing, because a lane keeps its queries in an order of its own (head s ^ turn in place
// s). With fewer than 4 heads there are not 32 sums, and some levels between are plain.

template <int H>
inline constexpr int kPositions = H == 8 ? 4 : 8;

// One position's sums of H heads: the first levels. The lane keeps head `turn`.
template <int H>
HR_DEVICE float fold_heads(float (&sums)[H]) {
    HR_UNROLL
    for (int h = H / 2; h > 0; h /= 2) {
        HR_UNROLL
        for (int s = 0; s < h; ++s) sums[s] = sums[s] + shuffle_xor(sums[s + h], h * (kWarp / H));
    }
    HR_UNROLL
    for (int h = kWarp / H / 2; h >= kPositions<H>; h /= 2) sums[0] = sums[0] + shuffle_xor(sums[0], h);
    return sums[0];
}

// P positions: the other levels. The lane keeps position lane mod P.
template <int P>
HR_DEVICE float fold_positions(const float (&sums)[P]) {
    if constexpr (P == 1) {
        return sums[0];
    } else {
        constexpr int h = P / 2;
        const bool upper = (lane() & h) != 0;
        float half[h];
        HR_UNROLL
        for (int p = 0; p < h; ++p) {
            const float kept = upper ? sums[p + h] : sums[p];
            const float given = upper ? sums[p] : sums[p + h];
            half[p] = kept + shuffle_xor(given, h);
        }
        return fold_positions<h>(half);
    }
}

// The tiles of a page, in the order of their use: those of K, then those of V. One is used while the next ones arrive.
template <int W>
struct Stream {
    static constexpr int kStageHalves = kernels::kStageBytes / 2;

    const std::uint16_t* k;  // the KV head's rows of the page
    const std::uint16_t* v;
    int width, width_v;
    int rows;   // of a tile
    int first;  // row of the first tile
    int tiles;  // of K, and of V
    int stages; // 3, 5 or 8
    int at = 0, at_stage = 0;

    HR_DEVICE Stream(const KvPool& pool, int page, int kv_head, int begin, int end, int most_stages)
        : k(keys(pool, page, kv_head)), v(values(pool, page, kv_head)), width(width_or<W>(pool.head_dim)), width_v(width_or<W>(pool.head_dim_v)),
          stages(most_stages) {
        const int wider = width > width_v ? width : width_v;
        rows = wider <= 64 ? 128 : wider <= 128 ? 64 : 32;
        first = begin / rows * rows;
        tiles = (end - 1) / rows - begin / rows + 1;
        k += first * width;
        v += first * width_v;
#pragma unroll 1
        for (int i = 0; i < stages - 1; ++i) start(i, i);
    }
    HR_DEVICE static std::uint16_t* stage(int number) { return reinterpret_cast<std::uint16_t*>(dynamic_shared()) + number * kStageHalves; }
    HR_DEVICE void start(int tile, int to_stage) const {
        if (tile < 2 * tiles) {
            const int count = rows * (tile < tiles ? width : width_v);  // the rows lie one after another
            const std::uint16_t* from = (tile < tiles ? k + tile * count : v + (tile - tiles) * count) + thread() * 8;
            std::uint16_t* to = stage(to_stage) + thread() * 8;
            if (count == kStageHalves) {
                HR_UNROLL
                for (int i = 0; i < kStageHalves; i += kBlock * 8) start_copy(to + i, from + i, true);
            } else {
#pragma unroll 1
                for (int i = 0; i + thread() * 8 < count; i += kBlock * 8) start_copy(to + i, from + i, true);
            }
        }
        close_copies();
    }
    // The next tile, for the whole block; the one before may be overwritten.
    HR_DEVICE const std::uint16_t* next() {
        if (stages == 3) wait_for_copies<1>();
        else if (stages == 5) wait_for_copies<3>();
        else wait_for_copies<6>();
        sync();
        const int here = at_stage;
        start(at + stages - 1, here == 0 ? stages - 1 : here - 1);
        ++at;
        at_stage = here + 1 == stages ? 0 : here + 1;
        return stage(here);
    }
};

// The token's own K and V of a KV head, made by this block. The pool's rows of it are not read.
struct Fresh {
    bool some;  // else there is none anywhere

    // Its row of the page; -1: there is none in it. This and the halves are in shared memory: registers are short.
    static HR_DEVICE int& row() {
        __shared__ int number;
        return number;
    }
    static HR_DEVICE std::uint16_t* k() {
        __shared__ std::uint16_t own[kMostWidth];
        return own;
    }
    static HR_DEVICE std::uint16_t* v() {
        __shared__ std::uint16_t own[kMostWidth];
        return own;
    }
    // Puts it into the tile whose first row is `first`, where it belongs there. The whole block comes here.
    HR_DEVICE void put(const std::uint16_t* own, int width, const std::uint16_t* tile, int first, int rows) const {
        if (!some) return;
        const int at = row() - first;
        if (at < 0 || at >= rows) return;
        for (int i = thread(); i < width; i += threads()) const_cast<std::uint16_t*>(tile)[at * width + i] = own[i];
        sync();
    }
};

// scores[h][i] of `heads` heads and the positions i of [begin, end), from all K tiles of the stream. The queries are where the scores will be,
// [heads, kPage], copied before the first tile. A warp has H heads, and every warp has some. J: width / 32; or more, where kExact is false:
// the elements too many count as zero and change nothing.
template <int H, int J, bool kExact, int W>
HR_DEVICE void score_heads(Stream<W>& stream, const Fresh& fresh, int heads, int begin, int end, float scale, float* scores) {
    constexpr int P = kPositions<H>;
    const int sets = (heads + H - 1) / H, per_set = threads() / kWarp / sets;  // warps
    const int head = warp() % sets * H, group = warp() / sets;
    const int turn = lane() / (kWarp / H), width = kExact ? 32 * J : stream.width;
    const std::uint16_t* tile = stream.next();
    float queries[H][J];
    HR_UNROLL
    for (int s = 0; s < H; ++s) {
        const int h = head + (s ^ turn);
        HR_UNROLL
        for (int j = 0; j < J; ++j) queries[s][j] = h < heads && (kExact || 32 * j < width) ? scores[h * kPage + 32 * j + lane()] : 0.0F;
    }
    sync();
#pragma unroll 1
    for (int number = 0; number < stream.tiles; ++number) {
        if (number > 0) tile = stream.next();
        const int first = stream.first + number * stream.rows;
        fresh.put(Fresh::k(), stream.width, tile, first, stream.rows);
#pragma unroll 1
        for (int row = group < per_set ? group * P : stream.rows; row < stream.rows; row += per_set * P) {
            if (first + row + P <= begin || first + row >= end) continue;
            float folded[P];
            HR_UNROLL
            for (int p = 0; p < P; ++p) {
                const std::uint16_t* key = tile + (row + p) * width + lane();
                float x[J], sums[H];
                HR_UNROLL
                for (int j = 0; j < J; ++j) {
                    const std::uint16_t half = key[32 * j];  // perhaps behind the row's end, but still in shared memory
                    x[j] = half_to_float(kExact || 32 * j < width ? half : std::uint16_t{0});
                }
                HR_UNROLL
                for (int s = 0; s < H; ++s) {
                    sums[s] = 0;
                    HR_UNROLL
                    for (int j = 0; j < J; ++j) sums[s] = fma(queries[s][j], x[j], sums[s]);
                }
                folded[p] = fold_heads<H>(sums);
            }
            const float dot = fold_positions<P>(folded);
            const int position = first + row + lane() % P;
            const bool mine = lane() % (kWarp / H) < P && head + turn < heads;
            if (mine && position >= begin && position < end) scores[(head + turn) * kPage + position] = dot * scale;
        }
    }
}

template <int H, int W>
HR_DEVICE void score(Stream<W>& stream, const Fresh& fresh, int heads, int begin, int end, float scale, float* scores) {
    constexpr int kFew = H < 2 ? H : 2;  // so that the queries of wide heads fit the registers
    if constexpr (W > 0) {
        static_assert(W <= 128);
        score_heads<H, W / kWarp, true>(stream, fresh, heads, begin, end, scale, scores);
    } else {
        if (stream.width == 64) return score_heads<H, 2, true>(stream, fresh, heads, begin, end, scale, scores);
        if (stream.width == 128) return score_heads<H, 4, true>(stream, fresh, heads, begin, end, scale, scores);
        if (stream.width == 256) return score_heads<kFew, 8, true>(stream, fresh, heads, begin, end, scale, scores);
        score_heads<kFew, 8, false>(stream, fresh, heads, begin, end, scale, scores);
    }
}

// ---- Values ----

// What a thread has of a chunk's output: D neighbouring elements of N heads.
template <int D, int N>
struct Share {
    int head = 0;     // the first of N
    int element = 0;  // the first of D
    bool some = false;

    HR_DEVICE Share(int heads, int width) {
        head = thread() / (width / D) * N;
        element = thread() % (width / D) * D;
        some = head < heads;
    }
};

// o[n][d] += weights[n][i] * v[i][d] for the rows i of [begin, end), ascending. weights: [N, kPage], v: at the thread's first element. W: the
// width where it is known.
template <int D, int N, int W>
HR_DEVICE void add_values(const std::uint16_t* v, int some_width, int begin, int end, const float* weights, float (&o)[N][D]) {
    const int width = W > 0 ? W : some_width;
    const auto add = [&](int i, const float (&weight)[N]) {
        const Halves<D> row = *reinterpret_cast<const Halves<D>*>(v + i * width);
        HR_UNROLL
        for (int d = 0; d < D; ++d) {
            const float value = row.value(d);
            HR_UNROLL
            for (int n = 0; n < N; ++n) o[n][d] = fma(weight[n], value, o[n][d]);
        }
    };
    const auto add_one = [&](int i) {
        float weight[N];
        HR_UNROLL
        for (int n = 0; n < N; ++n) weight[n] = weights[n * kPage + i];
        add(i, weight);
    };
    int i = begin;
#pragma unroll 1
    for (; i < end && i % 4 != 0; ++i) add_one(i);
#pragma unroll 4
    for (; i + 4 <= end; i += 4) {
        Floats<4> four[N];
        HR_UNROLL
        for (int n = 0; n < N; ++n) four[n] = *reinterpret_cast<const Floats<4>*>(weights + n * kPage + i);
        HR_UNROLL
        for (int r = 0; r < 4; ++r) {
            float weight[N];
            HR_UNROLL
            for (int n = 0; n < N; ++n) weight[n] = four[n].x[r];
            add(i + r, weight);
        }
    }
#pragma unroll 1
    for (; i < end; ++i) add_one(i);
}

// ---- One token, some heads of a KV head, one or several pages ----

// What a block keeps for each of its heads.
struct State {
    float largest[kMostHeads];  // over the pages so far
    float sum[kMostHeads];
    float old_factor[kMostHeads];  // for what was there before the last page
    float new_factor[kMostHeads];  // for the last page
};

// Turns the scores of a page into weights and takes the page into the state. A warp for each head.
HR_DEVICE void weigh(float* scores, int heads, int begin, int end, bool first_page, State& state) {
#pragma unroll 1
    for (int head = warp(); head < heads; head += threads() / kWarp) {
        float x[kPage / kWarp];
        float largest = bits_to_float(0xff800000U);
        HR_UNROLL
        for (int r = 0; r < kPage / kWarp; ++r) {
            const int i = r * kWarp + lane();
            x[r] = i >= begin && i < end ? scores[head * kPage + i] : bits_to_float(0xff800000U);
            largest = max_of(largest, x[r]);
        }
        largest = max_32(largest);
        float sum = 0;
        HR_UNROLL
        for (int r = 0; r < kPage / kWarp; ++r) {
            x[r] = exp_value(x[r] - largest);  // 0 where nothing is to be seen, which changes no sum
            sum = sum + x[r];
            scores[head * kPage + r * kWarp + lane()] = x[r];
        }
        sum = fold_32(sum);
        if (lane() != 0) continue;
        if (first_page) {
            state.largest[head] = largest;
            state.sum[head] = sum;
        } else {
            const float before = state.largest[head];
            const float now = max_of(before, largest);
            state.old_factor[head] = exp_value(before - now);
            state.new_factor[head] = exp_value(largest - now);
            state.sum[head] = fma(state.sum[head], state.old_factor[head], sum * state.new_factor[head]);
            state.largest[head] = now;
        }
    }
}

// The scratch of attention_rows: the outputs of the chunks of each row (token and head), then their largest scores and sums.
struct Partials {
    float* begin;
    float* end_of_outputs;
    std::int64_t chunks;
    int width;

    HR_DEVICE Partials(const AttentionArguments& a)
        : begin(a.partials), end_of_outputs(begin + static_cast<std::int64_t>(a.tokens) * a.heads * a.max_chunks * a.pool.head_dim_v),
          chunks(a.max_chunks), width(a.pool.head_dim_v) {}
    HR_DEVICE float* output(std::int64_t row, int chunk) const { return begin + (row * chunks + chunk) * width; }
    HR_DEVICE float* largest_and_sum(std::int64_t row, int chunk) const { return end_of_outputs + (row * chunks + chunk) * 2; }
};

// Combines the chunks of `heads` neighbouring rows, ascending, and writes their outputs. The whole block comes here; shared memory for tiles is
// free again.
template <int W>
HR_DEVICE void combine_chunks(const AttentionArguments& a, std::int64_t row, int heads, int chunks) {
    constexpr int kAtOnce = 128;  // chunks whose factors are in shared memory together
    constexpr int kAhead = 8;     // chunks whose outputs are on the way
    struct Factors {
        float of_old, of_new, sum;
    };
    static_assert(kMostHeads * kAtOnce * sizeof(Factors) <= 3 * kernels::kStageBytes);
    auto* factors = reinterpret_cast<Factors*>(dynamic_shared());  // [heads, kAtOnce]
    const Partials partials(a);
    const int width = width_or<W>(partials.width), fours = width / 4;
    for (int base = 0; base < heads * fours; base += kBlock) {
        const bool some = base + thread() < heads * fours;
        const int head = some ? (base + thread()) / fours : 0, element = some ? (base + thread()) % fours * 4 : 0;
        const float* outputs = partials.output(row + head, 0) + element;
        Floats<4> out = {{-0.0F, -0.0F, -0.0F, -0.0F}};  // the first factor is 0, and 0 * -0 + x is x for every x
        float sum = 0;
#pragma unroll 1
        for (int first = 0; first < chunks; first += kAtOnce) {
            sync();
#pragma unroll 1
            for (int h = warp(); h < heads; h += kBlock / kWarp) {
                float largest = bits_to_float(0xff800000U);  // over the chunks so far
#pragma unroll 1
                for (int at = 0; at < chunks && at < first + kAtOnce; at += kWarp) {
                    const bool there = at + lane() < chunks;
                    const float* mine = partials.largest_and_sum(row + h, there ? at + lane() : at);
                    const float m = mine[0], l = mine[1];
                    // The largest before and with each chunk: a maximum is exact in any order.
                    float with = max_of(largest, there ? m : largest);
                    for (int d = 1; d < kWarp; d *= 2) with = max_of(with, shuffle(with, lane() >= d ? lane() - d : lane()));
                    const float earlier = shuffle(with, lane() > 0 ? lane() - 1 : 0);
                    const float without = lane() > 0 ? earlier : largest;
                    const float of_new = exp_value(m - with);
                    if (at >= first) factors[h * kAtOnce + at - first + lane()] = {exp_value(without - with), of_new, l * of_new};
                    largest = shuffle(with, kWarp - 1);
                }
            }
            sync();
            const Factors* own = factors + head * kAtOnce;
            const int count = chunks - first < kAtOnce ? chunks - first : kAtOnce;
#pragma unroll 1
            for (int at = 0; at < count; at += kAhead) {
                Floats<4> o[kAhead];
                HR_UNROLL
                for (int i = 0; i < kAhead; ++i) o[i] = *reinterpret_cast<const Floats<4>*>(outputs + static_cast<std::int64_t>(at + i < count ? first + at + i : first) * width);
                HR_UNROLL
                for (int i = 0; i < kAhead; ++i) {
                    if (at + i < count) {
                        const Factors f = own[at + i];
                        HR_UNROLL
                        for (int d = 0; d < 4; ++d) out.x[d] = fma(out.x[d], f.of_old, o[i].x[d] * f.of_new);
                        sum = fma(sum, f.of_old, f.sum);
                    }
                }
            }
        }
        HR_UNROLL
        for (int d = 0; d < 4; ++d) out.x[d] = out.x[d] / sum;
        if (some) *reinterpret_cast<Floats<4>*>(a.out + (row + head) * width + element) = out;
    }
}

// Attention of the query heads head … head + heads - 1 of a token (all of one KV head) over its pages from … to - 1. whole: these are all
// that it sees, and the output is finished; else there is one page, and its part of the output goes to the partials. HB: `heads` or more.
// raw: the token's heads have still to be made ready; null: they are, and K and V in the pool. A block of a token's last page makes its K and V,
// the one that has the KV head's first query head stores them.
template <int HB, int W>
HR_DEVICE void attend(const AttentionArguments& a, int token, int kv_head, int head, int heads, const Visible& visible, int from, int to, bool whole,
                      const HeadArguments* raw) {
    constexpr int D = 1, N = HB > 1 ? HB / 2 : 1;  // no thread is without outputs where V has 128 elements
    __shared__ State state;
    float* scores = reinterpret_cast<float*>(dynamic_shared() + a.stages * kernels::kStageBytes);  // [HB, kPage], then weights
    const int width = width_or<W>(a.pool.head_dim), width_v = width_or<W>(a.pool.head_dim_v);
    const int row = token * a.heads + head;
    const Share<D, N> share(heads, width_v);
    float out[N][D] = {};
    for (int number = from; number < to; ++number) {
        const int begin = visible.begin(number), end = visible.end(number);
        const int page = page_of(a.places, token, number);
        const Fresh fresh = {raw != nullptr};
        if (raw == nullptr) {
            for (int i = thread() * 4; i < heads * width; i += kBlock * 4) {
                start_copy(scores + i / width * kPage + i % width, a.q + static_cast<std::int64_t>(row) * width + i, true);
            }
            close_copies();
        }
        // With raw heads the pool's other rows are those of steps before: they are on their way while the kernel before is still at work.
        Stream<W> stream(a.pool, page, kv_head, begin, end, a.stages);
        if (raw != nullptr) {
            __shared__ float made[kMostWidth];
            const bool own = number == visible.position / kPage;
            const int slot = visible.position % kPage;
            if (thread() == 0) Fresh::row() = own ? slot : -1;
#pragma unroll 1
            for (int task = warp(), first = true; task < heads + (own ? 2 : 0); task += kBlock / kWarp, first = false) {
                const bool is_q = task < heads, is_k = task == heads;
                const HeadFactors<W> factors(*raw, token, is_q ? raw->q_norm : is_k ? raw->k_norm : nullptr, is_q || is_k);
                if (first) wait_for_previous();
                const std::int64_t kv_row = static_cast<std::int64_t>(token) * a.pool.kv_heads + kv_head;
                if (is_q) {
                    make_head<W>(*raw, factors, raw->q + static_cast<std::int64_t>(row + task) * width, scores + task * kPage);
                    continue;
                }
                std::uint16_t* kept = is_k ? Fresh::k() : Fresh::v();
                std::uint16_t* pool = is_k ? keys(a.pool, page, kv_head) + slot * width : values(a.pool, page, kv_head) + slot * width_v;
                const float* x = raw->v + kv_row * width_v;
                if (is_k) {
                    make_head<W>(*raw, factors, raw->k + kv_row * width, made);
                    x = made;
                }
                for (int i = lane(); i < (is_k ? width : width_v); i += kWarp) {
                    const std::uint16_t half = float_to_half(x[i]);
                    kept[i] = half;
                    if (head % (a.heads / a.pool.kv_heads) == 0) pool[i] = half;
                }
            }
            wait_for_previous();
            sync();
        }
        score<HB, W>(stream, fresh, heads, begin, end, a.scale, scores);
        float o[N][D] = {};
#pragma unroll 1
        for (int tile = 0; tile < stream.tiles; ++tile) {
            const std::uint16_t* v = stream.next();
            if (tile == 0) {
                weigh(scores, heads, begin, end, number == from, state);
                sync();
            }
            const int first = stream.first + tile * stream.rows;
            fresh.put(Fresh::v(), width_v, v, first, stream.rows);
            const int from_row = begin > first ? begin - first : 0, to_row = end - first < stream.rows ? end - first : stream.rows;
            const float* weights = scores + share.head * kPage + first;
            if (!share.some) continue;
            if (W > 0) add_values<D, N, W>(v + share.element, width_v, from_row, to_row, weights, o);
            else if (width_v == 128) add_values<D, N, 128>(v + share.element, width_v, from_row, to_row, weights, o);
            else add_values<D, N, 0>(v + share.element, width_v, from_row, to_row, weights, o);
        }
        if (share.some) {
            HR_UNROLL
            for (int n = 0; n < N; ++n) {
                const float old_factor = state.old_factor[share.head + n], new_factor = state.new_factor[share.head + n];
                HR_UNROLL
                for (int d = 0; d < D; ++d) out[n][d] = number == from ? o[n][d] : fma(out[n][d], old_factor, o[n][d] * new_factor);
            }
        }
        if (number + 1 < to) sync();  // everyone is done with the page before the next one comes
    }
    const Partials partials(a);
    const int chunk = from - visible.first_page();
    HR_UNROLL
    for (int n = 0; n < N; ++n) {
        const int h = share.head + n;
        if (!share.some || h >= heads) continue;
        Floats<D> result;
        HR_UNROLL
        for (int d = 0; d < D; ++d) result.x[d] = whole ? out[n][d] / state.sum[h] : out[n][d];
        float* to_row = whole ? a.out + static_cast<std::int64_t>(row + h) * width_v : partials.output(row + h, chunk);
        *reinterpret_cast<Floats<D>*>(to_row + share.element) = result;
        if (!whole && share.element == 0) {
            partials.largest_and_sum(row + h, chunk)[0] = state.largest[h];
            partials.largest_and_sum(row + h, chunk)[1] = state.sum[h];
        }
    }
    if (whole) return;
    // The last block of these rows to come here finishes them.
    __shared__ int last;
    const int chunks = visible.pages();
    sync();
    if (thread() == 0) {
        fence();  // for the whole block: the barrier comes before
        last = atomic_add(a.tickets + row, 1) == chunks - 1 ? 1 : 0;
    }
    sync();
    if (last == 0) return;
    fence();
    combine_chunks<W>(a, row, heads, chunks);
    if (thread() == 0) a.tickets[row] = 0;
}

// The same for any number of heads, HB at a time; of wider values half as many.
template <int HB, int W>
HR_DEVICE void attend_all(const AttentionArguments& a, int token, int kv_head, int head, int heads, const Visible& visible, int from, int to,
                          bool whole, const HeadArguments* raw) {
    const int most = HB > 1 && width_or<W>(a.pool.head_dim_v) > 128 ? HB / 2 : HB;
#pragma unroll 1
    for (int h = 0; h < heads; h += most) {
        attend<HB, W>(a, token, kv_head, head + h, heads - h < most ? heads - h : most, visible, from, to, whole, raw);
        if (h + most < heads) sync();
    }
}

}  // namespace headroom::device
