#pragma once

// x.name and x[key], and the methods of strings, lists and dicts.

#include <string_view>

#include "core/text/jinja/value.h"

namespace headroom::text::jinja {

// A method of a built-in type, called on `self`.
using Method = Value (*)(Evaluator& evaluator, const Value& self, const Arguments& arguments);

// Null where the type has none of that name. Those that would change a list or a dict are there, and fail.
[[nodiscard]] Method find_method(const Value& self, std::string_view name) noexcept;

// x.name: methods and attributes first, then a dict's items. Undefined where there is none; fails on an undefined value.
[[nodiscard]] Value attribute(Evaluator& evaluator, const Value& target, std::string_view name);
// x[key]: items first, then attributes.
[[nodiscard]] Value subscript(Evaluator& evaluator, const Value& target, const Value& key);

// The methods of str, in string_methods.cpp.
[[nodiscard]] Method find_string_method(std::string_view name) noexcept;

}  // namespace headroom::text::jinja
