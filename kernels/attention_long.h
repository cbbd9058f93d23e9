#pragma once

// Attention of one token over many pages, where a multiprocessor has room for whole strips of K and V: the same order, another division of the work.
// A block has some neighbouring pages of a KV head and all of its query heads, and a multiprocessor for itself; a warp has the same strip of each page, one
// after the other, and three tiles (the K or the V of a strip) in its hands or on their way. What is left of a section, or of a page where blocks divide
// a section, is handed to the blocks that were the last to begin: they finish the output together.

#include "kernels/attention_chunk.h"
#include "kernels/attention_handed.h"

namespace headroom::device {

// ---- A strip ----

template <int HB, int W>
struct Strip {
    static_assert(W == 4 * kWarp && HB % 4 == 0);
    // The rows of K lie in fours, those a little apart, so that eight fours begin in different banks. So do the weights.
    static constexpr int kFour = 4 * W + kernels::kLongGap, kFours = kStrip / 4;  // halves
    static constexpr int kSlot = kFours * kFour;                                   // of a tile
    static constexpr int kWeights = 4 * HB + 4;                                    // of four rows
    static constexpr int kKeys = 4, kQuads = HB / 4;
    static HR_DEVICE int key(int row) { return row / 4 * kFour + row % 4 * W; }

    // Starts to copy the rows [begin, end) of a strip, and those that are in pieces or fours with them. from: the strip's first row.
    static HR_DEVICE void copy_keys(std::uint16_t* tile, const std::uint16_t* from, int begin, int end) {
        constexpr int kRows = kWarp * 8 / W;  // in a piece
        static_assert(kRows == 2);
        const int first = begin / 4, last = (end + 3) / 4;
        HR_UNROLL
        for (int half = 0; half < 2; ++half) {
            start_copies<kFours, 2 * kFour, 2 * 4 * W>(tile + half * 2 * W + lane() * 8, from + half * 2 * W + lane() * 8, first, last);
        }
    }
    static HR_DEVICE void copy_values(std::uint16_t* tile, const std::uint16_t* from, int begin, int end) {
        start_copies<kStrip / 2, 2 * 2 * W, 2 * 2 * W>(tile + lane() * 8, from + lane() * 8, begin / 2, (end + 1) / 2);
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

    // The rows [begin, end) of V, weighed, left where they were: [HB, W]. begin and end are multiples of 4. A lane has 4 neighbouring elements of every head.
    static HR_DEVICE void add(std::uint16_t* tile, const float* weights, int begin, int end) {
        float o[HB][4] = {};
        const std::uint16_t* from = tile + lane() * 4;
#pragma unroll 1
        for (int row = begin; row < end; row += 4) {
            const float* of_four = weights + row / 4 * kWeights;
            HR_UNROLL
            for (int t = 0; t < 4; ++t) {
                const Halves<4> four = *reinterpret_cast<const Halves<4>*>(from + (row + t) * W);
                float value[4];
                HR_UNROLL
                for (int d = 0; d < 4; ++d) value[d] = four.value(d);
                HR_UNROLL
                for (int q = 0; q < kQuads; ++q) {
                    const Floats<4> weight = *reinterpret_cast<const Floats<4>*>(of_four + t * HB + 4 * q);
                    HR_UNROLL
                    for (int n = 0; n < 4; ++n) {
                        HR_UNROLL
                        for (int d = 0; d < 4; ++d) o[4 * q + n][d] = fma(weight.x[n], value[d], o[4 * q + n][d]);
                    }
                }
            }
        }
        sync_warp();
        auto* out = reinterpret_cast<float*>(tile) + lane() * 4;
        HR_UNROLL
        for (int n = 0; n < HB; ++n) *reinterpret_cast<Floats<4>*>(out + n * W) = {{o[n][0], o[n][1], o[n][2], o[n][3]}};
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
    float* weights = strips_sum + 2 * kStrips * HB + warp() * S::kFours * S::kWeights;  // the warp's
    // What is to be seen of the warp's strip of page n.
    const auto first_row = [&](int n) { return visible.begin(n) > strip * kStrip ? visible.begin(n) - strip * kStrip : 0; };
    const auto last_row = [&](int n) { return visible.end(n) < strip * kStrip + kStrip ? visible.end(n) - strip * kStrip : kStrip; };
    // Tile 2 i is K of the i-th page, tile 2 i + 1 its V.
    const auto start = [&](int number) {
        const int n = from + number / 2;
        const int begin = n < to ? first_row(n) : 0, end = n < to ? last_row(n) : 0;
        if (begin >= end) return close_copies();
        const int page = page_of(a.places, token, n);
        if (number % 2 == 0) S::copy_keys(slot(strip, number), keys(a.pool, page, kv_head) + strip * kStrip * W, begin, end);
        else S::copy_values(slot(strip, number), values(a.pool, page, kv_head) + strip * kStrip * W, begin, end);
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
        if (is_q) {
            make_head<W>(raw, factors, raw.q + static_cast<std::int64_t>(row + task) * W, queries + task * W);
            continue;
        }
        std::uint16_t* kept = is_k ? Fresh<W>::k() : Fresh<W>::v();
        std::uint16_t* pool = (is_k ? keys(a.pool, own_page, kv_head) : values(a.pool, own_page, kv_head)) + own_row * W;
        const float* x = raw.v + kv_row * W;
        if (is_k) {
            make_head<W>(raw, factors, raw.k + kv_row * W, queries + HB * W);
            x = queries + HB * W;
        }
        for (int i = lane(); i < W; i += kWarp) pool[i] = kept[i] = float_to_half(x[i]);
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
        const int number = n - from;
        const float largest = strips_largest[(number % 2 * kStrips + lane() % kStrips) * HB + mine];
        const float sum = strips_sum[(number % 2 * kStrips + lane() % kStrips) * HB + mine];
        Floats<4> fours[kStrips];
        HR_UNROLL
        for (int s = 0; s < kStrips; ++s) {
            const auto* outputs = reinterpret_cast<const float*>(slot(s, 2 * number + 1));
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
    for (int n = from;; ++n) {
        const int number = 2 * (n - from), begin = n < to ? first_row(n) : 0, end = n < to ? last_row(n) : 0;
        const int fresh = n == own_number ? own_row - strip * kStrip : -1;
        const bool some = begin < end, is_fresh = fresh >= 0 && fresh < kStrip;
        float largest[S::kQuads], sum[S::kQuads];
        HR_UNROLL
        for (int q = 0; q < S::kQuads; ++q) {
            largest[q] = bits_to_float(0xff800000U);
            sum[q] = 0;
        }
        if (n == from) wait_for_copies<2>();
        else wait_for_copies<1>();
        sync_warp();
        if (some) {
            std::uint16_t* tile = slot(strip, number);
            if (is_fresh) put_row(tile + S::key(fresh), Fresh<W>::k(), W);
            float scores[S::kQuads][S::kKeys];
            S::score(tile, queries, a.scale, scores);
            S::weigh(scores, begin, end, weights, largest, sum);
        }
        if (n < to && lane() % 8 == 0) {
            HR_UNROLL
            for (int q = 0; q < S::kQuads; ++q) {
                const int at = ((n - from) % 2 * kStrips + strip) * HB + 4 * q + lane() / 8;
                strips_largest[at] = largest[q];
                strips_sum[at] = sum[q];
            }
        }
        if (n > from) {
            sync();
            combine(n - 1);
            if (n == to) break;
            if (n + 1 < to) sync();  // everyone is done with that page's parts
        } else {
            sync_warp();
        }
#pragma unroll 1
        for (int i = n == from ? 3 : 2; i <= 3; ++i) start(number + i);
        wait_for_copies<2>();
        sync_warp();
        if (some) {
            std::uint16_t* tile = slot(strip, number + 1);
            if ((begin | end) % 4 != 0) {  // rows beside them count nothing
#pragma unroll 1
                for (int r = begin / 4 * 4; r < (end + 3) / 4 * 4; ++r) {
                    if (r < begin || r >= end) *reinterpret_cast<Halves<4>*>(tile + r * W + lane() * 4) = {{0x80008000U, 0x80008000U}};
                }
                sync_warp();
            }
            if (is_fresh) put_row(tile + fresh * W, Fresh<W>::v(), W);
            S::add(tile, weights, begin / 4 * 4, (end + 3) / 4 * 4);
        }
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
