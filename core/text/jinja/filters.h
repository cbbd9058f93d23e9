#pragma once

#include <string_view>

#include "core/text/jinja/syntax.h"

namespace headroom::text::jinja {

// The filter of that name; null where there is none.
[[nodiscard]] FilterFunction find_filter(std::string_view name) noexcept;

}  // namespace headroom::text::jinja
