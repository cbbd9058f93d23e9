#pragma once

#include <string_view>

#include "core/text/jinja/syntax.h"

namespace headroom::text::jinja {

// The test of that name (x is NAME); null where there is none.
[[nodiscard]] TestFunction find_test(std::string_view name) noexcept;

}  // namespace headroom::text::jinja
