#include "core/text/jinja/lexer.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "core/text/jinja/failure.h"
#include "core/text/jinja/unicode.h"

namespace headroom::text::jinja {
namespace {

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
bool is_word(char c) noexcept {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}

int digit_value(char c) noexcept {
    if (is_digit(c)) return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return 99;
}

std::string normalize_newlines(std::string_view source) {
    std::string text;
    text.reserve(source.size());
    for (std::size_t i = 0; i < source.size(); ++i) {
        if (source[i] != '\r') {
            text += source[i];
            continue;
        }
        text += '\n';
        if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    }
    if (!text.empty() && text.back() == '\n') text.pop_back();
    return text;
}

bool all_space(std::string_view text) { return strip(text, true, false, is_space).empty(); }

class Lexer {
public:
    explicit Lexer(std::string source) : source_(std::move(source)) {}

    std::vector<Token> run() {
        while (at_ < source_.size()) outside();
        add(TokenType::end, {});
        return std::move(tokens_);
    }

private:
    [[nodiscard]] std::string_view rest() const noexcept { return std::string_view(source_).substr(at_); }
    [[nodiscard]] bool looking_at(std::string_view text) const noexcept { return rest().starts_with(text); }

    void add(TokenType type, std::string text) { tokens_.push_back({.type = type, .text = std::move(text), .line = line_}); }

    void advance(std::size_t bytes) {
        const auto from = source_.begin() + static_cast<std::ptrdiff_t>(at_);
        line_ += static_cast<int>(std::count(from, from + static_cast<std::ptrdiff_t>(bytes), '\n'));
        at_ += bytes;
    }

    void skip_space() {
        const std::string_view all = rest();
        advance(all.size() - strip(all, true, false, is_space).size());
    }

    // Text up to `tag`, cut as the tag's sign and lstrip_blocks ask. The tag's opening starts at `tag` in the source.
    void add_data(std::size_t tag, char sign, bool is_variable) {
        std::string_view text = std::string_view(source_).substr(at_, tag - at_);
        const bool line_starts = at_ == 0 || source_[at_ - 1] == '\n';
        const std::size_t bytes = text.size();
        if (sign == '-') {
            text = strip(text, false, true, is_space);
        } else if (sign != '+' && !is_variable) {
            const std::size_t newline = text.rfind('\n');
            const std::size_t last_line = newline == std::string_view::npos ? 0 : newline + 1;
            if ((last_line > 0 || line_starts) && all_space(text.substr(last_line))) text = text.substr(0, last_line);
        }
        if (!text.empty()) add(TokenType::data, std::string(text));
        advance(bytes);
    }

    [[nodiscard]] char sign_at(std::size_t position) const noexcept {
        return position < source_.size() && (source_[position] == '-' || source_[position] == '+') ? source_[position] : '\0';
    }

    // Where "{%" at `tag` opens the block `name` (raw or endraw): the byte behind the name and its spaces, else 0.
    [[nodiscard]] std::size_t behind_keyword(std::size_t tag, std::string_view name) const {
        std::size_t at = tag + 2 + (sign_at(tag + 2) != '\0' ? 1 : 0);
        const auto spaces = [&] {
            const std::string_view all = std::string_view(source_).substr(at);
            at += all.size() - strip(all, true, false, is_space).size();
        };
        spaces();
        if (!std::string_view(source_).substr(at).starts_with(name)) return 0;
        at += name.size();
        spaces();
        return at;
    }

    // The end of a block tag at the current place: "+%}", "-%}" and the space behind it, "%}" and one newline.
    bool skip_end(std::string_view end, bool trims_newline) {
        if (looking_at("-") && rest().substr(1).starts_with(end)) {
            advance(1 + end.size());
            skip_space();
            return true;
        }
        if (trims_newline && looking_at("+") && rest().substr(1).starts_with(end)) {
            advance(1 + end.size());
            return true;
        }
        if (!looking_at(end)) return false;
        advance(end.size());
        if (trims_newline && looking_at("\n")) advance(1);
        return true;
    }

    void outside() {
        std::size_t tag = at_;
        while (true) {
            tag = source_.find('{', tag);
            if (tag == std::string::npos || tag + 1 >= source_.size()) {
                add(TokenType::data, std::string(rest()));
                advance(rest().size());
                return;
            }
            const char next = source_[tag + 1];
            if (next == '{' || next == '%' || next == '#') break;
            ++tag;
        }
        const char kind = source_[tag + 1];
        const char sign = sign_at(tag + 2);
        if (kind == '%' && raw(tag, sign)) return;
        add_data(tag, sign, kind == '{');
        if (kind == '#') return comment(sign);
        add(kind == '{' ? TokenType::variable_begin : TokenType::block_begin, kind == '{' ? "{{" : "{%");
        advance(sign != '\0' ? 3 : 2);
        inside(kind == '{');
    }

