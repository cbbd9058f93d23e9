#include "core/text/grammar/json_rules.h"

#include "core/text/grammar/numbers.h"

namespace headroom::text {

RuleId JsonRules::space() {
    if (space_) return *space_;
    const StateId start = builder_.state(true), end = builder_.state(true), line = builder_.state();
    builder_.bytes(start, ' ', ' ', end);
    builder_.bytes(start, '\n', '\n', line);
    const StateId blank = builder_.state(), blank_end = builder_.state(true);
    builder_.bytes(blank, ' ', ' ', blank_end);
    builder_.bytes(blank, '\t', '\t', blank_end);
    constexpr std::uint32_t kMostBlanks = 32;
    builder_.call(line, builder_.repeat(builder_.rule(blank), 0, kMostBlanks), end);
    return *(space_ = builder_.rule(start));
}

RuleId JsonRules::character() {
    if (character_) return *character_;
    GrammarBuilder& b = builder_;
    const StateId start = b.state(), end = b.state(true);
    b.bytes(start, 0x20, '"' - 1, end);
    b.bytes(start, '"' + 1, '\\' - 1, end);
    b.bytes(start, '\\' + 1, 0x7F, end);
    b.beyond_ascii(start, end);
    // Escapes.
    const StateId escape = b.state(), unicode = b.state();
    b.bytes(start, '\\', '\\', escape);
    for (const char c : std::string_view("\"\\/bfnrt")) b.bytes(escape, static_cast<std::uint8_t>(c), static_cast<std::uint8_t>(c), end);
    b.bytes(escape, 'u', 'u', unicode);
    const auto hex = [&](StateId from, StateId to) {
        b.bytes(from, '0', '9', to);
        b.bytes(from, 'a', 'f', to);
        b.bytes(from, 'A', 'F', to);
    };
    const StateId hex3 = b.state(), hex2 = b.state(), hex1 = b.state(), d = b.state();
    hex(hex3, hex2);
    hex(hex2, hex1);
    hex(hex1, end);
    b.bytes(unicode, '0', '9', hex3);
    for (const char base : {'a', 'A'}) {
        const auto letter = [&](int offset) { return static_cast<std::uint8_t>(base + offset); };
        b.bytes(unicode, letter(0), letter(2), hex3);
        b.bytes(unicode, letter(3), letter(3), d);
        b.bytes(unicode, letter(4), letter(5), hex3);
    }
    b.bytes(d, '0', '7', hex2);
    // A surrogate (D800 to DBFF) and its other half (DC00 to DFFF).
    const StateId high2 = b.state(), high1 = b.state(), high0 = b.state(), low3 = b.state(), low_d = b.state();
    b.bytes(d, '8', '9', high2);
    b.bytes(d, 'a', 'b', high2);
    b.bytes(d, 'A', 'B', high2);
    hex(high2, high1);
    hex(high1, high0);
    const StateId second = b.literal(high0, "\\u");
    b.bytes(second, 'd', 'd', low3);
    b.bytes(second, 'D', 'D', low3);
    b.bytes(low3, 'c', 'f', low_d);
    b.bytes(low3, 'C', 'F', low_d);
    hex(low_d, hex1);
    return *(character_ = b.rule(start));
}

RuleId JsonRules::string(std::uint32_t min, std::uint32_t max) {
    const StateId start = builder_.state(), open = builder_.state(), close = builder_.state(), end = builder_.state(true);
    builder_.bytes(start, '"', '"', open);
    builder_.call(open, builder_.repeat(character(), min, max), close);
    builder_.bytes(close, '"', '"', end);
    return builder_.rule(start);
}

RuleId JsonRules::string() {
    if (!string_) string_ = string(0, kNone);
    return *string_;
}

RuleId JsonRules::number() {
    if (!number_) number_ = builder_.embed(*number_dfa(std::nullopt, std::nullopt));
    return *number_;
}

StateId JsonRules::colon(StateId from) {
    const StateId behind = builder_.state(), value = builder_.state();
    builder_.bytes(from, ':', ':', behind);
    builder_.bytes(behind, ' ', ' ', value);
    builder_.jump(behind, value);
    return value;
}

StateId JsonRules::comma(StateId from) {
    const StateId behind = builder_.state(), next = builder_.state();
    builder_.bytes(from, ',', ',', behind);
    builder_.call(behind, space(), next);
    return next;
}

RuleId JsonRules::value() {
    if (value_) return *value_;
    value_ = builder_.declare();
    const StateId start = builder_.state(), end = builder_.state(true);
    for (const char* word : {"null", "true", "false"}) builder_.literal(start, word, end);
    builder_.call(start, number(), end);
    builder_.call(start, string(), end);
    builder_.call(start, object(), end);
    // An array.
    const StateId open = builder_.state(), first = builder_.state(), behind = builder_.state(), close = builder_.state();
    builder_.bytes(start, '[', '[', open);
    builder_.call(open, space(), first);
    builder_.bytes(first, ']', ']', end);
    builder_.call(first, *value_, behind);
    builder_.call(comma(behind), *value_, behind);
    builder_.call(behind, space(), close);
    builder_.bytes(close, ']', ']', end);
    builder_.define(*value_, start);
    return *value_;
}

RuleId JsonRules::object() {
    if (object_) return *object_;
    object_ = builder_.declare();
    const StateId start = builder_.state(), open = builder_.state(), first = builder_.state(), behind = builder_.state(), close = builder_.state(),
                  end = builder_.state(true);
    builder_.bytes(start, '{', '{', open);
    builder_.call(open, space(), first);
    builder_.bytes(first, '}', '}', end);
    const auto member = [&](StateId from) {
        const StateId key = builder_.state();
        builder_.call(from, string(), key);
        builder_.call(colon(key), value(), behind);
    };
    member(first);
    member(comma(behind));
    builder_.call(behind, space(), close);
    builder_.bytes(close, '}', '}', end);
    builder_.define(*object_, start);
    return *object_;
}

}  // namespace headroom::text
