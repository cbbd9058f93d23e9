#include "core/compute/cpu/ops.h"
#include "core/compute/cpu/reference.h"

namespace headroom::cpu {

void dequantize_row(const Matrix& w, std::int64_t row, float* out) { reference::dequantize_row(w, row, out); }

void matmul(ThreadPool& pool, std::span<const Product> products, const Activations& x) {
    const Activations::Storage& storage = x.storage();
    for (const Product& product : products) {
        pool.parallel_for(product.w.rows, 16, [&](std::int64_t begin, std::int64_t end, int) {
            for (std::int64_t r = begin; r < end; ++r) {
                for (std::int64_t t = 0; t < storage.tokens; ++t) {
                    product.y[t * product.y_stride + r] = reference::dot(product.w, r, storage, t);
                }
            }
        });
    }
}

void matmul_experts(ThreadPool& pool, std::span<const ExpertProduct> products, const Activations& x) {
    const Activations::Storage& storage = x.storage();
    for (const ExpertProduct& product : products) {
        pool.parallel_for(product.w.rows, 16, [&](std::int64_t begin, std::int64_t end, int) {
            for (std::int64_t r = begin; r < end; ++r) {
                for (std::size_t i = 0; i < product.tokens.size(); ++i) {
                    product.y[static_cast<std::int64_t>(i) * product.y_stride + r] = reference::dot(product.w, r, storage, product.tokens[i]);
                }
            }
        });
    }
}

}  // namespace headroom::cpu
