#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/text/jinja/runtime.h"

namespace headroom::text::jinja {

struct WrapStyle {
    std::size_t width = 79;  // in characters
    bool break_long_words = true;
    bool break_on_hyphens = true;
};

// The lines of one paragraph, filled as Python's textwrap does: spaces at the ends of lines are dropped.
[[nodiscard]] std::vector<std::string> wrap(Runtime& runtime, std::string_view paragraph, const WrapStyle& style);

}  // namespace headroom::text::jinja
