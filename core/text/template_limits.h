#pragma once

#include <cstdint>

namespace headroom::text {

// What a hostile template may use before it ends with an error.
struct TemplateLimits {
    std::uint64_t steps = 20'000'000;            // evaluated nodes and loop turns
    int depth = 200;                             // nested calls, macros, expressions, values
    std::uint64_t output_bytes = 32u << 20;      // rendered text, and every string made on the way
};

}  // namespace headroom::text