    void comment(char sign) {
        const int start = line_;
        advance(sign != '\0' ? 3 : 2);
        const std::size_t end = source_.find("#}", at_);
        if (end == std::string::npos) fail_at(start, "this comment has no end: '#}}' is missing");
        const bool signed_end = end > at_ && (source_[end - 1] == '-' || source_[end - 1] == '+');
        advance((signed_end ? end - 1 : end) - at_);
        skip_end("#}", true);
    }

    bool raw(std::size_t tag, char sign) {
        const std::size_t behind = behind_keyword(tag, "raw");
        if (behind == 0) return false;
        const std::string_view closing = std::string_view(source_).substr(behind);
        if (!closing.starts_with("%}") && !closing.starts_with("-%}")) return false;
        add_data(tag, sign, false);
        const int start = line_;
        advance(behind - at_);
        skip_end("%}", false);
        for (std::size_t end = at_; (end = source_.find("{%", end)) != std::string::npos; end += 2) {
            const std::size_t behind_end = behind_keyword(end, "endraw");
            if (behind_end == 0) continue;
            const std::string_view last = std::string_view(source_).substr(behind_end);
            if (!last.starts_with("%}") && !last.starts_with("-%}") && !last.starts_with("+%}")) continue;
            add_data(end, sign_at(end + 2), false);
            advance(behind_end - at_);
            skip_end("%}", true);
            return true;
        }
        fail_at(start, "this raw block has no end: '{{% endraw %}}' is missing");
    }

    void inside(bool is_variable) {
        const int start = line_;
        std::string open;  // brackets waiting to be closed
        while (true) {
            skip_space();
            if (at_ >= source_.size()) fail_at(start, "this tag has no end: '{}' is missing", is_variable ? "}}" : "%}");
            const int line = line_;
            if (open.empty() && (is_variable ? skip_end("}}", false) : skip_end("%}", true))) {
                tokens_.push_back({.type = is_variable ? TokenType::variable_end : TokenType::block_end,
                                   .text = is_variable ? "}}" : "%}",
                                   .line = line});
                return;
            }
            const char c = source_[at_];
            if (is_digit(c))
                number();
            else if (is_word(c))
                name();
            else if (c == '\'' || c == '"')
                string(c);
            else
                symbol(open);
        }
    }

    void name() {
        std::size_t end = at_;
        while (end < source_.size() && is_word(source_[end])) ++end;
        add(TokenType::name, source_.substr(at_, end - at_));
        advance(end - at_);
    }

    // Digits with single underscores between them, from `at`; the place behind them.
    [[nodiscard]] std::size_t digits_end(std::size_t at, int base) const {
        const auto digit = [&](std::size_t i) { return i < source_.size() && digit_value(source_[i]) < base; };
        while (digit(at) || (at < source_.size() && source_[at] == '_' && digit(at + 1))) ++at;
        return at;
    }

    void number() {
        int base = 10;
        std::size_t begin = at_;
        if (source_[at_] == '0' && at_ + 2 < source_.size()) {
            const char letter = static_cast<char>(source_[at_ + 1] | 0x20);
            base = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 10;
            const std::size_t first = source_[at_ + 2] == '_' ? at_ + 3 : at_ + 2;
            if (base != 10 && (first >= source_.size() || digit_value(source_[first]) >= base)) base = 10;
            if (base != 10) begin = at_ + 2;
        }
        std::size_t end = digits_end(begin, base);
        bool is_real = false;
        const bool behind_dot = at_ > 0 && source_[at_ - 1] == '.';
        if (base == 10 && !behind_dot) {
            if (end + 1 < source_.size() && source_[end] == '.' && is_digit(source_[end + 1])) {
                end = digits_end(end + 1, 10);
                is_real = true;
            }
            if (end < source_.size() && (source_[end] == 'e' || source_[end] == 'E')) {
                const std::size_t exponent =
                    end + 1 < source_.size() && (source_[end + 1] == '+' || source_[end + 1] == '-') ? end + 2 : end + 1;
                if (exponent < source_.size() && is_digit(source_[exponent])) {
                    end = digits_end(exponent, 10);
                    is_real = true;
                }
            }
        }
        std::string written = source_.substr(begin, end - begin);
        std::erase(written, '_');
        Token token{.type = is_real ? TokenType::real : TokenType::integer, .text = written, .line = line_};
        const char* first = written.data();
        const char* last = first + written.size();
        if (is_real) {
            if (std::from_chars(first, last, token.real).ec == std::errc::result_out_of_range) {
                token.real = written.find("e-") == std::string::npos && written.find("E-") == std::string::npos
                                 ? std::numeric_limits<double>::infinity()
                                 : 0.0;
            }
        } else if (std::from_chars(first, last, token.integer, base).ec != std::errc()) {
            fail_at(line_, "the number {} does not fit into 64 bits", written);
        }
        tokens_.push_back(std::move(token));
        advance(end - at_);
    }

