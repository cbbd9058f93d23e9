#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/text/jinja/runtime.h"

namespace headroom::text::jinja {

// How one value is to be formatted: what "%-08.3f" and "{:<08.3f}" have in common.
struct FormatSpec {
    std::string fill = " ";
    char align = '\0';  // < > ^ =, or none: numbers to the right, the rest to the left
    char sign = '-';    // -, + or space
    bool alternate = false;
    bool zero = false;     // fill with zeros behind the sign
    char grouping = '\0';  // , or _ between thousands
    std::int64_t width = 0;
    std::int64_t precision = -1;  // none
    char type = '\0';
};

// value: an integer or a real; spec.type: one of d b o x X n c e E f F g G %, or none.
void format_number(Text& out, const Value& value, FormatSpec spec);
void format_string(Text& out, std::string_view text, const FormatSpec& spec);

}  // namespace headroom::text::jinja
