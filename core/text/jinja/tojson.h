#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/text/jinja/runtime.h"

namespace headroom::text::jinja {

// The options of json.dumps that templates use.
struct JsonStyle {
    bool ensure_ascii = false;
    bool sort_keys = false;
    std::optional<std::string> indent;  // one level; absent: all on one line
    std::string item_separator = ", ";
    std::string key_separator = ": ";
};

// Text as Python's json.dumps writes it. Fails for what JSON has no form for (undefined, functions, iterators).
[[nodiscard]] std::string to_json(Runtime& runtime, const Value& value, const JsonStyle& style);

}  // namespace headroom::text::jinja
