#pragma once

#include "core/text/chat_template.h"
#include "core/text/jinja/runtime.h"

namespace headroom::text::jinja {

// A JSON value as Python's json.loads gives it. Bytes that are not UTF-8 become U+FFFD.
[[nodiscard]] Value from_json(Runtime& runtime, const Json& json);

}  // namespace headroom::text::jinja
