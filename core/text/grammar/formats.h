#pragma once

// The formats of strings (JSON Schema, "format") as patterns.

#include <optional>
#include <string>
#include <string_view>

namespace headroom::text {

// A regular expression all of whose texts are of the format; none for a format that is not known. It leaves out what is rare: leap
// seconds, quoted names in e-mail addresses, IPv6 with an IPv4 end, percent-encoding.
[[nodiscard]] std::optional<std::string> format_pattern(std::string_view format);

// All names, for messages: "date, date-time, …".
[[nodiscard]] std::string known_formats();

}  // namespace headroom::text
