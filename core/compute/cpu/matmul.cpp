#include <algorithm>

#include "core/compute/cpu/ops.h"
#include "core/compute/cpu/product.h"
#include "core/compute/cpu/reference.h"

namespace headroom::cpu {
namespace {

using gguf::TensorType;

std::int64_t tiles(const Matrix& w) { return (w.rows + kTileRows - 1) / kTileRows; }

// Tiles to a piece of parallel work: enough pieces that no thread waits long for the last, each long enough to be worth fetching.
std::int64_t tile_grain(std::int64_t count, int threads) { return std::clamp<std::int64_t>(count / (threads * 8), 1, 8); }

// Up to so many tokens unpacking a panel costs more than reading the rows once for each token.
constexpr std::int64_t kRowwiseTokens = 1;

TileKernel kernel_for(TensorType type, std::int64_t count, const Activations::Storage& x) {
    if (form_for(type) == ActivationForm::floats) return float_kernel();
    const bool has_row_kernel = type != TensorType::q5_0 && type != TensorType::q5_1;
    return has_row_kernel && count <= kRowwiseTokens && x.tokens <= kQuadTokens ? row_kernel() : panel_kernel();
}

// All products in one parallel section. make_tile(product) is a tile without its rows.
template <class Products, class MakeTile>
void run_tiles(ThreadPool& pool, const Products& products, MakeTile make_tile) {
    std::int64_t total = 0;
    for (const auto& product : products) total += tiles(product.w);
    pool.parallel_for(total, tile_grain(total, pool.size()), [&](std::int64_t begin, std::int64_t end, int) {
        std::size_t i = 0;
        std::int64_t offset = 0;  // of product i among all tiles
        while (begin < end) {
            while (begin - offset >= tiles(products[i].w)) offset += tiles(products[i++].w);
            const std::int64_t last = std::min(end, offset + tiles(products[i].w));
            Tile tile = make_tile(products[i]);
            tile.row = (begin - offset) * kTileRows;
            tile.rows = (last - begin) * kTileRows;
            kernel_for(tile.w->type, tile.count, *tile.x)(tile);
            begin = last;
        }
    });
}

}  // namespace

void multiply_plain(const Tile& tile) {
    const std::int64_t end = std::min(tile.w->rows, tile.row + tile.rows);
    for (std::int64_t i = 0; i < tile.count; ++i) {
        for (std::int64_t r = tile.row; r < end; ++r) tile.y[i * tile.y_stride + r] = reference::dot(*tile.w, r, *tile.x, tile.token(i));
    }
}

void dequantize_row(const Matrix& w, std::int64_t row, float* out) { reference::dequantize_row(w, row, out); }

void matmul(ThreadPool& pool, std::span<const Product> products, const Activations& x) {
    const Activations::Storage& storage = x.storage();
    run_tiles(pool, products, [&](const Product& p) { return Tile{&p.w, 0, 0, &storage, nullptr, storage.tokens, p.y, p.y_stride}; });
}

void matmul_experts(ThreadPool& pool, std::span<const ExpertProduct> products, const Activations& x) {
    const Activations::Storage& storage = x.storage();
    run_tiles(pool, products, [&](const ExpertProduct& p) {
        return Tile{&p.w, 0, 0, &storage, p.tokens.data(), static_cast<std::int64_t>(p.tokens.size()), p.y, p.y_stride};
    });
}

}  // namespace headroom::cpu
