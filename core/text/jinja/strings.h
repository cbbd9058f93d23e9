#pragma once

// Work on strings that both the methods of str and the filters do.

#include <string>
#include <string_view>
#include <vector>

#include "core/text/jinja/runtime.h"

namespace headroom::text::jinja {

// At white space; `most` cuts at most, from the right or the left.
[[nodiscard]] std::vector<std::string_view> split_spaces(std::string_view text, std::size_t most, bool from_right);
[[nodiscard]] std::vector<std::string_view> split_text(Runtime& runtime, std::string_view text, std::string_view separator,
                                                       std::size_t most, bool from_right);
[[nodiscard]] std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends);

// count < 0: all. An empty `from` stands between all characters, as in Python.
[[nodiscard]] std::string replace_text(Runtime& runtime, std::string_view text, std::string_view from, std::string_view to,
                                       std::int64_t count);

// Without the characters of `chars` (null or None: white space) at its ends.
[[nodiscard]] Value strip_value(Runtime& runtime, const Value& text, const Value* chars, bool left, bool right);

// In a field of `width` characters; align: < > ^.
[[nodiscard]] std::string justified(Runtime& runtime, std::string_view text, std::int64_t width, std::string_view fill,
                                    char align);

[[nodiscard]] std::string capitalized(std::string_view text);
// str.isupper and str.islower.
[[nodiscard]] bool has_case(std::string_view text, bool upper);

}  // namespace headroom::text::jinja
