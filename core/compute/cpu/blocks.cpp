#include "core/compute/cpu/blocks.h"

#include <algorithm>

#include "core/compute/cpu/arithmetic.h"

namespace headroom::cpu {
namespace {

using gguf::TensorType;

int byte_at(const std::byte* bytes, int index) noexcept { return std::to_integer<int>(bytes[index]); }
int signed_at(const std::byte* bytes, int index) noexcept { return static_cast<std::int8_t>(byte_at(bytes, index)); }
float half_at(const std::byte* bytes, int index) noexcept { return half_to_float(load_unaligned<std::uint16_t>(bytes + index)); }

// The 6-bit scales and minima of Q4_K and Q5_K: four of each in plain low bits, the upper four spread over nibbles and top bits.
void unpack_scales_q4_k(const std::byte* bytes, Superblock& out) noexcept {
    for (int j = 0; j < 4; ++j) {
        const int first = byte_at(bytes, j);
        const int second = byte_at(bytes, j + 4);
        const int third = byte_at(bytes, j + 8);
        out.scales[j] = first & 63;
        out.mins[j] = second & 63;
        out.scales[j + 4] = (third & 15) | ((first >> 6) << 4);
        out.mins[j + 4] = (third >> 4) | ((second >> 6) << 4);
    }
}

void unpack_q2_k(const std::byte* bytes, Superblock& out) noexcept {
    out.width = 16;
    out.has_min = true;
    for (int j = 0; j < 16; ++j) {
        out.scales[j] = byte_at(bytes, Q2K::kScales + j) & 15;
        out.mins[j] = byte_at(bytes, Q2K::kScales + j) >> 4;
    }
    for (int k = 0; k < kSuperblock; ++k) {
        const int half = k / 128, shift = 2 * (k % 128 / 32);
        out.q[k] = static_cast<std::int16_t>((byte_at(bytes, Q2K::kLow + 32 * half + k % 32) >> shift) & 3);
    }
    out.d = half_at(bytes, Q2K::kD);
    out.dmin = half_at(bytes, Q2K::kDMin);
}

void unpack_q3_k(const std::byte* bytes, Superblock& out) noexcept {
    out.width = 16;
    for (int j = 0; j < 16; ++j) {
        const int low = j < 8 ? byte_at(bytes, Q3K::kScales + j) & 15 : byte_at(bytes, Q3K::kScales + j - 8) >> 4;
        const int high = (byte_at(bytes, Q3K::kScales + 8 + j % 4) >> (2 * (j / 4))) & 3;
        out.scales[j] = (low | (high << 4)) - 32;
    }
    for (int k = 0; k < kSuperblock; ++k) {
        const int half = k / 128, quarter = k % 128 / 32;
        const int low = (byte_at(bytes, Q3K::kLow + 32 * half + k % 32) >> (2 * quarter)) & 3;
        const int high = (byte_at(bytes, Q3K::kMask + k % 32) >> (4 * half + quarter)) & 1;
        out.q[k] = static_cast<std::int16_t>(low + 4 * high - 4);
    }
    out.d = half_at(bytes, Q3K::kD);
}

void unpack_q4_k(const std::byte* bytes, Superblock& out) noexcept {
    out.width = 32;
    out.has_min = true;
    unpack_scales_q4_k(bytes + Q4K::kScales, out);
    for (int k = 0; k < kSuperblock; ++k) {
        const int byte = byte_at(bytes, Q4K::kLow + 32 * (k / 64) + k % 32);
        out.q[k] = static_cast<std::int16_t>(k % 64 < 32 ? byte & 15 : byte >> 4);
    }
    out.d = half_at(bytes, Q4K::kD);
    out.dmin = half_at(bytes, Q4K::kDMin);
}

void unpack_q5_k(const std::byte* bytes, Superblock& out) noexcept {
    out.width = 32;
    out.has_min = true;
    unpack_scales_q4_k(bytes + Q5K::kScales, out);
    for (int k = 0; k < kSuperblock; ++k) {
        const int byte = byte_at(bytes, Q5K::kLow + 32 * (k / 64) + k % 32);
        const int high = (byte_at(bytes, Q5K::kHigh + k % 32) >> (k / 32)) & 1;
        out.q[k] = static_cast<std::int16_t>((k % 64 < 32 ? byte & 15 : byte >> 4) | (high << 4));
    }
    out.d = half_at(bytes, Q5K::kD);
    out.dmin = half_at(bytes, Q5K::kDMin);
}

void unpack_q6_k(const std::byte* bytes, Superblock& out) noexcept {
    out.width = 16;
    for (int j = 0; j < 16; ++j) out.scales[j] = signed_at(bytes, Q6K::kScales + j);
    for (int k = 0; k < kSuperblock; ++k) {
        const int half = k / 128, quarter = k % 128 / 32;
        const int byte = byte_at(bytes, Q6K::kLow + 64 * half + 32 * (quarter % 2) + k % 32);
        const int low = quarter < 2 ? byte & 15 : byte >> 4;
        const int high = (byte_at(bytes, Q6K::kHigh + 32 * half + k % 32) >> (2 * quarter)) & 3;
        out.q[k] = static_cast<std::int16_t>((low | (high << 4)) - 32);
    }
    out.d = half_at(bytes, Q6K::kD);
}

void unpack_iq4_xs(const std::byte* bytes, Superblock& out) noexcept {
    out.width = 32;
    const int high = load_unaligned<std::uint16_t>(bytes + Iq4Xs::kScalesHigh);
    for (int j = 0; j < 8; ++j) {
        const int low = (byte_at(bytes, Iq4Xs::kScalesLow + j / 2) >> (4 * (j % 2))) & 15;
        out.scales[j] = (low | (((high >> (2 * j)) & 3) << 4)) - 32;
    }
    for (int k = 0; k < kSuperblock; ++k) {
        const int byte = byte_at(bytes, Iq4Xs::kLow + 16 * (k / 32) + k % 16);
        out.q[k] = kNonlinearLevels[k % 32 < 16 ? byte & 15 : byte >> 4];
    }
    out.d = half_at(bytes, Iq4Xs::kD);
}

// Four low bits of 32 elements in 16 bytes: the first half in the low nibbles.
int nibble(const std::byte* bytes, int k) noexcept {
    const int byte = byte_at(bytes, k % 16);
    return k < 16 ? byte & 15 : byte >> 4;
}

}  // namespace

void unpack(TensorType type, const std::byte* bytes, Superblock& out) noexcept {
    out.dmin = 0;
    out.has_min = false;
    std::fill(std::begin(out.mins), std::end(out.mins), 0);
    switch (type) {
        case TensorType::q2_k: unpack_q2_k(bytes, out); break;
        case TensorType::q3_k: unpack_q3_k(bytes, out); break;
        case TensorType::q4_k: unpack_q4_k(bytes, out); break;
        case TensorType::q5_k: unpack_q5_k(bytes, out); break;
        case TensorType::q6_k: unpack_q6_k(bytes, out); break;
        default: unpack_iq4_xs(bytes, out); break;
    }
}

void unpack(TensorType type, const std::byte* bytes, Block& out) noexcept {
    out.d = half_at(bytes, 0);  // every type begins with it
    out.m = 0;
    out.has_min = type == TensorType::q4_1 || type == TensorType::q5_1;
    if (out.has_min) out.m = half_at(bytes, Q41::kM);
    for (int k = 0; k < kBlock; ++k) {
        int q = 0;
        switch (type) {
            case TensorType::q4_0: q = nibble(bytes + Q40::kLow, k) - 8; break;
            case TensorType::q4_1: q = nibble(bytes + Q41::kLow, k); break;
            case TensorType::q5_0: {
                const auto high = load_unaligned<std::uint32_t>(bytes + Q50::kHigh);
                q = nibble(bytes + Q50::kLow, k) + static_cast<int>(((high >> k) & 1U) << 4) - 16;
                break;
            }
            case TensorType::q5_1: {
                const auto high = load_unaligned<std::uint32_t>(bytes + Q51::kHigh);
                q = nibble(bytes + Q51::kLow, k) + static_cast<int>(((high >> k) & 1U) << 4);
                break;
            }
            case TensorType::q8_0: q = signed_at(bytes, Q80::kLow + k); break;
            default: q = kNonlinearLevels[nibble(bytes + Iq4Nl::kLow, k)]; break;
        }
        out.q[k] = static_cast<std::int16_t>(q);
    }
}

}  // namespace headroom::cpu
