#pragma once

// Regular expressions of JSON Schema (ECMA-262 with the flag u), as far as they are regular.

#include <cstddef>
#include <string_view>

#include "core/base/error.h"
#include "core/text/grammar/dfa.h"

namespace headroom::text {

// The texts in which the pattern is found: ^ and $ bind it to the ends.
// Errors: unsupported (look-around, back references, \b, \p, anchors inside of groups, flags), invalid_argument (no pattern; more than
// `most_states`). The message says what and at which byte of the pattern.
[[nodiscard]] Result<Dfa> compile_pattern(std::string_view pattern, std::size_t most_states);

}  // namespace headroom::text
