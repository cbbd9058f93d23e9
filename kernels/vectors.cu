// Rows of floats: embeddings, RMS norms, SwiGLU, and the quantized forms that products read.

#include "core/compute/cpu/blocks.h"
#include "kernels/arithmetic.h"
#include "kernels/arguments.h"
#include "kernels/copies.h"
#include "kernels/shares.h"

namespace headroom::device {
namespace {

using gguf::TensorType;

// ---- Blocks of the quantized types, one element at a time (cpu::unpack) ----

HR_DEVICE float half_at(const std::uint8_t* bytes) { return half_to_float(static_cast<std::uint16_t>(bytes[0] | (bytes[1] << 8))); }

constexpr std::uint64_t packed_levels(int first) {
    std::uint64_t packed = 0;
    for (int i = 0; i < 8; ++i) packed |= static_cast<std::uint64_t>(static_cast<std::uint8_t>(cpu::kNonlinearLevels[first + i])) << (8 * i);
    return packed;
}
constexpr std::uint64_t low_levels = packed_levels(0), high_levels = packed_levels(8);
HR_DEVICE int level(int q) { return static_cast<std::int8_t>((q < 8 ? low_levels : high_levels) >> (8 * (q & 7))); }

// Scale j and minimum j of Q4_K and Q5_K.
HR_DEVICE void scale_q4_k(const std::uint8_t* bytes, int j, int& scale, int& minimum) {
    if (j < 4) {
        scale = bytes[j] & 63;
        minimum = bytes[j + 4] & 63;
    } else {
        scale = (bytes[j + 4] & 15) | ((bytes[j - 4] >> 6) << 4);
        minimum = (bytes[j + 4] >> 4) | ((bytes[j] >> 6) << 4);
    }
}

// Element k of a superblock: (d * scale) * q - dmin * minimum, or without the second product.
HR_DEVICE float with_minimum(float d, int scale, int q, float dmin, int minimum) {
    return (d * static_cast<float>(scale)) * static_cast<float>(q) - dmin * static_cast<float>(minimum);
}
HR_DEVICE float without_minimum(float d, int scale, int q) { return (d * static_cast<float>(scale)) * static_cast<float>(q); }

HR_DEVICE float element_q2_k(const std::uint8_t* block, int k) {
    using L = cpu::Q2K;
    const int scales = block[L::kScales + k / 16];
    const int q = (block[L::kLow + 32 * (k / 128) + k % 32] >> (2 * (k % 128 / 32))) & 3;
    return with_minimum(half_at(block + L::kD), scales & 15, q, half_at(block + L::kDMin), scales >> 4);
}

HR_DEVICE float element_q3_k(const std::uint8_t* block, int k) {
    using L = cpu::Q3K;
    const int j = k / 16, half = k / 128, quarter = k % 128 / 32;
    const int low_scale = j < 8 ? block[L::kScales + j] & 15 : block[L::kScales + j - 8] >> 4;
    const int high_scale = (block[L::kScales + 8 + j % 4] >> (2 * (j / 4))) & 3;
    const int low = (block[L::kLow + 32 * half + k % 32] >> (2 * quarter)) & 3;
    const int high = (block[L::kMask + k % 32] >> (4 * half + quarter)) & 1;
    return without_minimum(half_at(block + L::kD), (low_scale | (high_scale << 4)) - 32, low + 4 * high - 4);
}

HR_DEVICE float element_q4_k(const std::uint8_t* block, int k) {
    using L = cpu::Q4K;
    int scale, minimum;
    scale_q4_k(block + L::kScales, k / 32, scale, minimum);
    const int byte = block[L::kLow + 32 * (k / 64) + k % 32];
    return with_minimum(half_at(block + L::kD), scale, k % 64 < 32 ? byte & 15 : byte >> 4, half_at(block + L::kDMin), minimum);
}

HR_DEVICE float element_q5_k(const std::uint8_t* block, int k) {
    using L = cpu::Q5K;
    int scale, minimum;
    scale_q4_k(block + L::kScales, k / 32, scale, minimum);
    const int byte = block[L::kLow + 32 * (k / 64) + k % 32];
    const int high = (block[L::kHigh + k % 32] >> (k / 32)) & 1;
    const int q = (k % 64 < 32 ? byte & 15 : byte >> 4) | (high << 4);
    return with_minimum(half_at(block + L::kD), scale, q, half_at(block + L::kDMin), minimum);
}

HR_DEVICE float element_q6_k(const std::uint8_t* block, int k) {
    using L = cpu::Q6K;
    const int half = k / 128, quarter = k % 128 / 32;
    const int byte = block[L::kLow + 64 * half + 32 * (quarter % 2) + k % 32];
    const int low = quarter < 2 ? byte & 15 : byte >> 4;
    const int high = (block[L::kHigh + 32 * half + k % 32] >> (2 * quarter)) & 3;
    return without_minimum(half_at(block + L::kD), static_cast<std::int8_t>(block[L::kScales + k / 16]), (low | (high << 4)) - 32);
}

HR_DEVICE float element_iq4_xs(const std::uint8_t* block, int k) {
    using L = cpu::Iq4Xs;
    const int j = k / 32;
    const int low = (block[L::kScalesLow + j / 2] >> (4 * (j % 2))) & 15;
    const int high = (block[L::kScalesHigh + j / 4] >> (2 * (j % 4))) & 3;
    const int byte = block[L::kLow + 16 * j + k % 16];
    return without_minimum(half_at(block + L::kD), (low | (high << 4)) - 32, level(k % 32 < 16 ? byte & 15 : byte >> 4));
}

HR_DEVICE int nibble(const std::uint8_t* low, int k) { return k < 16 ? low[k] & 15 : low[k - 16] >> 4; }
HR_DEVICE int high_bit(const std::uint8_t* high, int k) { return ((high[k / 8] >> (k % 8)) & 1) << 4; }

// Element k of a 32-wide block: d * q, or d * q + m.
HR_DEVICE float element_32(TensorType type, const std::uint8_t* block, int k) {
    const float d = half_at(block);
    switch (type) {
        case TensorType::q4_0: return d * static_cast<float>(nibble(block + cpu::Q40::kLow, k) - 8);
        case TensorType::q4_1: return d * static_cast<float>(nibble(block + cpu::Q41::kLow, k)) + half_at(block + cpu::Q41::kM);
        case TensorType::q5_0: {
            using L = cpu::Q50;
            return d * static_cast<float>(nibble(block + L::kLow, k) + high_bit(block + L::kHigh, k) - 16);
        }
        case TensorType::q5_1: {
            using L = cpu::Q51;
            return d * static_cast<float>(nibble(block + L::kLow, k) + high_bit(block + L::kHigh, k)) + half_at(block + L::kM);
        }
        case TensorType::q8_0: return d * static_cast<float>(static_cast<std::int8_t>(block[cpu::Q80::kLow + k]));
        default: return d * static_cast<float>(level(nibble(block + cpu::Iq4Nl::kLow, k)));
    }
}

// Element i of a row.
HR_DEVICE float element(TensorType type, const std::uint8_t* row, int i) {
    const int b = i / 256, k = i % 256;
    switch (type) {
        case TensorType::f32: return reinterpret_cast<const float*>(row)[i];
        case TensorType::f16: return half_to_float(reinterpret_cast<const std::uint16_t*>(row)[i]);
        case TensorType::bf16: return bfloat_to_float(reinterpret_cast<const std::uint16_t*>(row)[i]);
        case TensorType::q2_k: return element_q2_k(row + static_cast<std::int64_t>(b) * cpu::Q2K::kBytes, k);
        case TensorType::q3_k: return element_q3_k(row + static_cast<std::int64_t>(b) * cpu::Q3K::kBytes, k);
        case TensorType::q4_k: return element_q4_k(row + static_cast<std::int64_t>(b) * cpu::Q4K::kBytes, k);
        case TensorType::q5_k: return element_q5_k(row + static_cast<std::int64_t>(b) * cpu::Q5K::kBytes, k);
        case TensorType::q6_k: return element_q6_k(row + static_cast<std::int64_t>(b) * cpu::Q6K::kBytes, k);
        case TensorType::iq4_xs: return element_iq4_xs(row + static_cast<std::int64_t>(b) * cpu::Iq4Xs::kBytes, k);
        default: break;
    }
    int bytes = cpu::Q40::kBytes;  // of a block; IQ4_NL has as many
    if (type == TensorType::q4_1) bytes = cpu::Q41::kBytes;
    if (type == TensorType::q5_0) bytes = cpu::Q50::kBytes;
    if (type == TensorType::q5_1) bytes = cpu::Q51::kBytes;
    if (type == TensorType::q8_0) bytes = cpu::Q80::kBytes;
    return element_32(type, row + static_cast<std::int64_t>(i / 32) * bytes, i % 32);
}

}  // namespace

HR_KERNEL(embed_rows, EmbedArguments, 256) {
    const int i = block_y() * threads() + thread();
    if (i >= a.table.cols) return;
    const std::uint8_t* row = a.table.data + static_cast<std::uint64_t>(a.tokens[block_x()]) * a.table.row_bytes;
    a.x[static_cast<std::int64_t>(block_x()) * a.table.cols + i] = element(static_cast<TensorType>(a.table.type), row, i);
}

namespace {

// One row, by a block of at least 256 threads. x, weights: where they are read.
HR_DEVICE void norm_row(const kernels::NormArguments& a, std::int64_t row, const float* x, const float* weights) {
    float v[kShare];
    const float inverse = 1.0F / sqrt(sum_of_squares(x, a.n) / static_cast<float>(a.n) + a.epsilon);
    for (int begin = warp() * 256; begin < a.n; begin += threads() * kShare) {
        const int first = begin + lane() * kShare;
        float weight[kShare];
        load_share(x, first, a.n, v);
        load_share(weights, first, a.n, weight);
        HR_UNROLL
        for (int i = 0; i < kShare; ++i) v[i] = (v[i] * inverse) * weight[i];
        store_forms(a.out, a.groups_256, a.groups_32, row, first, a.n, v);
    }
}

}  // namespace

// With a weight: a block of 256 to 1,024 threads for each row. Without: a warp for each 256 elements of all rows.
HR_KERNEL(norm_rows, NormArguments, 1024) {
    float v[kShare];
    if (a.weight == nullptr) {
        const int pieces = (a.n + 255) / 256;
        const std::int64_t piece = static_cast<std::int64_t>(block_x()) * (threads() / kWarp) + warp();
        const std::int64_t row = piece / pieces;
        if (row >= a.count) return;
        const int first = static_cast<int>(piece % pieces) * 256 + lane() * kShare;
        load_share(a.x + (a.rows != nullptr ? a.rows[row] : row) * a.n, first, a.n, v);
        store_forms(a.out, a.groups_256, a.groups_32, row, first, a.n, v);
        return;
    }
    const std::int64_t row = block_x();
    norm_row(a, row, a.x + (a.rows != nullptr ? a.rows[row] : row) * a.n, a.weight);
}

// A block for each row, which stays in shared memory, and behind it the norm's weights: they come from the device's memory, since no step reads them twice, but
// while the kernel before is still at work.
HR_EARLY_KERNEL(combine_norm_rows, CombineNormArguments, 512) {
    constexpr int kTogether = 8;  // outputs on their way
    const kernels::CombineArguments& c = a.combine;
    const std::int64_t token = block_x();
    float* row = reinterpret_cast<float*>(dynamic_shared());
    float* weights = row + c.n;
    for (int i = thread() * 4; i < c.n; i += threads() * 4) start_copy(weights + i, a.norm.weight + i, true);
    close_copies();
    wait_for_previous();
    const float* outputs = c.outputs + token * c.used * c.n;
    const float* shares = c.shares + token * c.used;
    for (int i = thread() * 4; i < c.n; i += threads() * 4) {
        Four& x = *reinterpret_cast<Four*>(c.x + token * c.n + i);
        Four own = x, sum = {};
        for (int first = 0; first < c.used; first += kTogether) {
            Four output[kTogether];
            float share[kTogether];
            HR_UNROLL
            for (int k = 0; k < kTogether; ++k) {
                const int rank = first + k < c.used ? first + k : first;
                output[k] = *reinterpret_cast<const Four*>(outputs + static_cast<std::int64_t>(rank) * c.n + i);
                share[k] = shares[rank];
            }
            HR_UNROLL
            for (int k = 0; k < kTogether; ++k) {
                if (first + k >= c.used) continue;
                HR_UNROLL
                for (int j = 0; j < 4; ++j) sum.x[j] = first + k == 0 ? share[k] * output[k].x[j] : fma(share[k], output[k].x[j], sum.x[j]);
            }
        }
        HR_UNROLL
        for (int j = 0; j < 4; ++j) own.x[j] = own.x[j] + sum.x[j];
        x = own;
        *reinterpret_cast<Four*>(row + i) = own;
    }
    wait_for_copies<0>();
    sync();
    norm_row(a.norm, token, row, weights);
}

// A warp for each 256 elements of all rows.
HR_KERNEL(swiglu_rows, SwigluArguments, 256) {
    const int pieces = (a.n + 255) / 256;
    const std::int64_t piece = static_cast<std::int64_t>(block_x()) * (threads() / kWarp) + warp();
    const std::int64_t row = piece / pieces;
    if (row >= a.rows) return;
    const int first = static_cast<int>(piece % pieces) * 256 + lane() * kShare;
    float gate[kShare], up[kShare];
    load_share(a.gate + row * a.n, first, a.n, gate);
    load_share(a.up + row * a.n, first, a.n, up);
    HR_UNROLL
    for (int i = 0; i < kShare; ++i) gate[i] = silu(gate[i]) * up[i];
    store_forms(a.out, a.groups_256, a.groups_32, row, first, a.n, gate);
}

}  // namespace headroom::device
