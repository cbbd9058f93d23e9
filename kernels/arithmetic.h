#pragma once

// The scalar building blocks of docs/arithmetic.md on the device; core/compute/cpu/arithmetic.h is the same for the CPU.

#include "kernels/portable.h"

namespace headroom::device {

inline constexpr float kExpLowest = -87.3365F;
inline constexpr float kExpHighest = 88.7228F;

// The project's exp.
HR_DEVICE float exp_value(float x) {
    const bool too_low = !(x >= kExpLowest), too_high = x > kExpHighest;
    const float inside = too_low ? kExpLowest : too_high ? kExpHighest : x;  // no branch: several of them go on side by side
    const float n = rint(inside * 1.44269504F);
    float r = fma(n, -0.693145752F, inside);
    r = fma(n, -1.42860677e-6F, r);
    float p = 1.0F / 5040;
    p = fma(p, r, 1.0F / 720);
    p = fma(p, r, 1.0F / 120);
    p = fma(p, r, 1.0F / 24);
    p = fma(p, r, 1.0F / 6);
    p = fma(p, r, 0.5F);
    p = fma(p, r, 1.0F);
    p = fma(p, r, 1.0F);
    const int exponent = static_cast<int>(n);
    const int half = exponent >> 1;
    const float value = (p * bits_to_float(static_cast<std::uint32_t>(half + 127) << 23)) *
                        bits_to_float(static_cast<std::uint32_t>(exponent - half + 127) << 23);
    return too_low ? 0.0F : too_high ? bits_to_float(0x7f800000U) : value;
}

HR_DEVICE float silu(float x) { return x / (1.0F + exp_value(-x)); }

// The halves in the low and the high bits of a word.
#if defined(HR_CUDA)
HR_DEVICE float low_half_to_float(std::uint32_t two) {
    float value;
    asm("{ .reg .f16 low, high; mov.b32 {low, high}, %1; cvt.f32.f16 %0, low; }" : "=f"(value) : "r"(two));
    return value;
}
HR_DEVICE float high_half_to_float(std::uint32_t two) {
    float value;
    asm("{ .reg .f16 low, high; mov.b32 {low, high}, %1; cvt.f32.f16 %0, high; }" : "=f"(value) : "r"(two));
    return value;
}
#else
HR_DEVICE float low_half_to_float(std::uint32_t two) { return half_to_float(static_cast<std::uint16_t>(two)); }
HR_DEVICE float high_half_to_float(std::uint32_t two) { return half_to_float(static_cast<std::uint16_t>(two >> 16)); }
#endif

HR_DEVICE float bfloat_to_float(std::uint16_t value) { return bits_to_float(static_cast<std::uint32_t>(value) << 16); }

// A group of activations whose largest magnitude is below this (or is not a number) counts as all zero.
inline constexpr float kSmallestGroup = 0x1p-100F;

// The butterfly at the end of a strided sum of 32: lane i holds accumulator i. Every lane gets the result.
HR_DEVICE float fold_32(float s) {
    for (int h = 16; h > 0; h >>= 1) s = s + shuffle_xor(s, h);
    return s;
}

// The largest of the lanes' values, in every lane.
HR_DEVICE float max_32(float x) {
    for (int h = 16; h > 0; h >>= 1) {
        const float other = shuffle_xor(x, h);
        x = other > x ? other : x;
    }
    return x;
}

}  // namespace headroom::device
