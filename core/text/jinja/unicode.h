#pragma once

// Code points in UTF-8 strings, and what Python's str knows about them. Every string inside the interpreter is valid UTF-8.

#include <cstddef>
#include <string>
#include <string_view>

namespace headroom::text::jinja {

// The text with each byte that is not UTF-8 replaced by U+FFFD.
[[nodiscard]] std::string valid_utf8(std::string text);

// The code point that starts at byte `at`; `at` moves behind it. The text is valid and at < text.size().
[[nodiscard]] char32_t next_code_point(std::string_view text, std::size_t& at) noexcept;
// The code point that ends at byte `end`; `end` moves before it. The text is valid and end > 0.
[[nodiscard]] char32_t previous_code_point(std::string_view text, std::size_t& end) noexcept;
// Appends one code point as UTF-8; surrogates and what is above U+10FFFF become U+FFFD.
void append_code_point(std::string& text, char32_t code_point);
[[nodiscard]] std::string to_utf8(char32_t code_point);

// How many code points a valid text has.
[[nodiscard]] std::size_t count_code_points(std::string_view text) noexcept;
// The byte at which code point `index` starts; the text's size where it has no more.
[[nodiscard]] std::size_t byte_offset(std::string_view text, std::size_t index) noexcept;

[[nodiscard]] bool is_space(char32_t c) noexcept;          // str.isspace, and what strip() takes off
[[nodiscard]] bool is_line_break(char32_t c) noexcept;     // where str.splitlines cuts
[[nodiscard]] bool is_decimal_digit(char32_t c) noexcept;  // of ASCII and the most used other scripts
[[nodiscard]] bool is_letter(char32_t c) noexcept;         // of the scripts in use; see unicode.cpp
[[nodiscard]] bool is_printable(char32_t c) noexcept;      // repr() writes it as it is

// Simple case mapping; the code point itself where there is none.
[[nodiscard]] char32_t to_upper(char32_t c) noexcept;
[[nodiscard]] char32_t to_lower(char32_t c) noexcept;
[[nodiscard]] bool is_upper(char32_t c) noexcept;
[[nodiscard]] bool is_lower(char32_t c) noexcept;

// str.upper and str.lower: simple mapping, and the full one where it is in use (ß, ligatures, İ, the final sigma).
[[nodiscard]] std::string upper(std::string_view text);
[[nodiscard]] std::string lower(std::string_view text);

// `text` without the code points for which `taken` says yes at its start and end.
template <class Predicate>
[[nodiscard]] std::string_view strip(std::string_view text, bool left, bool right, Predicate taken) {
    std::size_t begin = 0;
    while (left && begin < text.size()) {
        std::size_t next = begin;
        if (!taken(next_code_point(text, next))) break;
        begin = next;
    }
    std::size_t end = text.size();
    while (right && end > begin) {
        std::size_t before = end;
        if (!taken(previous_code_point(text, before))) break;
        end = before;
    }
    return text.substr(begin, end - begin);
}

}  // namespace headroom::text::jinja
