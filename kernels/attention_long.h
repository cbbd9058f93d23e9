#pragma once

// Attention of one token over many pages, where a multiprocessor has room for whole strips of K and V: the same order, another division of the work.
// A block has some neighbouring pages of a KV head and all of its query heads, and a multiprocessor for itself; a warp has the same strip of each page, of two
// pages one after the other from their keys to their weights, then of both the values at once, and three tiles (the K or the V of a strip) in its hands or on their way. What is left of a section, or of a page where blocks divide
// a section, is handed to the blocks that were the last to begin: they finish the output together.

#include "kernels/attention_chunk.h"
#include "kernels/attention_handed.h"

namespace headroom::device {

// ---- A strip ----

template <int HB, int W>
struct Strip {
    static_assert(W == 4 * kWarp && HB % 4 == 0);
    // The rows of a tile lie in fours, those a little apart, so that eight fours begin in different banks. So do the weights.
    static constexpr int kFour = 4 * W + kernels::kLongGap, kFours = kStrip / 4;  // halves
    static constexpr int kSlot = kFours * kFour;                                   // of a tile
    static constexpr int kWeights = 4 * HB + 4;                                    // of four rows
    static constexpr int kKeys = 4, kQuads = HB / 4;
    static HR_DEVICE int place(int row) { return row / 4 * kFour + row % 4 * W; }

    // Starts to copy the rows [begin, end) of a strip, and those that are in fours with them. from: the strip's first row.
    static HR_DEVICE void copy(std::uint16_t* tile, const std::uint16_t* from, int begin, int end) {
        static_assert(2 * W == kWarp * 8);
#pragma unroll 2
        for (int four = begin / 4; four < (end + 3) / 4; ++four) {
            start_copies<2, 2 * 2 * W, 2 * 2 * W>(tile + four * kFour + lane() * 8, from + four * 4 * W + lane() * 8, 0, 2);
        }
    }

    // Eight lanes have four neighbouring keys each; the warp's four such groups of lanes have four neighbouring accumulators each.
    // scores[q][i]: of head 4 q + lane / 8 and key lane % 8 * 4 + i. queries: [HB, W].
    static HR_DEVICE void score(const std::uint16_t* tile, const float* queries, float scale, float (&scores)[kQuads][kKeys]) {
        const int l = lane() / 8;
        const std::uint16_t* own = tile + lane() % 8 * kFour + 4 * l;
        const float* of_place[4];  // head s ^ l in place s: what a lane gives away below lies in the same place for all
        HR_UNROLL
        for (int s = 0; s < 4; ++s) of_place[s] = queries + (s ^ l) * W + 4 * l;
        float sums[HB][kKeys][4] = {};
#pragma unroll 2
        for (int j = 0; j < W; j += 16) {
            float k[kKeys][4];
            HR_UNROLL
            for (int i = 0; i < kKeys; ++i) {
                const Halves<4> four = *reinterpret_cast<const Halves<4>*>(own + i * W + j);
                HR_UNROLL
                for (int c = 0; c < 4; ++c) k[i][c] = four.value(c);
            }
            HR_UNROLL
            for (int s = 0; s < HB; ++s) {
                const Floats<4> x = *reinterpret_cast<const Floats<4>*>(of_place[s % 4] + s / 4 * 4 * W + j);
                HR_UNROLL
                for (int i = 0; i < kKeys; ++i) {
                    HR_UNROLL
                    for (int c = 0; c < 4; ++c) sums[s][i][c] = fma(x.x[c], k[i][c], sums[s][i][c]);
                }
            }
        }
        HR_UNROLL
        for (int i = 0; i < kKeys; ++i) {
            HR_UNROLL
            for (int q = 0; q < kQuads; ++q) {
                float folded[4];
                HR_UNROLL
                for (int s = 0; s < 4; ++s) {
                    const auto& four = sums[4 * q + s][i];
                    folded[s] = (four[0] + four[1]) + (four[2] + four[3]);
                }
                folded[0] = folded[0] + shuffle_xor(folded[1], 8);
                folded[2] = folded[2] + shuffle_xor(folded[3], 8);
                scores[q][i] = (folded[0] + shuffle_xor(folded[2], 16)) * scale;
            }
        }
    }

