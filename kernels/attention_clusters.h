#pragma once

// Attention of one token of each of several sessions, where four blocks reach each other's shared memory: the same order, another division of the work.
// A cluster has a section of a KV head, or its only page, and all of its query heads, a block every fourth strip of it. So K and V are read once, and each
// multiprocessor has the same share of them, however few positions there are. Some warps have a strip, each with some of the query heads; what a strip
// makes of a head goes to the block that puts that head together.

#include "kernels/attention_chunk.h"
#include "kernels/clusters.h"

#if defined(HR_CLUSTERS)

namespace headroom::device {

// HB: query heads that a block puts together; N: of a warp. P: pages of a section.
template <int HB, int N, int P, int W>
struct ClusterBlock {
    static constexpr int kBlocks = kernels::kClusterBlocks, kHeads = kBlocks * HB;
    static constexpr int kSectionStrips = P * kStrips, kOwnStrips = kSectionStrips / kBlocks;
    static constexpr int kParts = kHeads / N, kWarps = kOwnStrips * kParts;  // warps of a strip, and of the block
    static_assert(kWarps * kWarp == kernels::kClusterThreads && kHeads <= kWarps);
    static constexpr int kTile = kStrip * W + 4 * 16;  // halves, with the gaps between TileShape's groups
    static constexpr int kTilesBytes = kOwnStrips * 2 * kTile * 2;

    float* outputs;  // of strips, [kSectionStrips, HB, W]
    float *largest, *sums;  // of strips, [kSectionStrips, HB]
    float* queries;  // [kHeads, W], and a row to make K in; in the end what warps hand on of a page
    float* weights;  // of the warp's heads, [kStrip, N]

