#include "core/compute/cpu/ops.h"
#include "core/compute/cpu/reference.h"

namespace headroom::cpu {

void store_kv(ThreadPool& pool, const KvView& kv, const float* k, std::int64_t k_stride, const float* v, std::int64_t v_stride,
              std::int64_t tokens, std::int64_t first_position) {
    pool.parallel_for(tokens, 16, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t t = begin; t < end; ++t) {
            const std::int64_t page = (first_position + t) / kPagePositions;
            const std::int64_t slot = (first_position + t) % kPagePositions;
            for (std::int64_t h = 0; h < kv.kv_heads; ++h) {
                const std::int64_t at = h * kPagePositions + slot;
                reference::to_half(k + t * k_stride + h * kv.head_dim, kv.head_dim, kv.k_pages[page] + at * kv.head_dim);
                reference::to_half(v + t * v_stride + h * kv.head_dim_v, kv.head_dim_v, kv.v_pages[page] + at * kv.head_dim_v);
            }
        }
    });
}

void attention(ThreadPool& pool, const AttentionShape& shape, const float* q, std::int64_t q_stride, const KvView& kv, float* out,
               std::int64_t out_stride) {
    const std::int64_t group = shape.heads / kv.kv_heads;
    pool.parallel_for(shape.tokens * shape.heads, 1, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t i = begin; i < end; ++i) {
            const std::int64_t t = i / shape.heads;
            const std::int64_t h = i % shape.heads;
            reference::attention(shape, q + t * q_stride + h * kv.head_dim, shape.first_position + t, h / group, kv,
                                 out + t * out_stride + h * kv.head_dim_v);
        }
    });
}

}  // namespace headroom::cpu