    // Turns the scores, of which those of [begin, end) are to be seen, into weights: [kFours, kWeights]. largest, sum: of the lane's heads.
    static HR_DEVICE void weigh(float (&x)[kQuads][kKeys], int begin, int end, float* weights, float (&largest)[kQuads], float (&sum)[kQuads]) {
        const int l = lane() / 8, k8 = lane() % 8;
        HR_UNROLL
        for (int q = 0; q < kQuads; ++q) {
            HR_UNROLL
            for (int i = 0; i < kKeys; ++i) {
                const int position = 4 * k8 + i;
                if (position < begin || position >= end) x[q][i] = bits_to_float(0xff800000U);
            }
            largest[q] = max_of(max_of(x[q][0], x[q][1]), max_of(x[q][2], x[q][3]));
            HR_UNROLL
            for (int d = 1; d < 8; d *= 2) largest[q] = max_of(largest[q], shuffle_xor(largest[q], d));
            HR_UNROLL
            for (int i = 0; i < kKeys; ++i) {
                x[q][i] = exp_value(x[q][i] - largest[q]);  // 0 where nothing is to be seen, which changes no sum
                weights[k8 * kWeights + i * HB + 4 * q + l] = x[q][i];
            }
            HR_UNROLL
            for (int d = 4; d > 0; d /= 2) {
                HR_UNROLL
                for (int i = 0; i < kKeys; ++i) x[q][i] = x[q][i] + shuffle_xor(x[q][i], d);
            }
            sum[q] = (x[q][0] + x[q][2]) + (x[q][1] + x[q][3]);
        }
    }

