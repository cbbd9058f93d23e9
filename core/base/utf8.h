#pragma once

// UTF-8, byte by byte: what is valid, where characters end.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace headroom {

enum class Utf8Status : std::uint8_t {
    valid,       // a whole character
    incomplete,  // the text ends inside what may become a character
    invalid,     // can never become one
};

// What stands at the start of a text. length: of the character, or of the bytes that count as one error (the "maximal subpart" of
// the Unicode standard, 3.9: at least 1, at most 3), or what there is of an unfinished character.
struct Utf8Step {
    Utf8Status status = Utf8Status::invalid;
    std::size_t length = 0;
    char32_t code_point = 0;  // of a valid character
};

// text must not be empty. Overlong forms, surrogates and values beyond U+10FFFF are invalid.
[[nodiscard]] Utf8Step utf8_step(std::string_view text) noexcept;

// The length of the valid UTF-8 at the start of text; all of it where everything is valid.
[[nodiscard]] std::size_t utf8_valid_prefix(std::string_view text) noexcept;

// Appends one character. code_point must be a Unicode scalar value.
void append_utf8(std::string& out, char32_t code_point);

// U+FFFD, which stands for bytes that are no text.
inline constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

}  // namespace headroom
