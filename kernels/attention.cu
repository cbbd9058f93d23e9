// Heads of q, k and v made ready, and attention over the paged KV pool.

#include "kernels/attention_chunk.h"
#include "kernels/attention_tiles.h"

namespace headroom::device {

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

// The same on matrix units.
#if defined(HR_HALF_TILES)
HR_KERNEL(attention_prefill_64, AttentionArguments, kBlock) { prefill<64>(a); }
HR_KERNEL(attention_prefill_96, AttentionArguments, kBlock) { prefill<96>(a); }
HR_KERNEL(attention_prefill_128, AttentionArguments, kBlock) { prefill<128>(a); }
HR_KERNEL(attention_prefill_256, AttentionArguments, kBlock) { prefill<256>(a); }
#endif

}  // namespace headroom::device
