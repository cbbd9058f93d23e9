#pragma once

// One tile of a product: the piece of work that matmul and matmul_experts hand to threads.

#include <cstdint>

#include "core/compute/cpu/activations_storage.h"
#include "core/compute/cpu/matrix.h"

namespace headroom::cpu {

struct Tile {
    const Matrix* w;
    std::int64_t row;            // the first; kTileRows of them, or what is left of the matrix
    const Activations::Storage* x;
    const std::int32_t* tokens;  // rows of x, or null: all from 0
    std::int64_t count;          // tokens
    float* y;                    // [count, y_stride], column 0 is row 0 of the matrix
    std::int64_t y_stride;
};

// Rows to a tile: a multiple of what every target's panels hold.
inline constexpr std::int64_t kTileRows = 16;

}  // namespace headroom::cpu
