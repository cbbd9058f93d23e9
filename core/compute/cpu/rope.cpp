#include "core/compute/cpu/ops.h"
#include "core/compute/cpu/reference.h"

namespace headroom::cpu {

void rope(ThreadPool& pool, float* x, std::int64_t tokens, std::int64_t heads, std::int64_t head_dim, std::int64_t stride,
          const float* cosine, const float* sine, std::int64_t half, RopeLayout layout) {
    pool.parallel_for(tokens, 4, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t t = begin; t < end; ++t) {
            reference::rope(x + t * stride, heads, head_dim, cosine + t * half, sine + t * half, half, layout);
        }
    });
}

}  // namespace headroom::cpu
