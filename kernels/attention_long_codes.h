#pragma once

// Attention of one token over many pages of codes (attention_codes.h has a strip of it). A block works on as many pages of a KV head at once as it has eight warps, and goes on
// to further ones where there are more than all blocks have; a warp then has of one of the pages the strips' sum of one head, and hands it over. Blocks that were the last
// to begin finish the output together (attention_handed.h).

#include "kernels/attention_codes.h"
#include "kernels/attention_handed.h"

#if defined(HR_CODE_TILES)

namespace headroom::device {

// Blocks: KV head, part of its pages, token. All query heads of the KV head, at most code_heads, which have still to be made ready. The block with the token's last page makes its
// K and V, and stores them.
template <int W>
HR_DEVICE void attend_long_codes(const AttentionArguments& a, const HeadArguments& raw) {
    static_assert(W == 4 * kWarp && kCodeHeads <= kStrips);
    using Work = CodeTiles<W>;
    const int kv_head = block_x(), token = block_z();
    const int warps = threads() / kWarp, at_once = warps / kStrips;  // pages
    const Visible visible(a.places.positions[token], a.window);
    const int first = visible.first_page() + block_y() * at_once, step = a.blocks * at_once, end = visible.first_page() + visible.pages();
    if (first >= end || a.places.tables[token] < 0) return;
    const int heads = a.heads_of_part, head = kv_head * heads, row = token * a.heads + head;
    const int strip_bytes = Work::bytes(W, W);
    unsigned char* own = dynamic_shared() + warp() * strip_bytes;
    const CodeMemory memory(warps, strip_bytes, W, W);
    const Parts<W> parts(a);
    const int mine = warp() % kStrips, element = lane() * 4;  // head and elements that the thread combines
    int order = 0;
    __shared__ int order_here;
#pragma unroll 1
    for (int first_page = first; first_page < end; first_page += step) {
        const WarpStrip at(a, token, visible, first_page, at_once, end);
        HeadTasks<W> tasks(a, raw, token, kv_head, head, heads, at.makes_own, first_page != first);
        Work work;
        work.start(own, a.pool, at, kv_head);
        make_codes<W>(tasks, at, true, memory);
        // Of those that come before them the last blocks know that they are at work.
        if (first_page == first && thread() == 0) order = atomic_add(a.tickets + row, 1);
        sync();
        const StripSums sums = memory.sums();
        if (at.begin < at.end) {
            work.attend(at, true, memory.fresh, memory.queries, heads, a.scale, sums);
        } else if (lane() < kCodeHeads) {
            sums.largest[lane()] = bits_to_float(0xff800000U);
            sums.sum[lane()] = 0;
        }
        if (thread() == 0) order_here = order;
        sync();
        if (at.number < end && mine < heads) {
            const int page = warp() / kStrips * kStrips, strip = (page + lane() % kStrips) * kCodeHeads + mine;
            const unsigned char* outputs = dynamic_shared() + page * strip_bytes + (mine * kernels::output_row(W) + element) * 4;
            Floats<4> fours[kStrips];
            HR_UNROLL
            for (int s = 0; s < kStrips; ++s) fours[s] = *reinterpret_cast<const Floats<4>*>(outputs + s * strip_bytes);
            const PageSum sum(visible, at.number, memory.strips_largest[strip], memory.strips_sum[strip], fours);
            parts.hand_over(row + mine, at.number - visible.first_page(), sum.out, sum.largest, sum.sum);
        }
        if (first_page + step < end) sync();  // everyone is done with these pages
    }
    const int pieces = (visible.pages() + at_once - 1) / at_once, blocks = a.blocks < pieces ? a.blocks : pieces;
    if (thread() == 0 && order == blocks - 1) a.tickets[row] = 0;
    const int finishers = !kTogether ? 1 : a.finishers < blocks ? a.finishers : blocks, share = order_here - (blocks - finishers);
    if (share < 0) return;
    sync();
    static_assert(HandedSections::kBytes <= kernels::tiles_strip_bytes(W, W));
    combine_handed<W>(a, visible, row, heads, share, finishers, dynamic_shared(), [](int) { return true; });
}

}  // namespace headroom::device

#endif
