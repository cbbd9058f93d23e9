#pragma once

// The scalar building blocks of docs/arithmetic.md. Plain C++ on purpose: what a vector kernel computes must equal this on every
// processor, compiled by any compiler, with or without a fused multiply-add in hardware.

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace headroom::cpu {

// a * b + c with one rounding. The product of two floats is exact in double; the sum is rounded to odd there (the error of the
// addition decides the last bit), after which the rounding to float is the only one that shows.
[[nodiscard]] inline float fma(float a, float b, float c) noexcept {
    const double product = static_cast<double>(a) * static_cast<double>(b);
    const double addend = static_cast<double>(c);
    const double sum = product + addend;
    const double part = sum - product;
    const double error = (product - (sum - part)) + (addend - part);
    if (error == 0.0 || !std::isfinite(sum)) return static_cast<float>(sum);
    std::uint64_t bits = std::bit_cast<std::uint64_t>(sum);
    if ((bits & 1U) == 0) bits = (error > 0.0) == (sum > 0.0) ? bits + 1 : bits - 1;
    return static_cast<float>(std::bit_cast<double>(bits));
}

[[nodiscard]] inline float half_to_float(std::uint16_t half) noexcept {
    const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000U) << 16;
    const std::uint32_t exponent = (half >> 10) & 31U;
    const std::uint32_t mantissa = half & 1023U;
    if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000U | (mantissa != 0 ? (mantissa << 13) | 0x400000U : 0U));
    if (exponent == 0) {
        const float value = static_cast<float>(mantissa) * 0x1p-24F;  // a subnormal half is a normal float
        return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) | sign);
    }
    return std::bit_cast<float>(sign | ((exponent + 112U) << 23) | (mantissa << 13));
}

// Round to nearest, ties to even; beyond the halves' range: infinity.
[[nodiscard]] inline std::uint16_t float_to_half(float value) noexcept {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = (bits >> 16) & 0x8000U;
    const std::uint32_t magnitude = bits & 0x7fffffffU;
    if (magnitude >= 0x7f800000U) {
        const std::uint32_t payload = magnitude > 0x7f800000U ? 0x200U | ((magnitude >> 13) & 0x3ffU) : 0U;
        return static_cast<std::uint16_t>(sign | 0x7c00U | payload);
    }
    if (magnitude >= 0x477ff000U) return static_cast<std::uint16_t>(sign | 0x7c00U);  // 65520 and above
    if (magnitude < 0x38800000U) {                                                   // below the smallest normal half
        // Adding 0.5 leaves the wanted multiple of 2^-24 in the low bits, rounded by the addition itself.
        const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
        return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000U));
    }
    const std::uint32_t rounded = magnitude + 0xfffU + ((magnitude >> 13) & 1U) - 0x38000000U;
    return static_cast<std::uint16_t>(sign | (rounded >> 13));
}

[[nodiscard]] inline float bfloat_to_float(std::uint16_t value) noexcept {
    return std::bit_cast<float>(static_cast<std::uint32_t>(value) << 16);
}

// The project's exp: e^x = 2^n e^r with n = rint(x / ln 2) and |r| <= ln 2 / 2, e^r by its Taylor polynomial of degree 7 (the
// remainder is below 2^-29 there). Results below the smallest normal float are 0.
inline constexpr float kExpLowest = -87.3365F;   // e^this is just above 2^-126
inline constexpr float kExpHighest = 88.7228F;   // e^this is just below 2^128
inline constexpr float kLog2E = 1.44269504F;
inline constexpr float kLn2High = 0.693145752F;  // 17 bits: n * this is exact
inline constexpr float kLn2Low = 1.42860677e-6F;
inline constexpr float kExpCoefficients[] = {1.0F / 5040, 1.0F / 720, 1.0F / 120, 1.0F / 24, 1.0F / 6, 0.5F, 1.0F, 1.0F};

[[nodiscard]] inline float exp_value(float x) noexcept {
    if (!(x >= kExpLowest)) return 0.0F;
    if (x > kExpHighest) return std::numeric_limits<float>::infinity();
    const float n = std::nearbyint(x * kLog2E);
    float r = fma(n, -kLn2High, x);
    r = fma(n, -kLn2Low, r);
    float p = kExpCoefficients[0];
    for (int i = 1; i < 8; ++i) p = fma(p, r, kExpCoefficients[i]);
    // 2^n in two factors: n may be 128.
    const int exponent = static_cast<int>(n);
    const int half = exponent >> 1;
    const float low = std::bit_cast<float>(static_cast<std::uint32_t>(half + 127) << 23);
    const float high = std::bit_cast<float>(static_cast<std::uint32_t>(exponent - half + 127) << 23);
    return (p * low) * high;
}

// A group of activations whose largest magnitude is below this (or is not a number) counts as all zero: 127 / amax stays finite.
inline constexpr float kSmallestGroup = 0x1p-100F;
// Attention's weights become integers up to this where the values are int8.
inline constexpr float kMostWeightCode = 16383;

template <class T>
[[nodiscard]] inline T load_unaligned(const void* from) noexcept {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

}  // namespace headroom::cpu
