#pragma once

// Text from files and users, made fit for a message: error messages are valid UTF-8 whatever the bytes were.

#include <cstddef>
#include <string>
#include <string_view>

namespace headroom {

// The text with everything that is not printable UTF-8 (control characters, invalid sequences, surrogates) written as \xNN,
// cut to at most `limit` bytes of the original with "…" at the end.
[[nodiscard]] std::string printable(std::string_view text, std::size_t limit = std::string_view::npos);

// The same between double quotes; quotes and backslashes inside are escaped. For names and values within a sentence.
[[nodiscard]] std::string quote(std::string_view text, std::size_t limit = 80);

}  // namespace headroom
