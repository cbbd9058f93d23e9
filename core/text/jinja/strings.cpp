#include "core/text/jinja/strings.h"

#include <algorithm>

#include "core/text/jinja/failure.h"
#include "core/text/jinja/operators.h"
#include "core/text/jinja/search.h"
#include "core/text/jinja/unicode.h"

namespace headroom::text::jinja {

std::vector<std::string_view> split_spaces(std::string_view text, std::size_t most, bool from_right) {
    std::vector<std::string_view> parts;
    std::string_view rest = strip(text, true, true, is_space);
    while (!rest.empty()) {
        if (parts.size() == most) {
            // What is left keeps the space at its far end.
            parts.push_back(from_right ? text.substr(0, static_cast<std::size_t>(rest.data() + rest.size() - text.data()))
                                       : text.substr(static_cast<std::size_t>(rest.data() - text.data())));
            break;
        }
        std::string_view word;
        if (from_right) {
            word = rest.substr(strip(rest, false, true, [](char32_t c) { return !is_space(c); }).size());
            rest = strip(rest.substr(0, rest.size() - word.size()), false, true, is_space);
        } else {
            word = rest.substr(0, rest.size() - strip(rest, true, false, [](char32_t c) { return !is_space(c); }).size());
            rest = strip(rest.substr(word.size()), true, false, is_space);
        }
        parts.push_back(word);
    }
    if (from_right) std::reverse(parts.begin(), parts.end());
    return parts;
}

std::vector<std::string_view> split_text(Runtime& runtime, std::string_view text, std::string_view separator, std::size_t most,
                                         bool from_right) {
    std::vector<std::size_t> places;
    if (from_right) {
        // Cuts from the right may lie elsewhere than those from the left ("aaa" at "aa"): search in the mirror.
        const std::string mirror(text.rbegin(), text.rend());
        const std::string mirrored_separator(separator.rbegin(), separator.rend());
        std::size_t at = 0;
        while (places.size() < most) {
            const std::size_t place = find_text(mirror, mirrored_separator, at);
            if (place == std::string::npos) break;
            runtime.step();
            at = place + separator.size();
            places.push_back(text.size() - at);
        }
        std::reverse(places.begin(), places.end());
    } else {
        std::size_t at = 0;
        while (places.size() < most) {
            const std::size_t place = find_text(text, separator, at);
            if (place == std::string_view::npos) break;
            places.push_back(place);
            runtime.step();
            at = place + separator.size();
        }
    }
    std::vector<std::string_view> parts;
    std::size_t begin = 0;
    for (const std::size_t place : places) {
        parts.push_back(text.substr(begin, place - begin));
        begin = place + separator.size();
    }
    parts.push_back(text.substr(begin));
    return parts;
}

std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends) {
    std::vector<std::string_view> lines;
    for (std::size_t begin = 0; begin < text.size();) {
        std::size_t at = begin;
        std::size_t end = text.size();
        while (at < text.size()) {
            const std::size_t start = at;
            const char32_t c = next_code_point(text, at);
            if (!is_line_break(c)) continue;
            end = start;
            if (c == '\r' && at < text.size() && text[at] == '\n') ++at;
            break;
        }
        lines.push_back(text.substr(begin, (keep_ends ? at : end) - begin));
        begin = at;
    }
    return lines;
}

std::string replace_text(Runtime& runtime, std::string_view text, std::string_view from, std::string_view to,
                         std::int64_t count) {
    runtime.step_bytes(text.size());
    std::uint64_t left = count < 0 ? UINT64_MAX : static_cast<std::uint64_t>(count);
    Text result(runtime);
    std::size_t at = 0;
    if (from.empty()) {
        for (; left > 0; --left) {
            runtime.step();
            result += to;
            if (at >= text.size()) break;
            const std::size_t start = at;
            static_cast<void>(next_code_point(text, at));
            result += text.substr(start, at - start);
        }
    } else {
        for (; left > 0; --left) {
            const std::size_t place = find_text(text, from, at);
            if (place == std::string_view::npos) break;
            runtime.step();
            result += text.substr(at, place - at);
            result += to;
            at = place + from.size();
        }
    }
    result += text.substr(std::min(at, text.size()));
    return result.take();
}

Value strip_value(Runtime& runtime, const Value& text, const Value* chars, bool left, bool right) {
    const std::string& whole = text.string().text();
    std::string_view kept;
    if (chars == nullptr || chars->is(Kind::none)) {
        kept = strip(whole, left, right, is_space);
    } else {
        check_defined(*chars);
        if (!chars->is(Kind::string)) fail("strip() needs a string, not a {}", type_name(*chars));
        std::u32string set;
        const std::string& written = chars->string().text();
        for (std::size_t at = 0; at < written.size();) set += next_code_point(written, at);
        std::sort(set.begin(), set.end());
        kept = strip(whole, left, right, [&](char32_t c) { return std::binary_search(set.begin(), set.end(), c); });
    }
    if (kept.size() == whole.size()) return text;
    return runtime.string(std::string(kept), text.string().is_markup());
}

std::string justified(Runtime& runtime, std::string_view text, std::int64_t width, std::string_view fill, char align) {
    const auto size = static_cast<std::int64_t>(count_code_points(text));
    const std::int64_t missing = width > size ? width - size : 0;
    // Where the space cannot be the same on both sides, Python's center() gives the left one more in fields of odd width.
    const std::int64_t left = align == '>' ? missing : align == '^' ? missing / 2 + (missing & width & 1) : 0;
    Text result(runtime);
    result.repeat(fill, static_cast<std::uint64_t>(left));
    result += text;
    result.repeat(fill, static_cast<std::uint64_t>(missing - left));
    return result.take();
}

std::string capitalized(std::string_view text) {
    if (text.empty()) return {};
    std::size_t at = 0;
    static_cast<void>(next_code_point(text, at));
    const std::string first = upper(text.substr(0, at));
    std::size_t behind = 0;  // of one letter: "ß" at the start becomes "Ss"
    static_cast<void>(next_code_point(first, behind));
    return first.substr(0, behind) + lower(std::string_view(first).substr(behind)) +
           lower(text).substr(lower(text.substr(0, at)).size());
}

bool has_case(std::string_view text, bool upper_case) {
    bool any = false;
    for (std::size_t at = 0; at < text.size();) {
        const char32_t c = next_code_point(text, at);
        if (upper_case ? is_lower(c) : is_upper(c)) return false;
        any = any || (upper_case ? is_upper(c) : is_lower(c));
    }
    return any;
}

}  // namespace headroom::text::jinja
