#pragma once

// The alphabet of byte-level BPE: each byte is written as one printable character, so that a vocabulary file is text.
// Source: GPT-2's encoder. Printable Latin-1 bytes stand for themselves, the other 68 are U+0100 and on, in order.

#include <string>
#include <string_view>

namespace headroom::text {

// The character that stands for a byte, in UTF-8.
[[nodiscard]] std::string_view byte_letter(unsigned char byte) noexcept;

// The bytes that a token's text stands for. A character outside the alphabet stands for itself.
[[nodiscard]] std::string letters_to_bytes(std::string_view letters);

}  // namespace headroom::text
