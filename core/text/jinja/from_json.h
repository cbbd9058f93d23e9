#pragma once

#include <nlohmann/json_fwd.hpp>

#include "core/text/jinja/runtime.h"

namespace headroom::text::jinja {

// A JSON value as Python's json.loads gives it. Bytes that are not UTF-8 become U+FFFD.
[[nodiscard]] Value from_json(Runtime& runtime, const nlohmann::ordered_json& json);

}  // namespace headroom::text::jinja
