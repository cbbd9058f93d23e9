#include "core/base/quote.h"

#include <cstdint>
#include <iterator>

#include <fmt/format.h>

namespace headroom {
namespace {

// Length of the well-formed UTF-8 sequence that starts at text[i] (RFC 3629: shortest form, no surrogates, at most U+10FFFF),
// or 0.
std::size_t sequence_length(std::string_view text, std::size_t i) {
    const auto byte = [&](std::size_t k) -> std::uint32_t {
        return k < text.size() ? static_cast<unsigned char>(text[k]) : 0u;  // 0 is no continuation byte
    };
    const std::uint32_t first = byte(i);
    if (first < 0x80) return 1;
    const std::size_t length = first >= 0xC2 && first <= 0xDF ? 2 : (first & 0xF0) == 0xE0 ? 3 : first >= 0xF0 && first <= 0xF4 ? 4 : 0;
    for (std::size_t k = 1; k < length; ++k) {
        if ((byte(i + k) & 0xC0) != 0x80) return 0;
    }
    const std::uint32_t second = byte(i + 1);
    const bool refused = (first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) ||
                         (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F);
    return refused ? 0 : length;
}

// U+0000 to U+001F, U+007F and U+0080 to U+009F: a terminal may act on them.
bool is_control(std::string_view sequence) {
    const auto first = static_cast<unsigned char>(sequence[0]);
    return first < 0x20 || first == 0x7F || (first == 0xC2 && static_cast<unsigned char>(sequence[1]) < 0xA0);
}

std::string escape(std::string_view text, std::size_t limit, bool quotes) {
    std::string out;
    out.reserve(text.size() < limit ? text.size() : limit);
    for (std::size_t i = 0; i < text.size();) {
        const std::size_t length = sequence_length(text, i);
        const std::string_view sequence = text.substr(i, length == 0 ? 1 : length);
        if (i + sequence.size() > limit) {
            out += "…";
            break;
        }
        if (length == 0 || is_control(sequence)) {
            for (const char c : sequence) fmt::format_to(std::back_inserter(out), "\\x{:02X}", static_cast<unsigned char>(c));
        } else {
            if (quotes && (sequence == "\"" || sequence == "\\")) out += '\\';
            out += sequence;
        }
        i += sequence.size();
    }
    return out;
}

}  // namespace

std::string printable(std::string_view text, std::size_t limit) { return escape(text, limit, false); }
std::string quote(std::string_view text, std::size_t limit) { return '"' + escape(text, limit, true) + '"'; }

}  // namespace headroom
