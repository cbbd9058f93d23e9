// Heads of q, k and v made ready, and attention over the paged KV pool.

#include "kernels/attention_chunk.h"
#include "kernels/attention_clusters.h"
#include "kernels/attention_long.h"
#include "kernels/attention_tiles.h"
#include "kernels/code_tiles.h"

namespace headroom::device {

// A warp for each head of q, then of k, then of v.
// Norm weights, angles and the page are there before the products are: they are read while the kernel before still works.
HR_EARLY_KERNEL(head_rows, HeadArguments, 256) {
    __shared__ float made[256 / kWarp][kMostWidth];
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
    if (!is_q && !is_k) {
        const float* v = a.v + (static_cast<std::int64_t>(token) * pool.kv_heads + kv_head) * pool.head_dim_v;
        std::uint16_t* to = values(pool, page, kv_head) + slot * pool.head_dim_v;
        for (int i = lane(); i < pool.head_dim_v; i += kWarp) to[i] = float_to_half(v[i]);
        return;
    }
    const int width = pool.head_dim;
    float* q = a.q + (static_cast<std::int64_t>(token) * a.heads + head) * width;
    make_head<0>(a, factors, is_q ? q : a.k + (static_cast<std::int64_t>(token) * pool.kv_heads + kv_head) * width, made[warp()]);
    std::uint16_t* k = keys(pool, page, kv_head) + slot * width;
    for (int i = lane(); i < width; i += kWarp) {
        if (is_q) q[i] = made[warp()][i];
        else k[i] = float_to_half(made[warp()][i]);
    }
}

// Blocks: KV head and part of its query heads, section, token. fresh: the heads as the products left them, to be made ready here; or null.
template <int HB, int W>
HR_DEVICE void attention_rows(const AttentionArguments& a, const HeadArguments* fresh) {
    const int kv_head = block_x() / a.parts, token = block_z(), heads = a.heads_of_part;
    const int position = a.places.positions[token], table = a.places.tables[token];
    const Visible visible(position, a.window);
    const int sections = visible.sections(), number = visible.first_page() / kSection + block_y();
    if (block_y() >= sections || table < 0) return;  // both are here then: one does not wait for the other
    const int from = number * kSection, to = from + kSection;
    attend_all<HB, W, false>(a, token, kv_head, block_x() * heads, heads, visible, from > visible.first_page() ? from : visible.first_page(),
                      to <= position / kPage ? to : position / kPage + 1, sections == 1, fresh);
}

// By the number of query heads that a block works on at once: each is compiled for its own needs.
#if defined(HR_HIP) || (defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800)
inline constexpr int kThreads = 256;  // there is no shared memory for more
#else
inline constexpr int kThreads = kernels::kMostAttentionThreads;
#endif
HR_KERNEL(attention_rows_1, AttentionArguments, kThreads) { attention_rows<1, 0>(a, nullptr); }
HR_KERNEL(attention_rows_2, AttentionArguments, kThreads) { attention_rows<2, 0>(a, nullptr); }
HR_KERNEL(attention_rows_4, AttentionArguments, kThreads) { attention_rows<4, 0>(a, nullptr); }
HR_KERNEL(attention_rows_8, AttentionArguments, kThreads) { attention_rows<8, 0>(a, nullptr); }

// The same for heads of 64 and 128 elements: code of few bytes, since a step comes to it cold.
#define HR_STEP(at_once, width)                                                              \
    HR_EARLY_KERNEL(attention_step_##width##_##at_once, StepAttentionArguments, kThreads) { \
        attention_rows<at_once, width>(a.attention, &a.heads);                               \
    }
HR_STEP(1, 64) HR_STEP(2, 64) HR_STEP(4, 64) HR_STEP(8, 64)
HR_STEP(1, 128) HR_STEP(2, 128) HR_STEP(4, 128) HR_STEP(8, 128)
#undef HR_STEP

#if defined(HR_CODE_TILES)
// Blocks: KV head, some of its pages, token. Where there may be shared memory for it.
template <int HB, int W>
HR_DEVICE void attention_long(const kernels::StepAttentionArguments& both) {
    const AttentionArguments& a = both.attention;
    const int token = block_z();
    const Visible visible(a.places.positions[token], a.window);
    const int pages = visible.pages(), blocks = a.blocks < pages ? a.blocks : pages, block = block_y();
    if (block >= blocks || a.places.tables[token] < 0) return;
    attend_long<HB, W>(a, both.heads, token, block_x(), visible, blocks, visible.first_page() + first_of_block(block, pages, blocks),
                       visible.first_page() + first_of_block(block + 1, pages, blocks));
}
HR_EARLY_KERNEL(attention_long_128_4, StepAttentionArguments, 256) { attention_long<4, 128>(a); }
HR_EARLY_KERNEL(attention_long_128_8, StepAttentionArguments, 256) { attention_long<8, 128>(a); }
#endif

#if defined(HR_CLUSTERS)
HR_CLUSTER_KERNEL(attention_cluster_128_8, AheadAttentionArguments, kernels::kClusterThreads, kernels::kClusterBlocks) { attend_in_clusters<2, 4, 2, 128>(a); }
HR_CLUSTER_KERNEL(attention_cluster_page_128_8, AheadAttentionArguments, kernels::kClusterThreads, kernels::kClusterBlocks) { attend_in_clusters<2, 2, 1, 128>(a); }
#endif

// Blocks: neighbouring tokens, KV head. In the order of attention_rows, page by page: where there are no matrix units for halves.
HR_KERNEL(attention_prefill, AttentionArguments, kBlock) {
    prefill_in_order(a, [&](int token, int head, int heads, const Visible& visible, int from, int to) {
        attend_all<4, 0, true>(a, token, block_y(), head, heads, visible, from, to, true, nullptr);
    });
}

// The same on matrix units.
#if defined(HR_HALF_TILES)
HR_KERNEL(attention_prefill_64, AttentionArguments, kBlock) { prefill<64, HalvesTiles<64>>(a); }
HR_KERNEL(attention_prefill_96, AttentionArguments, kBlock) { prefill<96, HalvesTiles<96>>(a); }
HR_KERNEL(attention_prefill_128, AttentionArguments, kBlock) { prefill<128, HalvesTiles<128>>(a); }
HR_KERNEL(attention_prefill_256, AttentionArguments, kBlock) { prefill<256, HalvesTiles<256>>(a); }
#endif

}  // namespace headroom::device
