// Heads of q, k and v made ready, and attention over the paged KV pool.

#include "kernels/arithmetic.h"
#include "kernels/arguments.h"
#include "kernels/half_tiles.h"

namespace headroom::device {
namespace {

using kernels::AttentionArguments;
using kernels::KvPool;
using kernels::Places;

inline constexpr int kPage = 256;         // positions to a page: also the chunk of the arithmetic
inline constexpr int kMostWidth = 256;    // of a head
inline constexpr int kMostHeads = 8;      // of them that are worked on together
inline constexpr int kBlock = 256;        // threads of an attention block

HR_DEVICE int page_of(const Places& places, int token, int number) {
    return places.pages[static_cast<std::int64_t>(places.tables[token]) * places.pages_stride + number];
}
// The 256 rows of one KV head in a page.
HR_DEVICE std::uint16_t* keys(const KvPool& pool, int page, int kv_head) {
    std::uint8_t* begin = pool.base + static_cast<std::uint64_t>(page) * pool.page_bytes + pool.k_offset;
    return reinterpret_cast<std::uint16_t*>(begin) + kv_head * kPage * pool.head_dim;
}
HR_DEVICE std::uint16_t* values(const KvPool& pool, int page, int kv_head) {
    std::uint8_t* begin = pool.base + static_cast<std::uint64_t>(page) * pool.page_bytes + pool.v_offset;
    return reinterpret_cast<std::uint16_t*>(begin) + kv_head * kPage * pool.head_dim_v;
}

HR_DEVICE float max_of(float a, float b) { return __builtin_fmaxf(a, b); }

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
        : k(keys(pool, page, kv_head)), v(values(pool, page, kv_head)), width(pool.head_dim), width_v(pool.head_dim_v), stages(most_stages) {
        const int wider = width > width_v ? width : width_v;
        rows = wider <= 64 ? 128 : wider <= 128 ? 64 : 32;
        first = begin / rows * rows;
        tiles = (end - 1) / rows - begin / rows + 1;
        k += first * width;
        v += first * width_v;
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

// scores[h][i] of `heads` heads and the positions i of [begin, end), from all K tiles of the stream. The queries are where the scores will be,
// [heads, kPage], copied before the first tile. A warp has H heads,
// and every warp has some. J: width / 32; or more, where kExact is false: the elements too many count as zero and change nothing.
template <int H, int J, bool kExact>
HR_DEVICE void score(Stream& stream, int heads, int begin, int end, float scale, float* scores) {
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
    for (int number = 0; number < stream.tiles; ++number) {
        if (number > 0) tile = stream.next();
        const int first = stream.first + number * stream.rows;
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

template <int H>
HR_DEVICE void score(Stream& stream, int heads, int begin, int end, float scale, float* scores) {
    constexpr int kFew = H < 2 ? H : 2;  // so that the queries of wide heads fit the registers
    if (stream.width == 64) return score<H, 2, true>(stream, heads, begin, end, scale, scores);
    if (stream.width == 128) return score<H, 4, true>(stream, heads, begin, end, scale, scores);
    if (stream.width == 256) return score<kFew, 8, true>(stream, heads, begin, end, scale, scores);
    score<kFew, 8, false>(stream, heads, begin, end, scale, scores);
}

// ---- Values ----

// N neighbouring halves, kept as they are loaded.
template <int N>
struct alignas(2 * N) Halves {
    std::uint32_t x[N / 2];
    HR_DEVICE float value(int i) const { return i % 2 == 0 ? low_half_to_float(x[i / 2]) : high_half_to_float(x[i / 2]); }
};
template <>
struct Halves<1> {
    std::uint16_t x;
    HR_DEVICE float value(int) const { return half_to_float(x); }
};
template <int N>
struct alignas(4 * N) Floats {
    float x[N];
};

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

// The pages that a token sees, and in each the visible positions.
struct Visible {
    int first, position;

    HR_DEVICE Visible(int at, int window) : first(window > 0 && at >= window ? at - window + 1 : 0), position(at) {}
    HR_DEVICE int first_page() const { return first / kPage; }
    HR_DEVICE int pages() const { return position / kPage + 1 - first_page(); }
    HR_DEVICE int begin(int page) const { return page == first_page() ? first % kPage : 0; }
    HR_DEVICE int end(int page) const { return page == position / kPage ? position % kPage + 1 : kPage; }
};

// Attention of the query heads head … head + heads - 1 of a token (all of one KV head) over its pages from … to - 1. whole: these are all
// that it sees, and the output is finished; else there is one page, and its part of the output goes to the partials. HB: `heads` or more.
template <int HB>
HR_DEVICE void attend(const AttentionArguments& a, int token, int kv_head, int head, int heads, const Visible& visible, int from, int to, bool whole) {
    constexpr int D = HB == 1 ? 1 : HB <= 4 ? 2 : 4, N = HB / D;
    __shared__ State state;
    float* scores = reinterpret_cast<float*>(dynamic_shared() + a.stages * kernels::kStageBytes);  // [HB, kPage], then weights
    const int width = a.pool.head_dim, width_v = a.pool.head_dim_v;
    const std::int64_t row = static_cast<std::int64_t>(token) * a.heads + head;
    const Share<D, N> share(heads, width_v);
    float out[N][D] = {};
    for (int number = from; number < to; ++number) {
        const int begin = visible.begin(number), end = visible.end(number);
        for (int i = thread() * 4; i < heads * width; i += kBlock * 4) start_copy(scores + i / width * kPage + i % width, a.q + row * width + i, true);
        close_copies();
        Stream stream(a.pool, page_of(a.places, token, number), kv_head, begin, end, a.stages);
        score<HB>(stream, heads, begin, end, a.scale, scores);
        float o[N][D] = {};
        for (int tile = 0; tile < stream.tiles; ++tile) {
            const std::uint16_t* v = stream.next();
            if (tile == 0) {
                weigh(scores, heads, begin, end, number == from, state);
                sync();
            }
            const int first = stream.first + tile * stream.rows;
            const int from_row = begin > first ? begin - first : 0, to_row = end - first < stream.rows ? end - first : stream.rows;
            const float* weights = scores + share.head * kPage + first;
            if (!share.some) continue;
            if (width_v == 128) add_values<D, N, 128>(v + share.element, width_v, from_row, to_row, weights, o);
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
    if (!share.some) return;
    const Partials partials(a);
    const int chunk = from - visible.first_page();
    HR_UNROLL
    for (int n = 0; n < N; ++n) {
        const int h = share.head + n;
        if (h >= heads) continue;
        Floats<D> result;
        HR_UNROLL
        for (int d = 0; d < D; ++d) result.x[d] = whole ? out[n][d] / state.sum[h] : out[n][d];
        float* to_row = whole ? a.out + (row + h) * width_v : partials.output(row + h, chunk);
        *reinterpret_cast<Floats<D>*>(to_row + share.element) = result;
        if (!whole && share.element == 0) {
            partials.largest_and_sum(row + h, chunk)[0] = state.largest[h];
            partials.largest_and_sum(row + h, chunk)[1] = state.sum[h];
        }
    }
}

// The same for any number of heads, HB at a time.
template <int HB>
HR_DEVICE void attend_all(const AttentionArguments& a, int token, int kv_head, int head, int heads, const Visible& visible, int from, int to,
                          bool whole) {
    for (int h = 0; h < heads; h += HB) {
        attend<HB>(a, token, kv_head, head + h, heads - h < HB ? heads - h : HB, visible, from, to, whole);
        if (h + HB < heads) sync();
    }
}

}  // namespace

// A warp for each head of q, then of k, then of v.
// Norm weights, angles and the page are there before the products are: they are read while the kernel before still works.
HR_EARLY_KERNEL(head_rows, HeadArguments, 256) {
    __shared__ float normed[256 / kWarp][kMostWidth];
    const int token = block_x();
    const int head = block_y() * (threads() / kWarp) + warp();
    const KvPool& pool = a.pool;
    const int position = a.places.positions[token];
    const bool is_q = head < a.heads, is_k = !is_q && head < a.heads + pool.kv_heads;
    const int kv_head = is_q ? 0 : (head - a.heads) % pool.kv_heads;
    const int width = pool.head_dim;
    float* q = a.q + (static_cast<std::int64_t>(token) * a.heads + head) * width;
    const int page = page_of(a.places, token, position / kPage);
    constexpr int kEach = kMostWidth / kWarp;  // elements of a head to a lane
    const float* weight = is_q ? a.q_norm : is_k ? a.k_norm : nullptr;
    float weights[kEach], cosines[kEach], sines[kEach];
    const auto pair_of = [&](int i) { return a.layout == 0 ? i / 2 : i >= a.half ? i - a.half : i; };
    HR_UNROLL
    for (int j = 0; j < kEach; ++j) {
        const int i = j * kWarp + lane();
        weights[j] = weight != nullptr && i < width ? weight[i] : 1.0F;
        const bool turns = (is_q || is_k) && i < 2 * a.half;
        cosines[j] = turns ? a.cosine[static_cast<std::int64_t>(token) * a.half + pair_of(i)] : 0.0F;
        sines[j] = turns ? a.sine[static_cast<std::int64_t>(token) * a.half + pair_of(i)] : 0.0F;
    }
    wait_for_previous();
    if (is_q || is_k) {
        const float* from = is_q ? q : a.k + (static_cast<std::int64_t>(token) * pool.kv_heads + kv_head) * width;
        float x[kEach], s[kEach];
        HR_UNROLL
        for (int j = 0; j < kEach; ++j) {
            x[j] = j * kWarp < width ? from[j * kWarp + lane()] : 0.0F;
            s[j] = fma(x[j], x[j], 0.0F);
        }
        // 256 accumulators, each with at most one square: their butterfly.
        HR_UNROLL
        for (int h = 4; h > 0; h /= 2) {
            HR_UNROLL
            for (int j = 0; j < h; ++j) s[j] = s[j] + s[j + h];
        }
        const float inverse = 1.0F / sqrt(fold_32(s[0]) / static_cast<float>(width) + a.epsilon);
        HR_UNROLL
        for (int j = 0; j < kEach; ++j) {
            if (j * kWarp >= width) continue;
            const int i = j * kWarp + lane();
            normed[warp()][i] = weight != nullptr ? (x[j] * inverse) * weights[j] : x[j];
        }
    }
    sync();
    if (head >= a.heads + 2 * pool.kv_heads) return;
    const int slot = position % kPage;
    if (!is_q && !is_k) {
        const float* v = a.v + (static_cast<std::int64_t>(token) * pool.kv_heads + kv_head) * pool.head_dim_v;
        std::uint16_t* to = values(pool, page, kv_head) + slot * pool.head_dim_v;
        for (int i = lane(); i < pool.head_dim_v; i += kWarp) to[i] = float_to_half(v[i]);
        return;
    }
    const float* x = normed[warp()];
    std::uint16_t* to = keys(pool, page, kv_head) + slot * width;
    HR_UNROLL
    for (int j = 0; j < kEach; ++j) {
        const int i = j * kWarp + lane();
        if (i >= width) continue;
        float value = x[i];
        if (i < 2 * a.half) {
            const bool second = a.layout == 0 ? i % 2 != 0 : i >= a.half;
            const int distance = a.layout == 0 ? 1 : a.half;
            value = second ? fma(x[i - distance], sines[j], value * cosines[j]) : fma(value, cosines[j], -(x[i + distance] * sines[j]));
        }
        if (is_q) q[i] = value;
        else to[i] = float_to_half(value);
    }
}

// Blocks: KV head and part of its query heads, chunk, token.
template <int HB>
HR_DEVICE void attention_rows(const AttentionArguments& a) {
    const int parts = grid_x() / a.pool.kv_heads;
    const int kv_head = block_x() / parts, part = block_x() % parts, token = block_z();
    const int group = a.heads / a.pool.kv_heads, heads = group / parts;
    const Visible visible(a.places.positions[token], a.window);
    const int chunks = visible.pages(), number = visible.first_page() + block_y();
    if (block_y() >= chunks) return;
    attend_all<HB>(a, token, kv_head, kv_head * group + part * heads, heads, visible, number, number + 1, chunks == 1);
}

// By the number of query heads that a block works on at once: each is compiled for its own needs.
inline constexpr int kBlocks = 2;  // to a multiprocessor: one computes while the other waits
HR_KERNEL_OF(attention_rows_1, AttentionArguments, kBlock, kBlocks) { attention_rows<1>(a); }
HR_KERNEL_OF(attention_rows_2, AttentionArguments, kBlock, kBlocks) { attention_rows<2>(a); }
HR_KERNEL_OF(attention_rows_4, AttentionArguments, kBlock, kBlocks) { attention_rows<4>(a); }
HR_KERNEL_OF(attention_rows_8, AttentionArguments, kBlock, kBlocks) { attention_rows<8>(a); }

// Blocks: head, token. A thread for each element of the head.
HR_KERNEL(attention_combine, AttentionArguments, kMostWidth) {
    constexpr int kAtOnce = 128;  // chunks whose factors are in shared memory together
    constexpr int kAhead = 16;    // chunks whose outputs are on the way
    struct Factors {
        float of_old, of_new, sum;
    };
    __shared__ Factors factors[kAtOnce];
    const int head = block_x(), token = block_y(), width = a.pool.head_dim_v;
    const int chunks = Visible(a.places.positions[token], a.window).pages();
    if (chunks == 1) return;  // attention_rows has finished it
    const Partials partials(a);
    const std::int64_t row = static_cast<std::int64_t>(token) * a.heads + head;
    const float* outputs = partials.output(row, 0) + thread();  // of the next chunks to be loaded
    float ahead[kAhead];
    const auto load = [&](int count) {
        HR_UNROLL
        for (int i = 0; i < kAhead; ++i) {
            if (i < count) ahead[i] = outputs[i * width];
        }
        outputs += kAhead * width;
    };
    load(chunks);
    float largest = bits_to_float(0xff800000U);  // in warp 0: over the chunks so far
    float out = -0.0F, sum = 0;                  // the first factor is 0, and 0 * -0 + x is x for every x
    for (int first = 0; first < chunks; first += kAtOnce) {
        if (first > 0) sync();
        for (int at = first; warp() == 0 && at < chunks && at < first + kAtOnce; at += kWarp) {
            const bool some = at + lane() < chunks;
            const float* mine = partials.largest_and_sum(row, some ? at + lane() : at);
            const float m = mine[0], l = mine[1];
            // The largest before and with each chunk: a maximum is exact in any order.
            float with = max_of(largest, some ? m : largest);
            for (int h = 1; h < kWarp; h *= 2) with = max_of(with, shuffle(with, lane() >= h ? lane() - h : lane()));
            const float earlier = shuffle(with, lane() > 0 ? lane() - 1 : 0);
            const float without = lane() > 0 ? earlier : largest;
            const float of_new = exp_value(m - with);
            factors[at - first + lane()] = {exp_value(without - with), of_new, l * of_new};
            largest = shuffle(with, kWarp - 1);
        }
        sync();
        for (int at = first; at < chunks && at < first + kAtOnce; at += kAhead) {
            float o[kAhead];
            HR_UNROLL
            for (int i = 0; i < kAhead; ++i) o[i] = ahead[i];
            load(chunks - at - kAhead);
            HR_UNROLL
            for (int i = 0; i < kAhead; ++i) {
                if (at + i < chunks) {
                    const Factors f = factors[at - first + i];
                    out = fma(out, f.of_old, o[i] * f.of_new);
                    sum = fma(sum, f.of_old, f.sum);
                }
            }
        }
    }
    a.out[row * width + thread()] = out / sum;
}

// Blocks: neighbouring tokens, KV head. In the order of attention_rows, page by page: where there are no matrix units for halves.
HR_KERNEL(attention_prefill, AttentionArguments, kBlock) {
    const int group = a.heads / a.pool.kv_heads;
    const int tokens = kernels::kPrefillRows / group;
    for (int i = 0; i < tokens; ++i) {
        const int token = block_x() * tokens + i;
        if (token >= a.tokens) return;
        const Visible visible(a.places.positions[token], a.window);
        const int from = visible.first_page();
        attend_all<4>(a, token, block_y(), block_y() * group, group, visible, from, from + visible.pages(), true);
        sync();
    }
}

// The same on matrix units, for heads of one width: a block has 128 rows (tokens and the query heads of its KV head), a warp 16 of them; all
// walk over the keys in tiles, two of which are in shared memory: one that is used and one that arrives. The softmax is kept up to date from
// tile to tile. Queries and weights are rounded to halves, sums are floats.
#if defined(HR_HALF_TILES)
template <int W>
HR_DEVICE void prefill(const AttentionArguments& a) {
    constexpr int kTile = kernels::kPrefillKeys<W>;           // keys
    constexpr int kStride = W + 8;                            // halves from row to row in shared memory: no two of 8 rows in the same banks
    constexpr int kChunks = W / 8;                            // of 16 bytes in a row
    constexpr int kFragments = W > 128 ? 2 : 3;               // tiles of the second factor in registers
    constexpr float kLog2E = 1.44269504F;
    std::uint16_t* tiles = reinterpret_cast<std::uint16_t*>(dynamic_shared());  // [2][K, V][kTile][kStride]
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
    const auto start_tile = [&](int key, int page, int stage) {
        const std::uint16_t* k = keys(a.pool, page, kv_head) + key % kPage * W;
        const std::uint16_t* v = values(a.pool, page, kv_head) + key % kPage * W;
        std::uint16_t* to = tiles + stage * 2 * kTile * kStride;
        HR_UNROLL
        for (int i = 0; i < kTile * kChunks / kBlock; ++i) {
            const int chunk = thread() + i * kBlock;
            const int r = chunk / kChunks, c = chunk % kChunks;
            const bool there = key + r <= highest;  // what lies behind need not be a number
            start_copy(to + r * kStride + c * 8, k + r * W + c * 8, there);
            start_copy(to + (kTile + r) * kStride + c * 8, v + r * W + c * 8, there);
        }
        close_copies();
    };
    const auto page_for = [&](int key) { return key <= highest ? page_of(a.places, first_token, key / kPage) : 0; };

    float out[W / 8][4] = {};
    float largest[2] = {-infinity, -infinity}, sum[2] = {0, 0};  // the sum: of the lane's own columns
    const float factor = a.scale * kLog2E;
    start_tile(begin, page_for(begin), 0);
    int next_page = page_for(begin + kTile);
    int stage = 0;
    for (int key = begin; key <= highest; key += kTile, stage ^= 1) {
        wait_for_copies<0>();
        sync();
        if (key + kTile <= highest) {
            start_tile(key + kTile, next_page, stage ^ 1);
            next_page = page_for(key + 2 * kTile);
        }
        const std::uint16_t* k = tiles + stage * 2 * kTile * kStride;
        const std::uint16_t* v = k + kTile * kStride;

        // Tiles of K are loaded a few products ahead of their use, those of V below too.
        float s[kTile / 8][4] = {};
        {
            constexpr int kPairs = kTile / 16, kAll = W / 16 * kPairs;
            const std::uint16_t* mine = k + (lane() / 16 * 8 + lane() % 8) * kStride + lane() / 8 % 2 * 8;
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
            const std::uint16_t* mine = v + lane() % 16 * kStride + lane() / 16 * 8;
            std::uint32_t b[kFragments][4], p[4];
            const auto load = [&](int i) { load_tiles_turned(mine + i / kPairs * 16 * kStride + i % kPairs * 16, b[i % kFragments]); };
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
HR_KERNEL(attention_prefill_64, AttentionArguments, kBlock) { prefill<64>(a); }
HR_KERNEL(attention_prefill_96, AttentionArguments, kBlock) { prefill<96>(a); }
HR_KERNEL(attention_prefill_128, AttentionArguments, kBlock) { prefill<128>(a); }
HR_KERNEL(attention_prefill_256, AttentionArguments, kBlock) { prefill<256>(a); }
#endif

}  // namespace headroom::device
