#pragma once

// Pieces of products: what matmul and Mixture hand to threads, and the kernels that compute them.

#include <algorithm>
#include <cstdint>

#include "core/compute/cpu/activations_storage.h"
#include "core/compute/cpu/matrix.h"

namespace headroom::cpu {

// Neighbouring rows of a matrix with some tokens.
struct Tile {
    const Matrix* w;
    std::int64_t row;            // the first, a multiple of kTileRows
    std::int64_t rows;           // a multiple of kTileRows, or up to the matrix's end
    const Activations::Storage* x;
    const std::int32_t* tokens;  // rows of x, or null: all from 0
    std::int64_t count;          // tokens
    float* y;                    // [count, y_stride], column 0 is row 0 of the matrix
    std::int64_t y_stride;

    [[nodiscard]] std::int64_t token(std::int64_t i) const noexcept { return tokens != nullptr ? tokens[i] : i; }
};

// A multiple of the rows that any kernel takes at once.
inline constexpr std::int64_t kTileRows = 16;

// Of `count` tiles: so many to a piece of parallel work: enough pieces that no thread waits long for the last, each long enough to be worth fetching.
inline std::int64_t tile_grain(std::int64_t count, int threads) noexcept { return std::clamp<std::int64_t>(count / (threads * 8), 1, 8); }

// Computes a tile by the kernel for its type and its number of tokens.
void multiply(const Tile& tile);

using TileKernel = void (*)(const Tile&);
// Quantized weights, a few or many tokens: each panel of weights is unpacked once for all of them.
TileKernel panel_kernel();
// Quantized weights, one token (or very few), whose activations have quads. Not for Q5_0 and Q5_1.
TileKernel row_kernel();
// Float weights.
TileKernel float_kernel();
// Any weights, by the scalar reference.
void multiply_plain(const Tile& tile);

}  // namespace headroom::cpu
