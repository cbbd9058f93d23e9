#pragma once

#include <optional>
#include <string_view>

#include "core/text/jinja/runtime.h"

namespace headroom::text::jinja {

// The built-in function of that name (range, dict, namespace, cycler, joiner, raise_exception, strftime_now), or nothing.
[[nodiscard]] std::optional<Value> global_function(Runtime& runtime, std::string_view name);

}  // namespace headroom::text::jinja
