#include "core/text/jinja/unicode.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "core/base/utf8.h"
#include "core/text/jinja/case_table.h"

namespace headroom::text::jinja {
namespace {

bool is_continuation(char c) noexcept { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

struct Range {
    char32_t first;
    char32_t last;
};

template <std::size_t N>
bool in_ranges(const Range (&ranges)[N], char32_t c) noexcept {
    const Range* end = std::end(ranges);
    const Range* found =
        std::upper_bound(std::begin(ranges), end, c, [](char32_t value, const Range& r) { return value < r.first; });
    return found != std::begin(ranges) && c <= std::prev(found)->last;
}

// Letters of the scripts in use, in blocks: exact for Latin, Greek, Cyrillic, Hebrew and Arabic, generous for the others.
constexpr Range kLetters[] = {
    {0xAA, 0xAA},     {0xB5, 0xB5},       {0xBA, 0xBA},       {0xC0, 0xD6},       {0xD8, 0xF6},     {0xF8, 0x2C1},
    {0x2C6, 0x2D1},   {0x2E0, 0x2E4},     {0x370, 0x374},     {0x376, 0x377},     {0x37A, 0x37D},   {0x37F, 0x37F},
    {0x386, 0x386},   {0x388, 0x38A},     {0x38C, 0x38C},     {0x38E, 0x3A1},     {0x3A3, 0x3F5},   {0x3F7, 0x481},
    {0x48A, 0x52F},   {0x531, 0x556},     {0x559, 0x559},     {0x560, 0x588},     {0x5D0, 0x5EA},   {0x5EF, 0x5F2},
    {0x620, 0x64A},   {0x66E, 0x66F},     {0x671, 0x6D3},     {0x6D5, 0x6D5},     {0x6E5, 0x6E6},   {0x6EE, 0x6EF},
    {0x6FA, 0x6FC},   {0x6FF, 0x6FF},     {0x904, 0x939},     {0x958, 0x961},     {0x985, 0x9B9},   {0xA05, 0xA39},
    {0xA85, 0xAB9},   {0xB05, 0xB39},     {0xB83, 0xBB9},     {0xC05, 0xC39},     {0xC85, 0xCB9},   {0xD05, 0xD3A},
    {0xE01, 0xE30},   {0xE40, 0xE46},     {0xE81, 0xEB0},     {0xF40, 0xF6C},     {0x1000, 0x102A}, {0x10A0, 0x10FA},
    {0x10FC, 0x1248}, {0x124A, 0x135A},   {0x13A0, 0x13F5},   {0x1780, 0x17B3},   {0x1820, 0x1878}, {0x1C80, 0x1C88},
    {0x1C90, 0x1CBF}, {0x1D00, 0x1DBF},   {0x1E00, 0x1FBC},   {0x1FBE, 0x1FBE},   {0x1FC2, 0x1FCC}, {0x1FD0, 0x1FDB},
    {0x1FE0, 0x1FEC}, {0x1FF2, 0x1FFC},   {0x2071, 0x2071},   {0x207F, 0x207F},   {0x2090, 0x209C}, {0x2102, 0x2102},
    {0x210A, 0x2113}, {0x2115, 0x2115},   {0x2119, 0x211D},   {0x2C00, 0x2CE4},   {0x2D00, 0x2D25}, {0x3005, 0x3006},
    {0x3031, 0x3035}, {0x3041, 0x3096},   {0x309D, 0x309F},   {0x30A1, 0x30FA},   {0x30FC, 0x30FF}, {0x3105, 0x312F},
    {0x3131, 0x318E}, {0x31F0, 0x31FF},   {0x3400, 0x4DBF},   {0x4E00, 0xA48C},   {0xA640, 0xA66E}, {0xA680, 0xA69D},
    {0xA722, 0xA788}, {0xA78B, 0xA7CA},   {0xAC00, 0xD7A3},   {0xF900, 0xFAD9},   {0xFB00, 0xFB06}, {0xFB1D, 0xFB1D},
    {0xFB1F, 0xFB28}, {0xFB2A, 0xFBB1},   {0xFBD3, 0xFD3D},   {0xFE70, 0xFEFC},   {0xFF21, 0xFF3A}, {0xFF41, 0xFF5A},
    {0xFF66, 0xFFDC}, {0x10400, 0x1049D}, {0x1D400, 0x1D7CB}, {0x20000, 0x3134A},
};

// Control, format, separator, surrogate, private and noncharacter code points. U+FDD0 is left out: it marks plain text in
// prompts (chat_prompt.h) and has to come through unchanged.
constexpr Range kUnprintable[] = {
    {0x0, 0x1F},        {0x7F, 0xA0},       {0xAD, 0xAD},       {0x600, 0x605},     {0x61C, 0x61C},      {0x6DD, 0x6DD},
    {0x70F, 0x70F},     {0x1680, 0x1680},   {0x180E, 0x180E},   {0x2000, 0x200F},   {0x2028, 0x202F},    {0x205F, 0x206F},
    {0x3000, 0x3000},   {0xD800, 0xF8FF},   {0xFDD1, 0xFDEF},   {0xFEFF, 0xFEFF},   {0xFFF0, 0xFFFB},    {0xFFFE, 0xFFFF},
    {0x1FFFE, 0x1FFFF}, {0x2FFFE, 0x2FFFF}, {0x3FFFE, 0x3FFFF}, {0x40000, 0xE00FF}, {0xE01F0, 0x10FFFF},
};

// Where the ten decimal digits of a script start.
constexpr char32_t kDigitZeros[] = {0x30,  0x660, 0x6F0, 0x7C0, 0x966, 0x9E6, 0xA66,  0xAE6,  0xB66,  0xBE6,
                                    0xC66, 0xCE6, 0xD66, 0xE50, 0xED0, 0xF20, 0x1040, 0x17E0, 0x1810, 0xFF10};

// Letters whose upper case is more than one letter.
struct Expansion {
    char32_t from;
    std::string_view to;
};
constexpr Expansion kUpperExpansions[] = {
    {0xDF, "SS"},   {0x149, "\u02BCN"}, {0x1F0, "J\u030C"}, {0x587, "\u0535\u0552"}, {0xFB00, "FF"}, {0xFB01, "FI"},
    {0xFB02, "FL"}, {0xFB03, "FFI"},    {0xFB04, "FFL"},    {0xFB05, "ST"},          {0xFB06, "ST"},
};

char32_t map_case(std::span<const CaseRange> ranges, char32_t c) noexcept {
    auto found =
        std::upper_bound(ranges.begin(), ranges.end(), c, [](char32_t value, const CaseRange& r) { return value < r.first; });
    if (found == ranges.begin()) return c;
    --found;
    if (c > found->last || (c - found->first) % static_cast<char32_t>(found->step) != 0) return c;
    return static_cast<char32_t>(static_cast<std::int64_t>(c) + found->delta);
}

bool is_cased(char32_t c) noexcept { return is_upper(c) || is_lower(c); }

// The letter before `end`, with what has no case of its own (a combining mark, an apostrophe) passed over.
bool cased_before(std::string_view text, std::size_t end) noexcept {
    while (end > 0) {
        const char32_t c = previous_code_point(text, end);
        if (c == '\'' || c == 0x2019 || (c >= 0x300 && c <= 0x36F) || c == 0xB7) continue;
        return is_cased(c);
    }
    return false;
}

bool cased_after(std::string_view text, std::size_t at) noexcept {
    while (at < text.size()) {
        const char32_t c = next_code_point(text, at);
        if (c == '\'' || c == 0x2019 || (c >= 0x300 && c <= 0x36F) || c == 0xB7) continue;
        return is_cased(c);
    }
    return false;
}

}  // namespace

std::string valid_utf8(std::string text) {
    const std::size_t valid = utf8_valid_prefix(text);
    if (valid == text.size()) return text;
    std::string fixed = text.substr(0, valid);
    for (std::string_view rest = std::string_view(text).substr(valid); !rest.empty();) {
        const Utf8Step step = utf8_step(rest);
        fixed += step.status == Utf8Status::valid ? rest.substr(0, step.length) : kReplacement;
        rest.remove_prefix(step.length);
    }
    return fixed;
}

char32_t next_code_point(std::string_view text, std::size_t& at) noexcept {
    const auto byte = [&](std::size_t i) { return static_cast<char32_t>(static_cast<unsigned char>(text[i])); };
    const char32_t lead = byte(at);
    if (lead < 0x80) {
        ++at;
        return lead;
    }
    const std::size_t length = std::min<std::size_t>(lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4, text.size() - at);
    char32_t value = lead & (length == 2 ? 0x1F : length == 3 ? 0x0F : 0x07);
    for (std::size_t i = 1; i < length; ++i) value = value << 6 | (byte(at + i) & 0x3F);
    at += length;
    return value;
}

char32_t previous_code_point(std::string_view text, std::size_t& end) noexcept {
    do --end;
    while (end > 0 && is_continuation(text[end]));
    std::size_t at = end;
    return next_code_point(text, at);
}

void append_code_point(std::string& text, char32_t code_point) {
    if (code_point > 0x10FFFF || (code_point >= 0xD800 && code_point <= 0xDFFF))
        text += kReplacement;
    else
        append_utf8(text, code_point);
}

std::string to_utf8(char32_t code_point) {
    std::string text;
    append_code_point(text, code_point);
    return text;
}

std::size_t count_code_points(std::string_view text) noexcept {
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return !is_continuation(c); }));
}

