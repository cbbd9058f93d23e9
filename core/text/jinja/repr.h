#pragma once

// How values print: Python's str() and repr().

#include <string>
#include <string_view>

#include "core/text/jinja/runtime.h"
#include "core/text/jinja/value.h"

namespace headroom::text::jinja {

void print(Runtime& runtime, Text& out, const Value& value);       // str(value)
void print_repr(Runtime& runtime, Text& out, const Value& value);  // repr(value)
[[nodiscard]] std::string to_text(Runtime& runtime, const Value& value);

// The shortest digits that give the same number again, written as Python does: 1.0, 1e+16, 0.0001, inf, nan.
[[nodiscard]] std::string real_repr(double value);

}  // namespace headroom::text::jinja
