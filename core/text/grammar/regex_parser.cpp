#include "core/text/grammar/regex_parser.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "core/base/quote.h"
#include "core/base/utf8.h"

namespace headroom::text {
namespace {

using Ranges = std::vector<CodeRange>;

constexpr char32_t kLast = 0x10FFFF;
constexpr std::uint32_t kMostRepeats = 10'000;
constexpr int kMostDepth = 100;

void sort_and_join(Ranges& ranges) {
    std::ranges::sort(ranges, {}, &CodeRange::first);
    Ranges joined;
    for (const CodeRange& range : ranges) {
        if (!joined.empty() && range.first <= joined.back().last + 1) {
            joined.back().last = std::max(joined.back().last, range.last);
        } else {
            joined.push_back(range);
        }
    }
    ranges = std::move(joined);
}

Ranges all_but(Ranges ranges) {
    sort_and_join(ranges);
    Ranges others;
    char32_t next = 0;
    for (const CodeRange& range : ranges) {
        if (range.first > next) others.push_back({next, range.first - 1});
        next = range.last + 1;
    }
    if (next <= kLast) others.push_back({next, kLast});
    return others;
}

const Ranges kDigits{{'0', '9'}};
const Ranges kWord{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
// ECMA-262: WhiteSpace and LineTerminator.
const Ranges kSpace{{'\t', '\r'}, {' ', ' '}, {0xA0, 0xA0}, {0x1680, 0x1680}, {0x2000, 0x200A}, {0x2028, 0x2029},
                    {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
const Ranges kLineEnds{{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};

class Parser {
public:
    explicit Parser(std::string_view pattern) : pattern_(pattern) {}

    Result<RegexNode> whole() {
        HR_TRY(RegexNode node, choice(0));
        if (at_ < pattern_.size()) return wrong("a ')' without its '('");
        return node;
    }

private:
    [[nodiscard]] bool ended() const noexcept { return at_ >= pattern_.size(); }
    [[nodiscard]] char peek() const noexcept { return pattern_[at_]; }
    bool take(std::string_view text) {
        if (!pattern_.substr(at_).starts_with(text)) return false;
        at_ += text.size();
        return true;
    }
    [[nodiscard]] std::unexpected<Error> wrong(std::string_view what) const {
        return fail(ErrorKind::invalid_argument, "the pattern {} is damaged: {} at byte {}", quote(pattern_), what, at_);
    }
    [[nodiscard]] std::unexpected<Error> unknown(std::string_view what) const {
        return fail(ErrorKind::unsupported, "the pattern {} has {} at byte {}, which is not supported", quote(pattern_), what, at_);
    }

    Result<RegexNode> choice(int depth) {
        if (depth > kMostDepth) return unknown("more groups inside of each other than 100");
        RegexNode node{.kind = RegexNode::Kind::choice};
        do {
            HR_TRY(RegexNode branch, sequence(depth));
            node.children.push_back(std::move(branch));
        } while (take("|"));
        return node;
    }

    Result<RegexNode> sequence(int depth) {
        RegexNode node{.kind = RegexNode::Kind::sequence};
        while (!ended() && peek() != '|' && peek() != ')') {
            HR_TRY(RegexNode one, atom(depth));
            HR_TRY(one, repeated(std::move(one)));
            node.children.push_back(std::move(one));
        }
        return node;
    }

    Result<RegexNode> atom(int depth) {
        if (take("^")) return RegexNode{.kind = RegexNode::Kind::begin};
        if (take("$")) return RegexNode{.kind = RegexNode::Kind::end};
        if (take(".")) return characters(all_but(kLineEnds));
        if (take("[")) {
            HR_TRY(Ranges ranges, bracket());
            return characters(std::move(ranges));
        }
        if (pattern_.substr(at_).starts_with("(")) return group(depth);
        if (take("\\")) {
            HR_TRY(Ranges ranges, escape(false));
            return characters(std::move(ranges));
        }
        if (peek() == '*' || peek() == '+' || peek() == '?') return wrong("a repetition of nothing");
        if (peek() == '{' || peek() == '}' || peek() == ']') return wrong("a bracket that stands for itself (write a backslash before it)");
        HR_TRY(const char32_t c, character());
        return characters({{c, c}});
    }

    Result<RegexNode> group(int depth) {
        for (const std::string_view look : {"(?=", "(?!", "(?<=", "(?<!"}) {
            if (pattern_.substr(at_).starts_with(look)) return unknown("a look-around");
        }
        if (take("(?<")) {
            const auto end = pattern_.find('>', at_);
            if (end == std::string_view::npos) return wrong("a group's name without its end");
            at_ = end + 1;
        } else if (!take("(?:")) {
            if (pattern_.substr(at_).starts_with("(?")) return unknown("a group of an unknown kind");
            ++at_;
        }
        HR_TRY(RegexNode node, choice(depth + 1));
        if (!take(")")) return wrong("a '(' without its ')'");
        return node;
    }

    Result<RegexNode> repeated(RegexNode node) {
        if (ended()) return node;
        std::uint32_t min = 0, max = RegexNode::kWithoutEnd;
        if (take("*")) {
        } else if (take("+")) {
            min = 1;
        } else if (take("?")) {
            max = 1;
        } else if (peek() == '{') {
            ++at_;
            const auto low = number();
            if (!low) return wrong("a '{' without a number (write \\{ for the character)");
            min = max = *low;
            if (take(",")) max = number().value_or(RegexNode::kWithoutEnd);
            if (!take("}")) return wrong("a '{' without its '}'");
            if (max < min) return wrong("a repetition of more at least than at most");
            if (min > kMostRepeats || (max != RegexNode::kWithoutEnd && max > kMostRepeats)) return unknown("more than 10,000 repetitions");
        } else {
            return node;
        }
        take("?");  // lazy: the same texts
        if (!ended() && (peek() == '*' || peek() == '+' || peek() == '?' || peek() == '{')) return wrong("a repetition of a repetition");
        if (node.kind == RegexNode::Kind::begin || node.kind == RegexNode::Kind::end) return wrong("a repetition of an anchor");
        RegexNode repeat{.kind = RegexNode::Kind::repeat, .min = min, .max = max};
        repeat.children.push_back(std::move(node));
        return repeat;
    }

    std::optional<std::uint32_t> number() {
        std::uint32_t value = 0;
        const std::size_t begin = at_;
        for (; !ended() && peek() >= '0' && peek() <= '9'; ++at_) value = std::min(value * 10 + static_cast<std::uint32_t>(peek() - '0'), 100'000u);
        return at_ > begin ? std::optional(value) : std::nullopt;
    }

    Result<char32_t> character() {
        const Utf8Step step = utf8_step(pattern_.substr(at_));
        if (step.status != Utf8Status::valid) return wrong("no UTF-8");
        at_ += step.length;
        return step.code_point;
    }

    std::optional<char32_t> hex(std::size_t digits) {
        if (pattern_.size() - at_ < digits) return std::nullopt;
        char32_t value = 0;
        for (std::size_t i = 0; i < digits; ++i) {
            const char c = pattern_[at_ + i];
            const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
            if (digit < 0) return std::nullopt;
            value = value * 16 + static_cast<char32_t>(digit);
        }
        at_ += digits;
        return value;
    }

    // Behind a backslash.
    Result<Ranges> escape(bool in_brackets) {
        if (ended()) return wrong("a backslash at the end");
        const char c = peek();
        const auto one = [](char32_t code) { return Ranges{{code, code}}; };
        if (static_cast<unsigned char>(c) < 0x80) ++at_;
        switch (c) {
            case 'd': return kDigits;
            case 'D': return all_but(kDigits);
            case 'w': return kWord;
            case 'W': return all_but(kWord);
            case 's': return kSpace;
            case 'S': return all_but(kSpace);
            case 'n': return one('\n');
            case 'r': return one('\r');
            case 't': return one('\t');
            case 'f': return one('\f');
            case 'v': return one('\v');
            case 'x': {
                const auto code = hex(2);
                if (!code) return wrong("\\x without two digits");
                return one(*code);
            }
            case 'u': return unicode_escape();
            case 'c':
                if (ended() || !((peek() | 0x20) >= 'a' && (peek() | 0x20) <= 'z')) return wrong("\\c without a letter");
                return one(static_cast<char32_t>(pattern_[at_++] & 0x1F));
            case 'b':
                if (in_brackets) return one('\b');
                return unknown("\\b");
            case '0':
                if (!ended() && peek() >= '0' && peek() <= '9') return wrong("an octal number");
                return one(0);
            default: break;
        }
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (letter || (c >= '1' && c <= '9')) return unknown(std::string("\\") + c);
        if (static_cast<unsigned char>(c) < 0x80) return one(static_cast<char32_t>(c));
        HR_TRY(const char32_t code, character());
        return one(code);
    }

    Result<Ranges> unicode_escape() {
        std::optional<char32_t> code;
        if (take("{")) {
            char32_t value = 0;
            bool any = false;
            while (const auto digit = hex(1)) {
                value = std::min<char32_t>(value * 16 + *digit, kLast + 1);
                any = true;
            }
            if (any && value <= kLast && take("}")) code = value;
        } else {
            code = hex(4);
            if (code && *code >= 0xD800 && *code <= 0xDBFF && take("\\u")) {
                const auto low = hex(4);
                if (!low || *low < 0xDC00 || *low > 0xDFFF) return wrong("half of a character");
                code = 0x10000 + ((*code - 0xD800) << 10) + (*low - 0xDC00);
            }
        }
        if (!code) return wrong("\\u without its digits");
        return Ranges{{*code, *code}};
    }

    Result<Ranges> bracket() {
        const bool negated = take("^");
        Ranges ranges;
        while (true) {
            if (ended()) return wrong("a '[' without its ']'");
            if (take("]")) break;
            HR_TRY(Ranges first, bracket_item());
            const bool is_range = pattern_.substr(at_).starts_with("-") && !pattern_.substr(at_).starts_with("-]");
            if (is_range && first.size() == 1 && first[0].first == first[0].last) {
                ++at_;
                HR_TRY(const Ranges last, bracket_item());
                if (last.size() != 1 || last[0].first != last[0].last || last[0].first < first[0].first) return wrong("a range without order");
                first[0].last = last[0].first;
            }
            ranges.insert(ranges.end(), first.begin(), first.end());
        }
        return negated ? all_but(std::move(ranges)) : ranges;
    }

    Result<Ranges> bracket_item() {
        if (ended()) return wrong("a '[' without its ']'");
        if (take("\\")) return escape(true);
        HR_TRY(const char32_t c, character());
        return Ranges{{c, c}};
    }

    static RegexNode characters(Ranges ranges) {
        sort_and_join(ranges);
        return {.kind = RegexNode::Kind::characters, .ranges = std::move(ranges)};
    }

    std::string_view pattern_;
    std::size_t at_ = 0;
};

}  // namespace

Result<RegexNode> parse_regex(std::string_view pattern) { return Parser(pattern).whole(); }

}  // namespace headroom::text
