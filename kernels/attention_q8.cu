// Attention where keys and values are kept as int8 codes, and how they come there.

#include "kernels/attention_codes.h"
#include "kernels/attention_long_codes.h"
#include "kernels/attention_tiles.h"

namespace headroom::device {

// As head_rows.
HR_EARLY_KERNEL(head_rows_q8, HeadArguments, 256) {
    __shared__ Floats<4> made[256 / kWarp][kMostWidth / 4];
    const int token = block_x();
    const int head = block_y() * (threads() / kWarp) + warp();
    const KvPool& pool = a.pool;
    const int position = a.places.positions[token];
    const bool is_q = head < a.heads, is_k = !is_q && head < a.heads + pool.kv_heads;
    const int kv_head = is_q ? 0 : (head - a.heads) % pool.kv_heads;
    const int page = page_of(a.places, token, position / kPage), slot = position % kPage;
    const HeadFactors<0> factors(a, token, is_q ? a.q_norm : is_k ? a.k_norm : nullptr, is_q || is_k);
    wait_for_previous();
    if (head >= a.heads + 2 * pool.kv_heads) return;
    const std::int64_t kv_row = static_cast<std::int64_t>(token) * pool.kv_heads + kv_head;
    if (!is_q && !is_k) {
        const PageCodes v = value_codes<0>(pool, page, kv_head);
        return quantize_kept(a.v + kv_row * pool.head_dim_v, pool.head_dim_v,
                             [&](int i, std::uint32_t codes, std::uint16_t scale) { v.put_value(pool.head_dim_v, slot, i, codes, scale); });
    }
    const int width = pool.head_dim;
    float* q = a.q + (static_cast<std::int64_t>(token) * a.heads + head) * width;
    float* to = made[warp()][0].x;
    make_head<0>(a, factors, is_q ? q : a.k + kv_row * width, to);
    if (is_k) {
        const PageCodes k = key_codes<0>(pool, page, kv_head);
        return quantize_kept(to, width, [&](int i, std::uint32_t codes, std::uint16_t scale) { k.put_key(width, slot, i, codes, scale); });
    }
    for (int i = lane(); i < width; i += kWarp) q[i] = to[i];
}

// Blocks: KV head and part of its query heads, section, token: as attention_rows.
template <int W, class Work>
HR_DEVICE void attention_rows_codes(const AttentionArguments& a, const HeadArguments* raw) {
    const int kv_head = block_x() / a.parts, token = block_z(), heads = a.heads_of_part;
    const int position = a.places.positions[token], table = a.places.tables[token];
    const Visible visible(position, a.window);
    const int sections = visible.sections(), number = visible.first_page() / kSection + block_y();
    if (block_y() >= sections || table < 0) return;
    const int from = number * kSection, to = from + kSection;
    attend_all_codes<W, Work, false>(a, token, kv_head, block_x() * heads, heads, visible, from > visible.first_page() ? from : visible.first_page(),
                                     to <= position / kPage ? to : position / kPage + 1, sections == 1, raw);
}

HR_KERNEL(attention_rows_q8, AttentionArguments, kBlock) { attention_rows_codes<0, PlainCodes<0>>(a, nullptr); }

#if defined(HR_CODE_TILES)
HR_KERNEL(attention_rows_q8_tiles, AttentionArguments, kernels::kMostAttentionThreads) { attention_rows_codes<0, CodeTiles<0>>(a, nullptr); }
HR_EARLY_KERNEL(attention_step_q8_64, StepAttentionArguments, kernels::kMostAttentionThreads) { attention_rows_codes<64, CodeTiles<64>>(a.attention, &a.heads); }
HR_EARLY_KERNEL(attention_step_q8_128, StepAttentionArguments, kernels::kMostAttentionThreads) { attention_rows_codes<128, CodeTiles<128>>(a.attention, &a.heads); }
HR_EARLY_KERNEL(attention_ahead_q8_128, AheadAttentionArguments, kernels::kMostAttentionThreads) {
    send_for(a);
    attention_rows_codes<128, CodeTiles<128>>(a.attention, &a.heads);
}

// As attention_long.
HR_EARLY_KERNEL(attention_long_q8_128, StepAttentionArguments, kernels::kMostAttentionThreads) { attend_long_codes<128>(a.attention, a.heads); }
#endif

// Blocks: neighbouring tokens, KV head. In the order of attention_rows_q8, page by page: where there are no matrix units for halves.
HR_KERNEL(attention_prefill_q8, AttentionArguments, kBlock) {
    prefill_in_order(a, [&](int token, int head, int heads, const Visible& visible, int from, int to) {
        attend_all_codes<0, PlainCodes<0>, true>(a, token, block_y(), head, heads, visible, from, to, true, nullptr);
    });
}

// The same on matrix units for halves.
#if defined(HR_HALF_TILES)
HR_KERNEL(attention_prefill_q8_64, AttentionArguments, kBlock) { prefill<64, CodesTiles<64>>(a); }
HR_KERNEL(attention_prefill_q8_96, AttentionArguments, kBlock) { prefill<96, CodesTiles<96>>(a); }
HR_KERNEL(attention_prefill_q8_128, AttentionArguments, kBlock) { prefill<128, CodesTiles<128>>(a); }
HR_KERNEL(attention_prefill_q8_256, AttentionArguments, kBlock) { prefill<256, CodesTiles<256>>(a); }
#endif

}  // namespace headroom::device
