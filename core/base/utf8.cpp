#include "core/base/utf8.h"

namespace headroom {

Utf8Step utf8_step(std::string_view text) noexcept {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char first = byte(0);
    if (first < 0x80) return {Utf8Status::valid, 1, first};

    // The range of the second byte excludes overlong forms, surrogates and what lies beyond U+10FFFF.
    std::size_t length = 0;
    unsigned char low = 0x80;
    unsigned char high = 0xBF;
    char32_t code = 0;
    if (first >= 0xC2 && first <= 0xDF) {
        length = 2;
        code = first & 0x1Fu;
    } else if (first >= 0xE0 && first <= 0xEF) {
        length = 3;
        code = first & 0x0Fu;
        if (first == 0xE0) low = 0xA0;
        if (first == 0xED) high = 0x9F;
    } else if (first >= 0xF0 && first <= 0xF4) {
        length = 4;
        code = first & 0x07u;
        if (first == 0xF0) low = 0x90;
        if (first == 0xF4) high = 0x8F;
    } else {
        return {Utf8Status::invalid, 1, 0};
    }
    for (std::size_t i = 1; i < length; ++i) {
        if (i == text.size()) return {Utf8Status::incomplete, i, 0};
        if (byte(i) < low || byte(i) > high) return {Utf8Status::invalid, i, 0};
        code = (code << 6) | (byte(i) & 0x3Fu);
        low = 0x80;
        high = 0xBF;
    }
    return {Utf8Status::valid, length, code};
}

std::size_t utf8_valid_prefix(std::string_view text) noexcept {
    std::size_t at = 0;
    while (at < text.size()) {
        const Utf8Step step = utf8_step(text.substr(at));
        if (step.status != Utf8Status::valid) break;
        at += step.length;
    }
    return at;
}

void append_utf8(std::string& out, char32_t code_point) {
    const auto put = [&](char32_t value) { out.push_back(static_cast<char>(value)); };
    if (code_point < 0x80) {
        put(code_point);
    } else if (code_point < 0x800) {
        put(0xC0 | (code_point >> 6));
        put(0x80 | (code_point & 0x3F));
    } else if (code_point < 0x10000) {
        put(0xE0 | (code_point >> 12));
        put(0x80 | ((code_point >> 6) & 0x3F));
        put(0x80 | (code_point & 0x3F));
    } else {
        put(0xF0 | (code_point >> 18));
        put(0x80 | ((code_point >> 12) & 0x3F));
        put(0x80 | ((code_point >> 6) & 0x3F));
        put(0x80 | (code_point & 0x3F));
    }
}

}  // namespace headroom
