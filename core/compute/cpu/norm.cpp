#include "core/compute/cpu/ops.h"
#include "core/compute/cpu/reference.h"

namespace headroom::cpu {

void rms_norm(ThreadPool& pool, const float* x, std::int64_t rows, std::int64_t n, std::int64_t stride, const float* weight,
              float eps, float* out) {
    pool.parallel_for(rows, 1 + 8192 / n, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t t = begin; t < end; ++t) reference::rms_norm(x + t * stride, n, weight, eps, out + t * stride);
    });
}

}  // namespace headroom::cpu
