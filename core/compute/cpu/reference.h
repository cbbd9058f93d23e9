#pragma once

// The operators again, plain and scalar: what docs/arithmetic.md says, line by line. The fast operators give the same bits (that is
// their test); where a processor lacks the instructions for them, these run in their place. Arguments as in ops.h.

#include <cstdint>
#include <span>

#include "core/compute/cpu/activations_storage.h"
#include "core/compute/cpu/matrix.h"
#include "core/compute/cpu/ops.h"

namespace headroom::cpu::reference {

// x: 256 values.
void quantize(const float* x, Group256& out) noexcept;
// x: count values, a multiple of 32, at most 256.
void quantize(const float* x, std::int64_t count, Groups32& out) noexcept;

void dequantize_row(const Matrix& w, std::int64_t row, float* out) noexcept;
// One element of a product: row `row` of w with token `token` of x.
float dot(const Matrix& w, std::int64_t row, const Activations::Storage& x, std::int64_t token) noexcept;

// A sum of 32 strided accumulators, folded (16, 8, 4, 2, 1).
float fold(const float (&accumulators)[32]) noexcept;

void rms_norm(const float* x, std::int64_t n, const float* weight, float eps, float* out) noexcept;
void rope(float* x, std::int64_t heads, std::int64_t head_dim, const float* cosine, const float* sine, std::int64_t half,
          RopeLayout layout) noexcept;
void to_half(const float* x, std::int64_t n, std::uint16_t* out) noexcept;
// The codes of a block of kKvBlock elements as q8_0 keeps keys and values; returns the scale, a half.
std::uint16_t quantize_kv(const float* x, std::int8_t* codes) noexcept;
// One position: k [kv_heads, head_dim], v [kv_heads, head_dim_v]. The fast operator is this with its own ways of rounding.
struct KvRounding {
    void (*to_half)(const float* x, std::int64_t n, std::uint16_t* out) = reference::to_half;
    std::uint16_t (*quantize)(const float* x, std::int8_t* codes) = quantize_kv;
};
void store_kv(const KvView& kv, const float* k, const float* v, std::int64_t position, const KvRounding& rounding = {}) noexcept;
// One query of one head (q: [head_dim]) at position `position`; out: [head_dim_v].
void attention(const AttentionShape& shape, const float* q, std::int64_t position, std::int64_t kv_head, const KvView& kv, float* out);
void swiglu(const float* gate, const float* up, std::int64_t n, float* out) noexcept;
void combine_experts(float* x, const float* const* outputs, const float* weights, std::int64_t used, std::int64_t n) noexcept;
void softmax(float* x, std::int64_t n) noexcept;

}  // namespace headroom::cpu::reference
