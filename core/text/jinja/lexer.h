#pragma once

// A template's source to tokens, with Jinja's whitespace control (trim_blocks and lstrip_blocks on, the last newline dropped).

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::text::jinja {

enum class TokenType : std::uint8_t {
    data,            // text outside of tags
    variable_begin,  // {{
    variable_end,    // }}
    block_begin,     // {%
    block_end,       // %}
    name,
    string,
    integer,
    real,
    symbol,  // an operator or bracket; its text says which
    end,
};

struct Token {
    TokenType type = TokenType::end;
    std::string text;  // a string's value, unescaped
    int line = 1;
    std::int64_t integer = 0;
    double real = 0;
};

// Ends with a token `end`. Throws Failure with the line.
[[nodiscard]] std::vector<Token> tokenize(std::string_view source);

// "the end of the template", "'%}'", "the name 'x'", …: for messages.
[[nodiscard]] std::string describe(const Token& token);

}  // namespace headroom::text::jinja