    HR_DEVICE ClusterBlock() : outputs(reinterpret_cast<float*>(dynamic_shared() + kTilesBytes)) {
        largest = outputs + kSectionStrips * HB * W;
        sums = largest + kSectionStrips * HB;
        queries = sums + kSectionStrips * HB;
        weights = queries + (kHeads + 1) * W + warp() * kStrip * N;
    }
    // K of a strip, or V, which lies behind it.
    static HR_DEVICE std::uint16_t* tile(int strip) { return reinterpret_cast<std::uint16_t*>(dynamic_shared()) + strip / kBlocks * 2 * kTile; }
};

// Starts to copy the rows [begin, end) of a strip; kThreads neighbouring threads do.
template <int kThreads, int W>
HR_DEVICE void copy_strip(std::uint16_t* tile, const std::uint16_t* from, int begin, int end) {
    constexpr int kAtOnce = kThreads / (W / 8), kTurns = kStrip / kAtOnce;  // rows
    static_assert(kAtOnce % 4 == 0);
    const TileShape shape{W, W, kStrip};
    const int row = thread() % kThreads / (W / 8), column = thread() % (W / 8) * 8;
    start_copies<kTurns, kAtOnce / 4 * W * 2, kAtOnce * W * 2>(tile + shape.place(row, W) + column, from + row * W + column, (begin - row + kAtOnce - 1) / kAtOnce,
                                                               (end - row + kAtOnce - 1) / kAtOnce);
    close_copies();
}

// Blocks: KV head and rank, section, token. There are as many query heads to a KV head as ClusterBlock says.
template <int HB, int N, int P, int W>
HR_DEVICE void attend_in_clusters(const kernels::AheadAttentionArguments& all) {
    const AttentionArguments& a = all.attention;
    const HeadArguments& raw = all.heads;
    using Block = ClusterBlock<HB, N, P, W>;
    constexpr int kBlocks = Block::kBlocks, kHeads = Block::kHeads, kParts = Block::kParts;
    constexpr TileShape shape{W, W, kStrip};
    const int rank = block_x() % kBlocks, kv_head = block_x() / kBlocks, token = block_z();
    const int position = a.places.positions[token], table = a.places.tables[token];
    const Visible visible(position, a.window);
    const int sections = visible.sections(), number = visible.first_page() / kSection + block_y();
    if (block_y() >= sections || table < 0) {
        send_for(all);
        return;
    }
    begin_cluster();
    const int from = number * kSection > visible.first_page() ? number * kSection : visible.first_page();
    const int to = number * kSection + P <= position / kPage ? number * kSection + P : position / kPage + 1;
    // The warp's strip, and its part of the query heads.
    const int strip = warp() / kParts * kBlocks + rank, part = warp() % kParts;
    const int page = number * kSection + strip / kStrips, row = strip % kStrips * kStrip;  // first row
    int begin = 0, end = 0;
    if (page >= from && page < to) {
        begin = visible.begin(page) > row ? visible.begin(page) - row : 0;
        end = visible.end(page) < row + kStrip ? visible.end(page) - row : kStrip;
    }
    const bool some = begin < end;
    const int own_page = position / kPage, own_row = position % kPage, own_strip = own_page % kSection * kStrips + own_row / kStrip;
    const bool makes_own = own_page / kSection == number && own_strip % kBlocks == rank;
    const Block block;
    std::uint16_t* k = Block::tile(strip);
    std::uint16_t* v = k + Block::kTile;
    if (some) {
        // The pool's rows but the token's own are those of steps before: they are on their way while the kernel before is still at work.
        const int of_pool = page_of(a.places, token, page), last = makes_own && strip == own_strip ? end - 1 : end;
        copy_strip<kParts * kWarp, W>(k, keys(a.pool, of_pool, kv_head) + row * W, begin, last);
        copy_strip<kParts * kWarp, W>(v, values(a.pool, of_pool, kv_head) + row * W, begin, last);
        // Rows beside these in their fours weigh 0, but need not be numbers: they become -0, which changes no sum.
        if (part == 0 && (begin | end) % 4 != 0) {
#pragma unroll 1
            for (int r = begin / 4 * 4; r < (end + 3) / 4 * 4; ++r) {
                if (r < begin || r >= end) *reinterpret_cast<Halves<4>*>(v + shape.place(r, W) + lane() * 4) = {{0x80008000U, 0x80008000U}};
            }
        }
    }
    send_for(all);
    // A warp for each query head; two of them, those that have nothing to do if there are any, also have the token's own K and V.
    const std::int64_t kv_row = static_cast<std::int64_t>(token) * a.pool.kv_heads + kv_head, q_row = static_cast<std::int64_t>(token) * a.heads + kv_head * kHeads;
    const int of_own = (warp() + Block::kWarps - kHeads % Block::kWarps) % Block::kWarps;  // 0: K, 1: V
    const bool has_own = makes_own && of_own < 2, is_k = of_own == 0;
    constexpr int kShareOfHead = kHeadShare<W>;
    HeadFactors<W> factors(raw, token, raw.q_norm, true);
    float own[kShareOfHead] = {}, own_weights[kShareOfHead];
    HR_UNROLL
    for (int j = 0; j < kShareOfHead; ++j) own_weights[j] = has_own && is_k && raw.k_norm != nullptr ? raw.k_norm[j * kWarp + lane()] : 1.0F;
    const int own_of_pool = has_own ? page_of(a.places, token, own_page) : 0;
    wait_for_previous();
    float x[kShareOfHead] = {};
    if (warp() < kHeads) load_head<W>(raw.q + (q_row + warp()) * W, W, x);
    if (has_own) load_head<W>((is_k ? raw.k : raw.v) + kv_row * W, W, own);
    float* made = block.queries + kHeads * W;
#pragma unroll 1
    for (int turn = warp() < kHeads ? 0 : 1; turn < (has_own && is_k ? 2 : 1); ++turn) {
        if (turn > 0) {
            factors.weight = raw.k_norm;
            HR_UNROLL
            for (int j = 0; j < kShareOfHead; ++j) {
                x[j] = own[j];
                factors.weights[j] = own_weights[j];
            }
        }
        make_head<W>(raw, factors, x, turn == 0 ? block.queries + warp() * W : made);
    }
    if (has_own) {
        std::uint16_t* kept = Block::tile(own_strip) + (is_k ? 0 : Block::kTile) + shape.place(own_row % kStrip, W);
        std::uint16_t* pool = (is_k ? keys(a.pool, own_of_pool, kv_head) : values(a.pool, own_of_pool, kv_head)) + own_row * W;
        HR_UNROLL
        for (int j = 0; j < kShareOfHead; ++j) {
            const int i = j * kWarp + lane();
            pool[i] = kept[i] = float_to_half(is_k ? made[i] : own[j]);
        }
    }
    wait_for_copies<1>();
    sync();
    float largest = bits_to_float(0xff800000U), sum = 0;
    Share<1, N, N> share(W / 4);
    if (some) {
        score_heads<N, W / 16, true, N, W>(shape, k, block.queries + part * N * W, N, a.scale, block.weights);
        sync_warp();
        weigh<N>(block.weights, begin, end, largest, sum);
    }
    wait_for_copies<0>();
    sync();
    if (some) share.add(shape, v, begin / 4, (end + 3) / 4, block.weights);
    await_begin();
    HR_UNROLL
    for (int n = 0; n < (some ? N : 0); ++n) {
        const int head = part * N + n;
        float* there = of_block(block.outputs + (strip * HB + head % HB) * W, head / HB) + share.element;
        *reinterpret_cast<Floats<4>*>(there) = {{share.o[0][n][0], share.o[0][n][1], share.o[0][n][2], share.o[0][n][3]}};
    }
    if (lane() < N) {
        const int head = part * N + lane(), at = strip * HB + head % HB;
        *of_block(block.largest + at, head / HB) = largest;
        *of_block(block.sums + at, head / HB) = sum;
    }
    sync_cluster();
    // A warp puts together a page of a head, and those that have the first page the section.
    const int head = warp() % HB, second = warp() / HB, element = lane() * 4;
    static_assert(W == 4 * kWarp && P * HB <= Block::kWarps && 6 * HB * kWarp <= (kHeads + 1) * W);
    float* handed = block.queries + head * kWarp + lane();
#pragma unroll 1
    for (int owner = first_to_finish(rank, kBlocks); owner <= rank; ++owner) {
        const int first_row = static_cast<int>(q_row) + owner * HB, first_strip = (from - number * kSection) * kStrips;
        const int started = sections > 1 ? start_section(a, first_row) : 0;
        Running<4> section;
        if (second < P && from + second < to) {
            const int first = first_strip + second * kStrips, of_strip = (first + lane() % kStrips) * HB + head;
            const float* outputs = written_here(block.outputs, owner) + (first * HB + head) * W + element;
            Floats<4> fours[kStrips];
            HR_UNROLL
            for (int s = 0; s < kStrips; ++s) fours[s] = *reinterpret_cast<const Floats<4>*>(outputs + s * HB * W);
            const PageSum page_sum(visible, from + second, written_here(block.largest, owner)[of_strip], written_here(block.sums, owner)[of_strip], fours);
            section.add(true, page_sum.largest, page_sum.sum, page_sum.out);
        }
        if constexpr (P > 1) {
            static_assert(P == 2);
            if (second == 1) {
                handed[0] = section.largest;
                handed[HB * kWarp] = section.sum;
                HR_UNROLL
                for (int d = 0; d < 4; ++d) handed[(2 + d) * HB * kWarp] = section.out[d];
            }
            sync();
            if (second == 0 && from + 1 < to) {
                const float more[4] = {handed[2 * HB * kWarp], handed[3 * HB * kWarp], handed[4 * HB * kWarp], handed[5 * HB * kWarp]};
                section.add(false, handed[0], handed[HB * kWarp], more);
            }
        }
        finish<W, HB % 2 == 0>(a, first_row, warp(), HB, element, section, visible, from, sections == 1, started, Block::kTilesBytes);
        if (owner < rank) sync();
    }
}

}  // namespace headroom::device

#endif
