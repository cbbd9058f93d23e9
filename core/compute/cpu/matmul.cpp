#include <algorithm>

#include "core/compute/cpu/ops.h"
#include "core/compute/cpu/product.h"
#include "core/compute/cpu/reference.h"

namespace headroom::cpu {
namespace {

using gguf::TensorType;

std::int64_t tiles(const Matrix& w) { return (w.rows + kTileRows - 1) / kTileRows; }

// Up to so many tokens unpacking a panel costs more than reading the rows once for each token.
constexpr std::int64_t kRowwiseTokens = 1;

TileKernel kernel_for(TensorType type, std::int64_t count, const Activations::Storage& x) {
    if (form_for(type) == ActivationForm::floats) return float_kernel();
    const bool has_row_kernel = type != TensorType::q5_0 && type != TensorType::q5_1;
    return has_row_kernel && count <= kRowwiseTokens && x.tokens <= kQuadTokens ? row_kernel() : panel_kernel();
}

}  // namespace

void multiply(const Tile& tile) { kernel_for(tile.w->type, tile.count, *tile.x)(tile); }

// All products in one parallel section.
void matmul(ThreadPool& pool, std::span<const Product> products, const Activations& x) {
    const Activations::Storage& storage = x.storage();
    std::int64_t total = 0;
    for (const auto& product : products) total += tiles(product.w);
    pool.parallel_for(total, tile_grain(total, pool.size()), [&](std::int64_t begin, std::int64_t end, int) {
        std::size_t i = 0;
        std::int64_t offset = 0;  // of product i among all tiles
        while (begin < end) {
            while (begin - offset >= tiles(products[i].w)) offset += tiles(products[i++].w);
            const std::int64_t last = std::min(end, offset + tiles(products[i].w));
            const Product& p = products[i];
            multiply({&p.w, (begin - offset) * kTileRows, (last - begin) * kTileRows, &storage, nullptr, storage.tokens, p.y, p.y_stride});
            begin = last;
        }
    });
}

void multiply_plain(const Tile& tile) {
    const std::int64_t end = std::min(tile.w->rows, tile.row + tile.rows);
    for (std::int64_t i = 0; i < tile.count; ++i) {
        for (std::int64_t r = tile.row; r < end; ++r) tile.y[i * tile.y_stride + r] = reference::dot(*tile.w, r, *tile.x, tile.token(i));
    }
}

void dequantize_row(const Matrix& w, std::int64_t row, float* out) { reference::dequantize_row(w, row, out); }

}  // namespace headroom::cpu
