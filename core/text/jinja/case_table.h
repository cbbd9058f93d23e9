#pragma once

#include <span>

namespace headroom::text::jinja {

// Every step-th code point of [first, last] maps to itself plus delta.
struct CaseRange {
    char32_t first;
    char32_t last;
    int delta;
    int step;
};

// Sorted by first, beyond ASCII only.
[[nodiscard]] std::span<const CaseRange> upper_ranges() noexcept;
[[nodiscard]] std::span<const CaseRange> lower_ranges() noexcept;

}  // namespace headroom::text::jinja
