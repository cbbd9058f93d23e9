#pragma once

#include <cstddef>
#include <cstdint>

#include "core/gguf/types.h"

namespace headroom::cpu {

// A weight matrix where it lies (the mapped file): row-major, rows of whole blocks.
struct Matrix {
    gguf::TensorType type = gguf::TensorType::f32;
    const std::byte* data = nullptr;
    std::int64_t rows = 0;       // outputs
    std::int64_t cols = 0;       // inputs: a multiple of the type's block
    std::int64_t row_bytes = 0;  // cols / block_elements * block_bytes
};

// Matrix `index` of a stack [count, rows, cols] (experts).
[[nodiscard]] inline Matrix slice(Matrix first, std::int64_t index) noexcept {
    first.data += index * first.rows * first.row_bytes;
    return first;
}

}  // namespace headroom::cpu
