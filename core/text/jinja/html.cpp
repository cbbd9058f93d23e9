#include "core/text/jinja/html.h"

#include <charconv>

#include "core/text/jinja/unicode.h"

namespace headroom::text::jinja {
namespace {

std::string unescape(std::string_view text) {
    static constexpr std::pair<std::string_view, std::string_view> kNames[] = {{"amp", "&"},   {"lt", "<"},   {"gt", ">"},
                                                                               {"quot", "\""}, {"apos", "'"}, {"nbsp", "\u00A0"}};
    std::string result;
    while (!text.empty()) {
        if (text[0] != '&') {
            result += text[0];
            text.remove_prefix(1);
            continue;
        }
        const std::size_t end = text.substr(0, 12).find(';');
        const std::string_view name = end == std::string_view::npos ? std::string_view{} : text.substr(1, end - 1);
        std::string replacement;
        for (const auto& [known, character] : kNames) {
            if (name == known) replacement = character;
        }
        if (name.size() > 1 && name[0] == '#') {
            const bool hex = name[1] == 'x' || name[1] == 'X';
            const char* first = name.data() + (hex ? 2 : 1);
            std::uint32_t code_point = 0;
            const auto [last, error] = std::from_chars(first, name.data() + name.size(), code_point, hex ? 16 : 10);
            if (error == std::errc() && last == name.data() + name.size()) replacement = to_utf8(code_point);
        }
        if (replacement.empty()) {
            result += '&';
            text.remove_prefix(1);
        } else {
            result += replacement;
            text.remove_prefix(end + 1);
        }
    }
    return result;
}

}  // namespace

void escape_html(Text& out, std::string_view text) {
    while (!text.empty()) {
        const std::size_t special = text.find_first_of("&<>'\"");
        out += text.substr(0, special);
        if (special == std::string_view::npos) return;
        switch (text[special]) {
            case '&': out += "&amp;"; break;
            case '<': out += "&lt;"; break;
            case '>': out += "&gt;"; break;
            case '\'': out += "&#39;"; break;
            default: out += "&#34;"; break;
        }
        text.remove_prefix(special + 1);
    }
}

std::string strip_tags(std::string_view text) {
    const auto cut = [](std::string_view from, std::string_view open, std::string_view close) {
        std::string kept;
        std::size_t at = 0;
        while (true) {
            const std::size_t start = from.find(open, at);
            const std::size_t end = start == std::string_view::npos ? start : from.find(close, start + open.size());
            kept += from.substr(at, end == std::string_view::npos ? end : start - at);
            if (end == std::string_view::npos) return kept;
            at = end + close.size();
        }
    };
    const std::string without_tags = cut(cut(text, "<!--", "-->"), "<", ">");
    std::string folded;
    bool space = false;
    for (std::size_t at = 0; at < without_tags.size();) {
        const char32_t c = next_code_point(without_tags, at);
        if (is_space(c)) {
            space = true;
            continue;
        }
        if (space && !folded.empty()) folded += ' ';
        space = false;
        append_code_point(folded, c);
    }
    return unescape(folded);
}

void quote_url(Text& out, std::string_view text, bool keep_slash) {
    for (const char c : text) {
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
                           c == '_' || c == '~' || (c == '/' && keep_slash);
        if (plain)
            out += c;
        else
            out += fmt::format("%{:02X}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    }
}

}  // namespace headroom::text::jinja
