#pragma once

#include <cstddef>
#include <string_view>

namespace headroom::text::jinja {

// The first place of `needle` at or behind byte `from`, in time linear in both; npos where there is none.
[[nodiscard]] std::size_t find_text(std::string_view text, std::string_view needle, std::size_t from);
// The last one.
[[nodiscard]] std::size_t find_last_text(std::string_view text, std::string_view needle);

}  // namespace headroom::text::jinja
