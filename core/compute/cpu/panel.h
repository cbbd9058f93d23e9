#pragma once

// A panel: one superblock (or eight 32-wide blocks) of neighbouring rows, unpacked so that a vector lane is a row. Products with
// quantized weights unpack a panel once and use it for every token of the batch.

#include <cstdint>

#include "core/compute/cpu/activations_storage.h"

namespace headroom::cpu {

inline constexpr int kMaxPanelRows = 16;  // 32-bit lanes of the widest vector
inline constexpr int kPanelColumns = 256;

// R rows, R the number of 32-bit lanes of the target; arrays are used up to that.
struct alignas(kCacheLine) Panel {
    std::uint8_t q[kPanelColumns / 4][kMaxPanelRows * 4];  // [k / 4][row][k % 4]: codes, made unsigned by an offset where VNNI wants it
    std::int32_t scales[16][kMaxPanelRows];                // integer scales of sub-blocks
    std::int32_t mins[8][kMaxPanelRows];                   // pairs of int16 minima, for sums of activations in pairs
    float d[8][kMaxPanelRows];                             // of the superblock, or of each block
    float m[8][kMaxPanelRows];                             // dmin of the superblock, or m of each block
};

}  // namespace headroom::cpu
