#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace headroom::text::jinja {

// Python's datetime.strftime in the C locale, for a time without a zone: all conversions of C and of POSIX, with the flags
// - _ 0 ^ # behind the %. An unknown conversion stays as it is written.
[[nodiscard]] std::string strftime(std::string_view format, std::chrono::local_seconds time);

}  // namespace headroom::text::jinja
