#pragma once

// The operators on the CPU. Each is one file here, with Google Highway kernels chosen at run time for the processor; each has a plain
// scalar twin in reference.h that gives the same bits. The arithmetic, operator by operator, is docs/arithmetic.md: results never
// depend on the number of threads, on the batch size or on the processor.
//
// Shapes are written [rows, columns], the last one contiguous. Pointers must not overlap unless said. No function allocates
// except where it says so; none throws. A ThreadPool argument may be used by one call at a time.

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/thread_pool.h"
#include "core/compute/cpu/activations.h"
#include "core/compute/cpu/kv_view.h"
#include "core/compute/cpu/matrix.h"

namespace headroom::cpu {

// out[cols] = row `row` of w, dequantized to float (exactly: scale times integer, as the type's formula says).
void dequantize_row(const Matrix& w, std::int64_t row, float* out);

// One product of the batch x: y[t * y_stride + r] = sum over k of w[r, k] * x[t, k], for every token t of x and every row r of w.
struct Product {
    Matrix w;               // [rows, x.cols()]
    float* y = nullptr;     // [x.tokens(), y_stride]
    std::int64_t y_stride = 0;
};
// Several products of the same activations in one parallel section (q, k and v; gate and up). x must hold the form that every
// w needs (see Activations::require). The bits of a token's result do not depend on the other tokens of the batch.
void matmul(ThreadPool& pool, std::span<const Product> products, const Activations& x);

// out[t, n] = x[t, n] * (1 / sqrt(mean of squares + eps)) * weight[n] for each of `rows` rows; out may be x. weight may be null
// (all ones). Row t begins at t * stride.
void rms_norm(ThreadPool& pool, const float* x, std::int64_t rows, std::int64_t n, std::int64_t stride, const float* weight,
              float eps, float* out);

enum class RopeLayout : std::uint8_t {
    adjacent,  // pairs (2i, 2i + 1): llama
    halves,    // pairs (i, i + n/2): "neox", qwen
};
// Rotates in place the first 2 * half elements of each head. x: [tokens, heads, head_dim], token t begins at t * stride.
// cosine, sine: [tokens, half], made on the host in double (model/rope.h).
void rope(ThreadPool& pool, float* x, std::int64_t tokens, std::int64_t heads, std::int64_t head_dim, std::int64_t stride,
          const float* cosine, const float* sine, std::int64_t half, RopeLayout layout);

// Stores k, v ([tokens, kv_heads * head_dim], token t at t * stride) as the view's type says (halves are rounded to nearest even) at
// positions first_position + t.
void store_kv(ThreadPool& pool, const KvView& kv, const float* k, std::int64_t k_stride, const float* v, std::int64_t v_stride,
              std::int64_t tokens, std::int64_t first_position);

struct AttentionShape {
    std::int64_t heads = 0;            // a multiple of kv_heads
    std::int64_t tokens = 0;           // queries, at positions first_position … first_position + tokens - 1
    std::int64_t first_position = 0;
    std::int64_t window = 0;           // sliding window: a query at p sees positions > p - window; 0: all up to p
    float scale = 0;                   // multiplies scores, usually 1 / sqrt(head_dim)
};
// Causal attention. q: [tokens, heads * head_dim] (token t at t * q_stride), out: [tokens, heads * head_dim_v] at out_stride.
// K and V of the queries' own positions must have been stored. Allocates scratch once per thread.
void attention(ThreadPool& pool, const AttentionShape& shape, const float* q, std::int64_t q_stride, const KvView& kv, float* out,
               std::int64_t out_stride);

// out[i] = silu(gate[i]) * up[i] with silu(x) = x / (1 + exp(-x)), over `rows` rows of n; out may be gate.
void swiglu(ThreadPool& pool, const float* gate, const float* up, std::int64_t rows, std::int64_t n, std::int64_t stride, float* out);

// The same for n values, on the calling thread.
void swiglu(const float* gate, const float* up, std::int64_t n, float* out);

// x[t, i] += y[t, i].
void add(ThreadPool& pool, float* x, const float* y, std::int64_t rows, std::int64_t n, std::int64_t x_stride, std::int64_t y_stride);
// x[t, i] += bias[i].
void add_bias(ThreadPool& pool, float* x, const float* bias, std::int64_t rows, std::int64_t n, std::int64_t stride);

// Router: softmax over n scores of each token, the `used` largest, lower index first on ties, largest first.
// scores: [tokens, n]. experts, weights: [tokens, used]. normalize: weights divided by their sum.
void route(const float* scores, std::int64_t tokens, std::int64_t n, std::int64_t used, bool normalize, std::int32_t* experts, float* weights);

// x[t, i] += sum over ranks, ascending, with fma, of weights[t, rank] * outputs[t * used + rank][i] (each [n]), the sum first, then the addition.
void combine_experts(ThreadPool& pool, float* x, std::int64_t x_stride, const float* const* outputs, const float* weights,
                     std::int64_t tokens, std::int64_t used, std::int64_t n);

// Softmax of n values in place, in the order of docs/arithmetic.md; the project's own exp. For sampling and log-probabilities.
void softmax(float* x, std::int64_t n);
// The project's exp of one value.
float exp(float x);
// Index of the largest value, the lowest such index.
std::int64_t argmax(const float* x, std::int64_t n);

// The name of the instruction set the kernels run with here ("AVX3_DL"), for the log and bench.
const char* instruction_set();

}  // namespace headroom::cpu
