#pragma once

// Byte units, and arithmetic on sizes that come from files.

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>

namespace headroom {

inline constexpr std::uint64_t KiB = 1024;
inline constexpr std::uint64_t MiB = 1024 * KiB;
inline constexpr std::uint64_t GiB = 1024 * MiB;

// "512 B", "3.2 MiB", "8.0 GiB": one decimal from KiB on.
[[nodiscard]] std::string format_bytes(std::uint64_t bytes);

// a * b and a + b, or nothing where the result does not fit.
template <std::unsigned_integral T>
[[nodiscard]] constexpr std::optional<T> checked_mul(T a, T b) noexcept {
    T result{};
    if (__builtin_mul_overflow(a, b, &result)) return std::nullopt;
    return result;
}
template <std::unsigned_integral T>
[[nodiscard]] constexpr std::optional<T> checked_add(T a, T b) noexcept {
    T result{};
    if (__builtin_add_overflow(a, b, &result)) return std::nullopt;
    return result;
}

// value rounded up to a multiple of step (step > 0), or nothing where that does not fit.
[[nodiscard]] constexpr std::optional<std::uint64_t> checked_round_up(std::uint64_t value, std::uint64_t step) noexcept {
    const std::uint64_t rest = value % step;
    return rest == 0 ? std::optional(value) : checked_add(value, step - rest);
}

}  // namespace headroom
