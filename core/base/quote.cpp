#include "core/base/quote.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "core/base/utf8.h"

namespace headroom {
namespace {

// U+0000 to U+001F, U+007F and U+0080 to U+009F: a terminal may act on them.
bool is_control(char32_t code_point) { return code_point < 0x20 || (code_point >= 0x7F && code_point < 0xA0); }

std::string escape(std::string_view text, std::size_t limit, bool quotes) {
    std::string out;
    out.reserve(std::min(text.size(), limit));
    for (std::size_t at = 0; at < text.size();) {
        const Utf8Step step = utf8_step(text.substr(at));
        const std::string_view part = text.substr(at, step.length);
        if (at + part.size() > limit) {
            out += "…";
            break;
        }
        if (step.status != Utf8Status::valid || is_control(step.code_point)) {
            for (const char c : part) fmt::format_to(std::back_inserter(out), "\\x{:02X}", static_cast<unsigned char>(c));
        } else {
            if (quotes && (part == "\"" || part == "\\")) out += '\\';
            out += part;
        }
        at += part.size();
    }
    return out;
}

}  // namespace

std::string printable(std::string_view text, std::size_t limit) { return escape(text, limit, false); }
std::string quote(std::string_view text, std::size_t limit) { return '"' + escape(text, limit, true) + '"'; }

}  // namespace headroom