std::size_t byte_offset(std::string_view text, std::size_t index) noexcept {
    std::size_t at = 0;
    while (at < text.size()) {
        if (!is_continuation(text[at])) {
            if (index == 0) return at;
            --index;
        }
        ++at;
    }
    return at;
}

bool is_space(char32_t c) noexcept {
    return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_line_break(char32_t c) noexcept {
    return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

bool is_decimal_digit(char32_t c) noexcept {
    return std::any_of(std::begin(kDigitZeros), std::end(kDigitZeros), [&](char32_t zero) { return c >= zero && c < zero + 10; });
}

bool is_letter(char32_t c) noexcept {
    if (c < 0x80) return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    return in_ranges(kLetters, c);
}

bool is_printable(char32_t c) noexcept { return !in_ranges(kUnprintable, c); }

char32_t to_upper(char32_t c) noexcept {
    if (c < 0x80) return c >= 'a' && c <= 'z' ? c - 32 : c;
    return map_case(upper_ranges(), c);
}

char32_t to_lower(char32_t c) noexcept {
    if (c < 0x80) return c >= 'A' && c <= 'Z' ? c + 32 : c;
    return map_case(lower_ranges(), c);
}

bool is_upper(char32_t c) noexcept { return to_lower(c) != c || c == 0x130; }

bool is_lower(char32_t c) noexcept {
    if (c == 0xAA || c == 0xBA || c == 0x138 || (c >= 0xFB00 && c <= 0xFB06)) return true;
    return (to_upper(c) != c && to_lower(c) == c) || c == 0xDF || c == 0x149 || c == 0x1F0 || c == 0x587;
}

std::string upper(std::string_view text) {
    std::string result;
    result.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
        const char32_t c = next_code_point(text, at);
        const auto* expansion = c < 0x80 ? std::end(kUpperExpansions)
                                         : std::find_if(std::begin(kUpperExpansions), std::end(kUpperExpansions),
                                                        [&](const Expansion& e) { return e.from == c; });
        if (expansion != std::end(kUpperExpansions))
            result += expansion->to;
        else
            append_code_point(result, to_upper(c));
    }
    return result;
}

std::string lower(std::string_view text) {
    std::string result;
    result.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t start = at;
        const char32_t c = next_code_point(text, at);
        if (c == 0x130)
            result += "i\u0307";
        else if (c == 0x3A3 && cased_before(text, start) && !cased_after(text, at))
            result += "\u03C2";
        else
            append_code_point(result, to_lower(c));
    }
    return result;
}

}  // namespace headroom::text::jinja
