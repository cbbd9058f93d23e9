#include "core/compute/cpu/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/compute/cpu/attention.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "core/compute/cpu/attention_codes-inl.h"
#include "core/compute/cpu/attention_halves-inl.h"
#include "core/compute/cpu/ops.h"
#include "core/compute/cpu/reference.h"

HWY_BEFORE_NAMESPACE();
namespace headroom::cpu::HWY_NAMESPACE {

void to_half_row(const float* x, std::int64_t n, std::uint16_t* out) {
    std::int64_t i = 0;
#if HEADROOM_KERNELS
    for (; i + kLanes <= n; i += kLanes) store_halves(load(x + i), out + i);
#endif
    reference::to_half(x + i, n - i, out + i);
}

std::uint16_t quantize_kv_block(const float* x, std::int8_t* codes) {
#if HEADROOM_KERNELS
    const DF d;
    const DI di;
    const hn::Rebind<std::int8_t, DF> d8;
    VF largest_lanes = hn::Zero(d);
    HEADROOM_UNROLL
    for (int j = 0; j < kSum32; ++j) largest_lanes = hn::Max(largest_lanes, hn::Abs(load(x + j * kLanes)));
    const std::uint16_t scale = float_to_half(hn::GetLane(hn::MaxOfLanes(d, largest_lanes)) / 127.0F);
    const float value = half_to_float(scale);
    const VF inverse = hn::Set(d, value > 0 ? 1.0F / value : 0.0F);
    HEADROOM_UNROLL
    for (int j = 0; j < kSum32; ++j) {
        const VI code = hn::Max(hn::NearestInt(hn::Mul(load(x + j * kLanes), inverse)), hn::Set(di, -127));
        hn::StoreU(hn::DemoteTo(d8, code), d8, codes + j * kLanes);
    }
    return scale;
#else
    return reference::quantize_kv(x, codes);
#endif
}

#if HEADROOM_KERNELS

// A block of queries that share a KV head goes through the pages together: K and V are unpacked once for several queries.
template <class Form>
void attend(const AttentionShape& shape, const KvView& kv, const QueryBlock& block) {
    const Form form(kv, block);
    alignas(kCacheLine) float weights[kQueryBlock * kPagePositions];
    alignas(kCacheLine) float earlier[kQueryBlock * kMostHeadWidth];  // the outputs of the sections before, [queries, head_dim_v]
    Running total[kQueryBlock], section[kQueryBlock];
    const auto first_of = [&](const Query& q) { return shape.window > 0 ? std::max<std::int64_t>(0, q.position - shape.window + 1) : 0; };
    const std::int64_t first_page = first_of(block.queries[0]) / kPagePositions;
    const std::int64_t last_page = block.queries[block.count - 1].position / kPagePositions;
    for (std::int64_t page = first_page; page <= last_page; ++page) {
        Seen seen;
        seen.low = block.count;
        seen.high = 0;
        for (int q = 0; q < block.count; ++q) {
            seen.begin[q] = std::max<std::int64_t>(0, first_of(block.queries[q]) - page * kPagePositions);
            seen.end[q] = std::min(kPagePositions, block.queries[q].position + 1 - page * kPagePositions);
            if (seen.begin[q] >= seen.end[q]) continue;
            seen.low = std::min(seen.low, q);
            seen.high = q + 1;
        }
        form.score(page, seen, weights);
        PageSums sums[kQueryBlock];
        for (int q = seen.low; q < seen.high; ++q) {
            float* row = weights + q * kPagePositions;
            weigh(row, seen.begin[q], seen.end[q], shape.scale, sums[q].strips);
            // Queries share loops over positions, so what one of them does not see must weigh nothing.
            std::fill(row + seen.begin[seen.low], row + seen.begin[q], 0.0F);
            std::fill(row + seen.end[q], row + seen.end[seen.high - 1], 0.0F);
            sums[q].rescale = section[q].add(sums[q].strips.largest, sums[q].strips.sum);
            sums[q].out = block.queries[q].out;
        }
        form.sum(page, seen, sums, weights);
        if ((page + 1) % kSectionPages != 0 && page != last_page) continue;
        for (int q = 0; q < block.count; ++q) {
            float* before = earlier + q * kv.head_dim_v;
            float* out = block.queries[q].out;
            if (!section[q].begun) {
                if (page == last_page) std::copy_n(before, kv.head_dim_v, out);  // the query sees no page of this section
                continue;
            }
            const Rescale rescale = total[q].add(section[q].largest, section[q].sum);
            float* to = page == last_page ? out : before;
            for (std::int64_t i = 0; i < kv.head_dim_v; i += kLanes) store(rescaled(rescale, before + i, load(out + i)), to + i);
            section[q].begun = false;
        }
    }
    for (int q = 0; q < block.count; ++q) {
        const VF sum = hn::Set(DF(), total[q].sum);
        float* out = block.queries[q].out;
        for (std::int64_t i = 0; i < kv.head_dim_v; i += kLanes) store(hn::Div(load(out + i), sum), out + i);
    }
}

#endif

void attend_block(const AttentionShape& shape, const KvView& kv, const QueryBlock& block) {
#if HEADROOM_KERNELS
    if (kv.type == KvType::f16 && HalvesForm::fits(kv)) return attend<HalvesForm>(shape, kv, block);
    if (kv.type == KvType::q8_0 && CodesForm::fits(kv)) return attend<CodesForm>(shape, kv, block);
#endif
    for (int i = 0; i < block.count; ++i) {
        const Query& query = block.queries[i];
        reference::attention(shape, query.q, query.position, block.kv_head, kv, query.out);
    }
}

}  // namespace headroom::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace headroom::cpu {

