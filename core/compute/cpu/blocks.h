#pragma once

// The blocks of the quantized types, element by element: what the file's bytes mean. Used by the scalar reference and to dequantize
// rows; the fast kernels unpack whole panels of rows instead (panel-inl.h). Source: the GGUF specification of the ggml project.

#include <cstddef>
#include <cstdint>

#include "core/gguf/types.h"

namespace headroom::cpu {

inline constexpr int kSuperblock = 256;
inline constexpr int kBlock = 32;

// The sixteen levels of IQ4_NL and IQ4_XS.
inline constexpr std::int8_t kNonlinearLevels[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

// Sizes and offsets in bytes.
struct Q2K { static constexpr int kBytes = 84, kScales = 0, kLow = 16, kD = 80, kDMin = 82; };
struct Q3K { static constexpr int kBytes = 110, kMask = 0, kLow = 32, kScales = 96, kD = 108; };
struct Q4K { static constexpr int kBytes = 144, kD = 0, kDMin = 2, kScales = 4, kLow = 16; };
struct Q5K { static constexpr int kBytes = 176, kD = 0, kDMin = 2, kScales = 4, kHigh = 16, kLow = 48; };
struct Q6K { static constexpr int kBytes = 210, kLow = 0, kHigh = 128, kScales = 192, kD = 208; };
struct Iq4Xs { static constexpr int kBytes = 136, kD = 0, kScalesHigh = 2, kScalesLow = 4, kLow = 8; };
struct Q40 { static constexpr int kBytes = 18, kD = 0, kLow = 2; };
struct Q41 { static constexpr int kBytes = 20, kD = 0, kM = 2, kLow = 4; };
struct Q50 { static constexpr int kBytes = 22, kD = 0, kHigh = 2, kLow = 6; };
struct Q51 { static constexpr int kBytes = 24, kD = 0, kM = 2, kHigh = 4, kLow = 8; };
struct Q80 { static constexpr int kBytes = 34, kD = 0, kLow = 2; };
struct Iq4Nl { static constexpr int kBytes = 18, kD = 0, kLow = 2; };

// A 256-wide superblock: element k is d * scales[k / width] * q[k] - dmin * mins[k / width].
struct Superblock {
    std::int16_t q[kSuperblock];
    int width;       // elements to a scale: 16 or 32
    int scales[16];  // 256 / width of them
    int mins[16];    // all 0 for types without minima
    float d;
    float dmin;
    bool has_min;
};
// A 32-wide block: element k is d * q[k] + m.
struct Block {
    std::int16_t q[kBlock];
    float d;
    float m;
    bool has_min;
};

// Types with 256-wide superblocks: Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_XS.
void unpack(gguf::TensorType type, const std::byte* bytes, Superblock& out) noexcept;
// Types with 32-wide blocks: Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 IQ4_NL.
void unpack(gguf::TensorType type, const std::byte* bytes, Block& out) noexcept;

}  // namespace headroom::cpu