    void string(char quote) {
        std::size_t end = at_ + 1;
        while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
        if (end >= source_.size()) fail_at(line_, "this string has no end: {} is missing", quote);
        add(TokenType::string, unescape(std::string_view(source_).substr(at_ + 1, end - at_ - 1)));
        advance(end + 1 - at_);
    }

    [[nodiscard]] char32_t hex_escape(std::string_view text, std::size_t& at, std::size_t digits) const {
        char32_t value = 0;
        for (std::size_t i = 0; i < digits; ++i, ++at) {
            if (at >= text.size() || digit_value(text[at]) >= 16) fail_at(line_, "a \\x, \\u or \\U in this string lacks digits");
            value = value << 4 | static_cast<char32_t>(digit_value(text[at]));
        }
        if (value > 0x10FFFF) fail_at(line_, "a \\U in this string is above U+10FFFF");
        return value;
    }

    [[nodiscard]] std::string unescape(std::string_view text) const {
        std::string value;
        for (std::size_t at = 0; at < text.size();) {
            if (text[at] != '\\') {
                value += text[at++];
                continue;
            }
            const char c = text[at + 1];  // a backslash is never last: the lexer skipped a pair
            at += 2;
            switch (c) {
                case '\n': break;
                case '\\':
                case '\'':
                case '"': value += c; break;
                case 'a': value += '\a'; break;
                case 'b': value += '\b'; break;
                case 'f': value += '\f'; break;
                case 'n': value += '\n'; break;
                case 'r': value += '\r'; break;
                case 't': value += '\t'; break;
                case 'v': value += '\v'; break;
                case 'x': append_code_point(value, hex_escape(text, at, 2)); break;
                case 'u': {
                    char32_t unit = hex_escape(text, at, 4);
                    // A surrogate pair, as JSON writes it, is one character.
                    if (unit >= 0xD800 && unit < 0xDC00 && text.substr(at).starts_with("\\u")) {
                        std::size_t behind = at + 2;
                        const char32_t low = hex_escape(text, behind, 4);
                        if (low >= 0xDC00 && low < 0xE000) {
                            unit = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
                            at = behind;
                        }
                    }
                    append_code_point(value, unit);
                    break;
                }
                case 'U': append_code_point(value, hex_escape(text, at, 8)); break;
                case 'N': fail_at(line_, "\\N in a string is not supported: write the character itself");
                default:
                    if (c >= '0' && c <= '7') {
                        char32_t octal = static_cast<char32_t>(c - '0');
                        for (int i = 0; i < 2 && at < text.size() && text[at] >= '0' && text[at] <= '7'; ++i) {
                            octal = octal << 3 | static_cast<char32_t>(text[at++] - '0');
                        }
                        append_code_point(value, octal);
                    } else {
                        value += '\\';
                        value += c;
                    }
            }
        }
        return value;
    }

    void symbol(std::string& open) {
        static constexpr std::string_view kSymbols[] = {"**", "//", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
                                                        "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};
        const auto* found =
            std::find_if(std::begin(kSymbols), std::end(kSymbols), [&](std::string_view s) { return looking_at(s); });
        if (found == std::end(kSymbols)) {
            std::size_t behind = 0;
            const std::string_view all = rest();
            static_cast<void>(next_code_point(all, behind));
            fail_at(line_, "unexpected character '{}'", all.substr(0, behind));
        }
        const char c = found->front();
        if (c == '(')
            open += ')';
        else if (c == '[')
            open += ']';
        else if (c == '{')
            open += '}';
        else if (c == ')' || c == ']' || c == '}') {
            if (open.empty()) fail_at(line_, "'{}' closes nothing", c);
            if (open.back() != c) fail_at(line_, "'{}' where '{}' was expected", c, open.back());
            open.pop_back();
        }
        add(TokenType::symbol, std::string(*found));
        advance(found->size());
    }

    std::string source_;
    std::size_t at_ = 0;
    int line_ = 1;
    std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source) { return Lexer(normalize_newlines(source)).run(); }

std::string describe(const Token& token) {
    switch (token.type) {
        case TokenType::data: return "text";
        case TokenType::name: return fmt::format("the name '{}'", token.text);
        case TokenType::string: return "a string";
        case TokenType::integer:
        case TokenType::real: return fmt::format("the number {}", token.text);
        case TokenType::end: return "the end of the template";
        default: return fmt::format("'{}'", token.text);
    }
}

}  // namespace headroom::text::jinja
