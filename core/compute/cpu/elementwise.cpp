#include "core/compute/cpu/ops.h"
#include "core/compute/cpu/reference.h"

namespace headroom::cpu {
namespace {

// Rows of n elements to a piece of parallel work: about 16 Ki elements, so that a single token's row is not worth waking anybody.
std::int64_t grain(std::int64_t n) { return 1 + 16384 / n; }

}  // namespace

void swiglu(ThreadPool& pool, const float* gate, const float* up, std::int64_t rows, std::int64_t n, std::int64_t stride, float* out) {
    pool.parallel_for(rows, grain(n), [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t t = begin; t < end; ++t) reference::swiglu(gate + t * stride, up + t * stride, n, out + t * stride);
    });
}

void add(ThreadPool& pool, float* x, const float* y, std::int64_t rows, std::int64_t n, std::int64_t x_stride, std::int64_t y_stride) {
    pool.parallel_for(rows, grain(n), [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t t = begin; t < end; ++t) {
            for (std::int64_t i = 0; i < n; ++i) x[t * x_stride + i] = x[t * x_stride + i] + y[t * y_stride + i];
        }
    });
}

void add_bias(ThreadPool& pool, float* x, const float* bias, std::int64_t rows, std::int64_t n, std::int64_t stride) {
    add(pool, x, bias, rows, n, stride, 0);
}

void combine_experts(ThreadPool& pool, float* x, std::int64_t x_stride, const float* const* outputs, const float* weights,
                     std::int64_t tokens, std::int64_t used, std::int64_t n) {
    pool.parallel_for(tokens, grain(n * used), [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t t = begin; t < end; ++t) reference::combine_experts(x + t * x_stride, outputs + t * used, weights + t * used, used, n);
    });
}

}  // namespace headroom::cpu