    // The rows [begin, end) of V, weighed, left where they were: [HB, W]; begin and end are multiples of 4. A warp does it, or, where there are two strips, half a warp
    // each: a lane then has 8 instead of 4 neighbouring elements of every head, so that each weight is read for twice as many of them. kLanes: 32 or 16; the whole warp comes here.
    template <int kLanes>
    static HR_DEVICE void add(std::uint16_t* tile, const float* weights, int begin, int end) {
        constexpr int kElements = W / kLanes;
        const int element = lane() % kLanes * kElements;
        float o[HB][kElements] = {};
#pragma unroll 1
        for (int four = begin / 4; four < end / 4; ++four) {
            HR_UNROLL
            for (int t = 0; t < 4; ++t) {
                const Halves<kElements> row = *reinterpret_cast<const Halves<kElements>*>(tile + four * kFour + t * W + element);
                float value[kElements];
                HR_UNROLL
                for (int d = 0; d < kElements; ++d) value[d] = row.value(d);
                HR_UNROLL
                for (int q = 0; q < kQuads; ++q) {
                    const Floats<4> weight = *reinterpret_cast<const Floats<4>*>(weights + four * kWeights + t * HB + 4 * q);
                    HR_UNROLL
                    for (int n = 0; n < 4; ++n) {
                        HR_UNROLL
                        for (int d = 0; d < kElements; ++d) o[4 * q + n][d] = fma(weight.x[n], value[d], o[4 * q + n][d]);
                    }
                }
            }
        }
        sync_warp();
        if (begin >= end) return;
        auto* out = reinterpret_cast<float*>(tile) + element;
        HR_UNROLL
        for (int n = 0; n < HB; ++n) {
            HR_UNROLL
            for (int d = 0; d < kElements; d += 4) *reinterpret_cast<Floats<4>*>(out + n * W + d) = {{o[n][d], o[n][d + 1], o[n][d + 2], o[n][d + 3]}};
        }
    }
};

// ---- A block ----

// A token's pages are dealt to its blocks as evenly as can be: where the part of a block begins, counted from the first visible page.
HR_DEVICE int first_of_block(int block, int pages, int blocks) { return block * pages / blocks; }
HR_DEVICE bool begins_block(int page, int pages, int blocks) { return first_of_block((page * blocks + pages - 1) / pages, pages, blocks) == page; }

// Attention of all query heads of a KV head, at most HB, over the token's pages [from, to), which are one of `blocks` parts. The heads have still
// to be made ready. The block with the token's last page makes its K and V, and stores them.
template <int HB, int W>
HR_DEVICE void attend_long(const AttentionArguments& a, const HeadArguments& raw, int token, int kv_head, const Visible& visible, int blocks,
                           int from, int to) {
    using S = Strip<HB, W>;
    constexpr int kSlots = kernels::kLongSlots;
    const int heads = a.heads / a.pool.kv_heads, first_page = visible.first_page();
    const int row = token * a.heads + kv_head * heads, strip = warp();
    const auto slot = [&](int of_strip, int number) {
        return reinterpret_cast<std::uint16_t*>(dynamic_shared()) + (of_strip * kSlots + number % kSlots) * S::kSlot;
    };
    float* queries = reinterpret_cast<float*>(dynamic_shared() + 2 * kStrips * kSlots * S::kSlot);  // [HB, W], and a row to make K in
    float* strips_largest = queries + (HB + 1) * W;                                                 // of two pages: [2, kStrips, HB], and their sums
    float* strips_sum = strips_largest + 2 * kStrips * HB;
    float* weights = strips_sum + 2 * kStrips * HB + warp() * 2 * S::kFours * S::kWeights;  // the warp's, of two pages
    // What is to be seen of the warp's strip of page n.
    const auto first_row = [&](int n) { return visible.begin(n) > strip * kStrip ? visible.begin(n) - strip * kStrip : 0; };
    const auto last_row = [&](int n) { return visible.end(n) < strip * kStrip + kStrip ? visible.end(n) - strip * kStrip : kStrip; };
    // Of each two pages tile 0 is K of the first, 1 that of the second, 2 and 3 are V.
    const auto start = [&](int number) {
        const int n = from + number / 4 * 2 + number % 2;
        const int begin = n < to ? first_row(n) : 0, end = n < to ? last_row(n) : 0;
        if (begin >= end) return close_copies();
        const int page = page_of(a.places, token, n);
        const std::uint16_t* rows = number % 4 < 2 ? keys(a.pool, page, kv_head) : values(a.pool, page, kv_head);
        S::copy(slot(strip, number), rows + strip * kStrip * W, begin, end);
        close_copies();
    };
    // The pool's other rows are those of steps before: they are on their way while the kernel before is still at work.
#pragma unroll 1
    for (int i = 0; i < kSlots; ++i) start(i);
    const int own_number = visible.position / kPage, own_row = visible.position % kPage;
    const bool makes_own = own_number < to;
    const int own_page = page_of(a.places, token, own_number);
#pragma unroll 1
    for (int task = warp(); task < heads + (makes_own ? 2 : 0); task += kStrips) {
        const bool is_q = task < heads, is_k = task == heads;
        const HeadFactors<W> factors(raw, token, is_q ? raw.q_norm : is_k ? raw.k_norm : nullptr, is_q || is_k);
        wait_for_previous();
        const std::int64_t kv_row = static_cast<std::int64_t>(token) * a.pool.kv_heads + kv_head;
        float x[kHeadShare<W>];
        load_head<W>(is_q ? raw.q + static_cast<std::int64_t>(row + task) * W : (is_k ? raw.k : raw.v) + kv_row * W, W, x);
        float* made = queries + (is_q ? task : HB) * W;
        if (is_q || is_k) make_head<W>(raw, factors, x, made);
        if (is_q) continue;
        std::uint16_t* kept = is_k ? Fresh<W>::k() : Fresh<W>::v();
        std::uint16_t* pool = (is_k ? keys(a.pool, own_page, kv_head) : values(a.pool, own_page, kv_head)) + own_row * W;
        HR_UNROLL
        for (int j = 0; j < kHeadShare<W>; ++j) {
            const int i = j * kWarp + lane();
            pool[i] = kept[i] = float_to_half(is_k ? made[i] : x[j]);
        }
    }
    wait_for_previous();
    // The last blocks to come here finish the output; of those before them they know that these are at work.
    int order = 0;
    if (blocks > 1 && thread() == 0) order = atomic_add(a.tickets + row, 1);
    sync();
    const Parts<W> parts(a);
    const int mine = warp() < heads ? warp() : 0, element = lane() * 4;  // head and elements that the thread combines
    Running<4> section, all;
    // Takes the strips of page n together, and the page into its section; every warp's part is there.
    const auto combine = [&](int n) {
        const int number = n - from, tile = number / 2 * 4 + 2 + number % 2;
        const float largest = strips_largest[(number % 2 * kStrips + lane() % kStrips) * HB + mine];
        const float sum = strips_sum[(number % 2 * kStrips + lane() % kStrips) * HB + mine];
        Floats<4> fours[kStrips];
        HR_UNROLL
        for (int s = 0; s < kStrips; ++s) {
            const auto* outputs = reinterpret_cast<const float*>(slot(s, tile));
            fours[s] = *reinterpret_cast<const Floats<4>*>(outputs + mine * W + element);
        }
        const PageSum page(visible, n, largest, sum, fours);
        section.add(n == from || n % kSection == 0, page.largest, page.sum, page.out);
        if (warp() >= heads || (n + 1 < to && (n + 1) % kSection != 0)) return;
        if (blocks == 1) {
            all.add(n / kSection == from / kSection, section.largest, section.sum, section.out);
            if (n + 1 < to) return;
            Floats<4> out;
            HR_UNROLL
            for (int d = 0; d < 4; ++d) out.x[d] = all.out[d] / all.sum;
            *reinterpret_cast<Floats<4>*>(a.out + static_cast<std::int64_t>(row + warp()) * W + element) = out;
            return;
        }
        const int begin = (n / kSection * kSection > from ? n / kSection * kSection : from) - first_page;
        parts.hand_over(row + warp(), begin, section.out, section.largest, section.sum);
    };
#pragma unroll 1
    for (int first = from, tile = 0; first < to; first += 2, tile += 4) {
#pragma unroll 1
        for (int p = 0; p < 2; ++p) {
            const int n = first + p, begin = n < to ? first_row(n) : 0, end = n < to ? last_row(n) : 0;
            const int fresh = n == own_number ? own_row - strip * kStrip : -1;
            float largest[S::kQuads], sum[S::kQuads];
            HR_UNROLL
            for (int q = 0; q < S::kQuads; ++q) {
                largest[q] = bits_to_float(0xff800000U);
                sum[q] = 0;
            }
            wait_for_copies<2>();
            sync_warp();
            if (begin < end) {
                std::uint16_t* keys_here = slot(strip, tile + p);
                if (fresh >= 0 && fresh < kStrip) put_row(keys_here + S::place(fresh), Fresh<W>::k(), W);
                float scores[S::kQuads][S::kKeys];
                S::score(keys_here, queries, a.scale, scores);
                S::weigh(scores, begin, end, weights + p * S::kFours * S::kWeights, largest, sum);
            }
            if (lane() % 8 == 0) {
                HR_UNROLL
                for (int q = 0; q < S::kQuads; ++q) {
                    const int at = (p * kStrips + strip) * HB + 4 * q + lane() / 8;
                    strips_largest[at] = largest[q];
                    strips_sum[at] = sum[q];
                }
            }
            sync_warp();
            start(tile + 3 + p);
        }
        wait_for_copies<1>();
        sync_warp();
#pragma unroll 1
        for (int p = 0; p < 2; ++p) {
            const int n = first + p, begin = n < to ? first_row(n) : 0, end = n < to ? last_row(n) : 0;
            const int fresh = n == own_number ? own_row - strip * kStrip : -1;
            if (begin >= end) continue;
            std::uint16_t* values_here = slot(strip, tile + 2 + p);
            if ((begin | end) % 4 != 0) {  // rows beside them count nothing
#pragma unroll 1
                for (int r = begin / 4 * 4; r < (end + 3) / 4 * 4; ++r) {
                    if (r < begin || r >= end) *reinterpret_cast<Halves<4>*>(values_here + S::place(r) + lane() * 4) = {{0x80008000U, 0x80008000U}};
                }
                sync_warp();
            }
            if (fresh >= 0 && fresh < kStrip) put_row(values_here + S::place(fresh), Fresh<W>::v(), W);
        }
        const bool two = first + 1 < to;
        const int side = two ? lane() / 16 : 0, begin = first_row(first + side), end = last_row(first + side);
        std::uint16_t* values_here = slot(strip, tile + 2 + side);
        const int from_four = begin / 4 * 4, to_four = begin < end ? (end + 3) / 4 * 4 : 0;
        if (two) S::template add<kWarp / 2>(values_here, weights + side * S::kFours * S::kWeights, from_four, to_four);
        else S::template add<kWarp>(values_here, weights, from_four, to_four);
        sync();
#pragma unroll 1
        for (int i = first; i < first + 2 && i < to; ++i) combine(i);
        if (first + 2 >= to) break;
        sync();  // everyone is done with these pages' parts
#pragma unroll 1
        for (int i = 5; i < 7; ++i) start(tile + i);
    }
    if (blocks == 1) return;
    const int finishers = !kTogether ? 1 : a.finishers < blocks ? a.finishers : blocks;
    __shared__ int order_here;
    if (thread() == 0) {
        order_here = order;
        if (order == blocks - 1) a.tickets[row] = 0;
    }
    sync();
    const int share = order_here - (blocks - finishers);
    const auto divides = [&](int page) { return begins_block(page, visible.pages(), blocks); };
    if (share >= 0) combine_handed<W>(a, visible, row, heads, share, finishers, dynamic_shared(), divides);
}

}  // namespace headroom::device
