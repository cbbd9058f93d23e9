#pragma once

// Quantization of activation rows, by the kernels of this processor.

#include <cstdint>

#include "core/compute/cpu/activations_storage.h"

namespace headroom::cpu {

// One row of `cols` values; its groups lie `step` apart.
void quantize_row(const float* x, std::int64_t cols, Group256* out, std::int64_t step);
void quantize_row(const float* x, std::int64_t cols, Groups32* out, std::int64_t step);

// The quads of a quantized row of `cols` values, from groups and to quads that lie `step` apart.
void interleave(const Group256* groups, std::int64_t cols, Quad256* out, std::int64_t step);
void interleave(const Groups32* groups, std::int64_t cols, Quad32* out, std::int64_t step);

}  // namespace headroom::cpu
