#include "core/text/jinja/wrap.h"

#include "core/text/jinja/unicode.h"

namespace headroom::text::jinja {
namespace {

bool is_blank(char32_t c) noexcept { return (c >= 0x09 && c <= 0x0D) || c == ' '; }

// The paragraph cut where a line may break: spaces, words, and the parts of words up to a hyphen between letters.
std::vector<std::string_view> chunks(std::string_view text, bool break_on_hyphens) {
    std::vector<std::string_view> result;
    std::size_t at = 0;
    while (at < text.size()) {
        std::size_t peek = at;
        const bool space = is_blank(next_code_point(text, peek));
        const std::size_t begin = at;
        std::size_t part = begin;
        char32_t before_previous = 0;
        char32_t previous = 0;
        while (at < text.size()) {
            std::size_t next = at;
            const char32_t c = next_code_point(text, next);
            if (is_blank(c) != space) break;
            if (break_on_hyphens && previous == '-' && is_letter(before_previous) && is_letter(c)) {
                result.push_back(text.substr(part, at - part));
                part = at;
            }
            before_previous = previous;
            previous = c;
            at = next;
        }
        result.push_back(text.substr(part, at - part));
    }
    return result;
}

bool is_all_blank(std::string_view text) { return strip(text, true, false, is_blank).empty(); }

}  // namespace

std::vector<std::string> wrap(Runtime& runtime, std::string_view paragraph, const WrapStyle& style) {
    std::vector<std::string> lines;
    const std::vector<std::string_view> parts = chunks(paragraph, style.break_on_hyphens);
    std::size_t index = 0;
    std::string_view rest = parts.empty() ? std::string_view{} : parts[0];  // of the chunk at `index`
    const auto advance = [&] {
        ++index;
        rest = index < parts.size() ? parts[index] : std::string_view{};
    };
    while (index < parts.size()) {
        std::vector<std::string_view> line;
        std::size_t used = 0;
        if (!lines.empty() && is_all_blank(rest)) advance();
        while (index < parts.size()) {
            runtime.step();
            const std::size_t size = count_code_points(rest);
            if (used + size > style.width) {
                if (size <= style.width) break;
                // A word that no line can hold.
                if (style.break_long_words) {
                    const std::size_t cut = byte_offset(rest, style.width - used);
                    line.push_back(rest.substr(0, cut));
                    rest.remove_prefix(cut);
                } else if (line.empty()) {
                    line.push_back(rest);
                    advance();
                }
                break;
            }
            line.push_back(rest);
            used += size;
            advance();
        }
        if (!line.empty() && is_all_blank(line.back())) line.pop_back();
        if (line.empty()) continue;
        std::string text;
        for (const std::string_view part : line) text += part;
        lines.push_back(std::move(text));
    }
    return lines;
}

}  // namespace headroom::text::jinja