HWY_EXPORT(to_half_row);
HWY_EXPORT(quantize_kv_block);
HWY_EXPORT(attend_block);

void store_kv(ThreadPool& pool, const KvView& kv, const float* k, std::int64_t k_stride, const float* v, std::int64_t v_stride,
              std::int64_t tokens, std::int64_t first_position) {
    const reference::KvRounding rounding{HWY_DYNAMIC_DISPATCH(to_half_row), HWY_DYNAMIC_DISPATCH(quantize_kv_block)};
    const std::int64_t width = kv.kv_heads * (kv.head_dim + kv.head_dim_v);
    pool.parallel_for(tokens, 1 + 32768 / width, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t t = begin; t < end; ++t) {
            reference::store_kv(kv, k + t * k_stride, v + t * v_stride, first_position + t, rounding);
        }
    });
}

void attention(ThreadPool& pool, const AttentionShape& shape, const float* q, std::int64_t q_stride, const KvView& kv, float* out,
               std::int64_t out_stride) {
    const auto attend_here = HWY_DYNAMIC_DISPATCH(attend_block);
    const std::int64_t group = shape.heads / kv.kv_heads;
    // Queries of a KV head in the order token, head of the group; small blocks where there would be too few of them for the threads.
    const std::int64_t queries = shape.tokens * group;
    const std::int64_t wanted = std::max<std::int64_t>(1, queries * kv.kv_heads / (2 * pool.size()));
    const std::int64_t size = std::min<std::int64_t>({kQueryBlock, queries, wanted});
    const std::int64_t blocks = (queries + size - 1) / size;
    // The last tokens see the most: they go first, so that no thread is left with a long block at the end.
    pool.parallel_for(blocks * kv.kv_heads, 1, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t i = begin; i < end; ++i) {
            QueryBlock block;
            block.kv_head = i % kv.kv_heads;
            const std::int64_t first = (blocks - 1 - i / kv.kv_heads) * size;
            block.count = static_cast<int>(std::min(size, queries - first));
            for (std::int64_t j = 0; j < block.count; ++j) {
                const std::int64_t token = (first + j) / group;
                const std::int64_t head = block.kv_head * group + (first + j) % group;
                block.queries[j] = {q + token * q_stride + head * kv.head_dim, out + token * out_stride + head * kv.head_dim_v,
                                    shape.first_position + token};
            }
            attend_here(shape, kv, block);
        }
    });
}

}  // namespace headroom::cpu

#endif  // HWY_ONCE
