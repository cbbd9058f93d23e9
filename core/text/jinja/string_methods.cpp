// The methods of Python's str.

#include <algorithm>
#include <span>

#include "core/text/jinja/arguments.h"
#include "core/text/jinja/attributes.h"
#include "core/text/jinja/evaluator.h"
#include "core/text/jinja/failure.h"
#include "core/text/jinja/format.h"
#include "core/text/jinja/html.h"
#include "core/text/jinja/operators.h"
#include "core/text/jinja/repr.h"
#include "core/text/jinja/search.h"
#include "core/text/jinja/strings.h"
#include "core/text/jinja/unicode.h"

namespace headroom::text::jinja {
namespace {

const std::string& text_of(const Value& self) { return self.string().text(); }

// A result that is escaped text where `self` is.
Value same_kind(Evaluator& evaluator, const Value& self, std::string text) {
    return evaluator.string(std::move(text), self.string().is_markup());
}

// An argument that meets escaped text is escaped too.
std::string argument_text(Evaluator& evaluator, const Value& self, const Value& argument) {
    if (!argument.is(Kind::string) && !self.string().is_markup()) fail("a string was expected, not a {}", type_name(argument));
    if (argument.is(Kind::string) && (!self.string().is_markup() || argument.string().is_markup()))
        return argument.string().text();
    Text escaped(evaluator);
    escape_html(escaped, to_text(evaluator, argument));
    return escaped.take();
}

template <std::string (*Function)(std::string_view)>
Value mapped(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
    const Bound bound("a string's method", {}, arguments);
    evaluator.step_bytes(text_of(self).size());
    return same_kind(evaluator, self, Function(text_of(self)));
}

std::string title(std::string_view text) {
    std::string result;
    std::size_t word = 0;  // where the letters began that are not yet written
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t start = at;
        const char32_t c = next_code_point(text, at);
        if (is_upper(c) || is_lower(c)) continue;
        result += capitalized(text.substr(word, start - word));
        result += text.substr(start, at - start);
        word = at;
    }
    return result + capitalized(text.substr(word));
}

std::string swap_case(std::string_view text) {
    std::string result;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t start = at;
        const char32_t c = next_code_point(text, at);
        result += is_upper(c) ? lower(text.substr(start, at - start)) : upper(text.substr(start, at - start));
    }
    return result;
}

template <bool Left, bool Right>
Value strip_method(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
    const Bound bound("strip", {"/chars"}, arguments);
    evaluator.step_bytes(text_of(self).size());
    return strip_value(evaluator, self, bound.get(0), Left, Right);
}

// Parts of a split as a list, each of the kind of `self`.
Value parts_list(Evaluator& evaluator, const Value& self, const std::vector<std::string_view>& parts) {
    evaluator.check_items(parts.size());
    std::vector<Value> items;
    items.reserve(parts.size());
    for (const std::string_view part : parts) items.push_back(same_kind(evaluator, self, std::string(part)));
    return evaluator.list(std::move(items));
}

template <bool FromRight>
Value split(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
    const Bound bound("split", {"sep", "maxsplit"}, arguments);
    const std::string& text = text_of(self);
    evaluator.step_bytes(text.size());
    const std::int64_t limit = bound.integer_or(1, -1);
    const std::size_t most = limit < 0 ? SIZE_MAX : static_cast<std::size_t>(limit);
    if (bound.get(0) == nullptr || bound.get(0)->is(Kind::none))
        return parts_list(evaluator, self, split_spaces(text, most, FromRight));
    const std::string_view separator = bound.string(0);
    if (separator.empty()) fail("split() with an empty separator");
    return parts_list(evaluator, self, split_text(evaluator, text, separator, most, FromRight));
}

Value split_lines_method(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
    const Bound bound("splitlines", {"keepends"}, arguments);
    evaluator.step_bytes(text_of(self).size());
    return parts_list(evaluator, self, split_lines(text_of(self), bound.truth_or(0, false)));
}

template <bool FromRight>
Value partition(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
    const Bound bound("partition", {"/sep"}, arguments);
    const std::string& text = text_of(self);
    evaluator.step_bytes(text.size());
    const std::string separator(bound.string(0));
    if (separator.empty()) fail("partition() with an empty separator");
    const std::size_t place = FromRight ? find_last_text(text, separator) : find_text(text, separator, 0);
    const auto part = [&](std::string value) { return same_kind(evaluator, self, std::move(value)); };
    if (place == std::string::npos) {
        return FromRight ? evaluator.tuple({part(""), part(""), self}) : evaluator.tuple({self, part(""), part("")});
    }
    return evaluator.tuple({part(text.substr(0, place)), part(separator), part(text.substr(place + separator.size()))});
}

// The part of a text between two code point indices, as count, find and startswith take them; nothing where it is empty the wrong
// way.
struct Window {
    std::string_view text;
    std::size_t first = 0;  // code points before it
    bool is_valid = true;
};

Window window(const Value& self, const Bound& bound, std::size_t start_parameter) {
    const String& string = self.string();
    const auto size = static_cast<std::int64_t>(string.length());
    const auto clip = [&](std::int64_t index) { return index < 0 ? std::max<std::int64_t>(index + size, 0) : index; };
    const std::int64_t start = clip(bound.integer_or(start_parameter, 0));
    const std::int64_t end = std::min(clip(bound.integer_or(start_parameter + 1, size)), size);
    if (start > end) return {.text = {}, .first = 0, .is_valid = false};
    const std::string_view text = string.text();
    const std::size_t begin = byte_offset(text, static_cast<std::size_t>(start));
    const std::size_t length = byte_offset(text.substr(begin), static_cast<std::size_t>(end - start));
    return {text.substr(begin, length), static_cast<std::size_t>(start)};
}

template <bool FromRight, bool MustFind>
Value find(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
    const Bound bound(MustFind ? "index" : "find", {"/sub", "/start", "/end"}, arguments);
    const std::string_view needle = bound.string(0);
    evaluator.step_bytes(text_of(self).size());
    const Window part = window(self, bound, 1);
    const std::size_t place = !part.is_valid ? std::string_view::npos
                              : FromRight    ? find_last_text(part.text, needle)
                                             : find_text(part.text, needle, 0);
    if (place != std::string_view::npos) {
        return Value(static_cast<std::int64_t>(part.first + count_code_points(part.text.substr(0, place))));
    }
    if (MustFind) fail("index(): the text is not in the string");
    return Value(std::int64_t{-1});
}

Value count(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
    const Bound bound("count", {"/sub", "/start", "/end"}, arguments);
    const std::string_view needle = bound.string(0);
    evaluator.step_bytes(text_of(self).size());
    const Window part = window(self, bound, 1);
    if (!part.is_valid) return Value(std::int64_t{0});
    if (needle.empty()) return Value(static_cast<std::int64_t>(count_code_points(part.text)) + 1);
    return Value(static_cast<std::int64_t>(split_text(evaluator, part.text, needle, SIZE_MAX, false).size()) - 1);
}

template <bool End>
Value starts_or_ends_with(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
    const Bound bound(End ? "endswith" : "startswith", {"/prefix", "/start", "/end"}, arguments);
    const Value& wanted = bound.required(0);
    check_defined(wanted);
    if (bound.get(1) != nullptr) evaluator.step_bytes(text_of(self).size());
    const Window part = bound.get(1) != nullptr ? window(self, bound, 1) : Window{text_of(self)};
    const auto matches = [&](const Value& candidate) {
        if (!candidate.is(Kind::string))
            fail("startswith() and endswith() need a string or a tuple of strings, not a {}", type_name(candidate));
        const std::string& affix = candidate.string().text();
        return part.is_valid && (End ? part.text.ends_with(affix) : part.text.starts_with(affix));
    };
    if (!wanted.is(Kind::tuple)) return Value(matches(wanted));
    const auto& candidates = wanted.list().items();
    evaluator.step(candidates.size());
    return Value(std::any_of(candidates.begin(), candidates.end(), matches));
}

Value replace(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
    const Bound bound("replace", {"/old", "/new", "count"}, arguments);
    check_defined(bound.required(0));
    check_defined(bound.required(1));
    const std::string from = argument_text(evaluator, self, bound.required(0));
    const std::string to = argument_text(evaluator, self, bound.required(1));
    return same_kind(evaluator, self, replace_text(evaluator, text_of(self), from, to, bound.integer_or(2, -1)));
}

Value join(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
    const Bound bound("join", {"/items"}, arguments);
    Text text(evaluator);
    bool first = true;
    for (const Value& item : Items(evaluator, bound.required(0))) {
        evaluator.step();
        if (!first) text += text_of(self);
        first = false;
        text += argument_text(evaluator, self, item);
    }
    return same_kind(evaluator, self, text.take());
}

template <char Align>
Value justify(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
    const Bound bound("justify", {"/width", "/fillchar"}, arguments);
    const std::string_view fill = bound.string_or(1, " ");
    if (count_code_points(fill) != 1) fail("the text to fill with has to be one character");
    return same_kind(evaluator, self, justified(evaluator, text_of(self), bound.integer(0), fill, Align));
}

Value zfill(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
    const Bound bound("zfill", {"/width"}, arguments);
    const std::string& text = text_of(self);
    const std::int64_t missing = bound.integer(0) - static_cast<std::int64_t>(self.string().length());
    const std::size_t sign = text.starts_with('-') || text.starts_with('+') ? 1 : 0;
    Text result(evaluator);
    result += std::string_view(text).substr(0, sign);
    result.repeat("0", static_cast<std::uint64_t>(std::max<std::int64_t>(missing, 0)));
    result += std::string_view(text).substr(sign);
    return same_kind(evaluator, self, result.take());
}

Value expand_tabs(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
    const Bound bound("expandtabs", {"tabsize"}, arguments);
    const std::int64_t size = bound.integer_or(0, 8);
    evaluator.step_bytes(text_of(self).size());
    Text result(evaluator);
    std::int64_t column = 0;
    const std::string& text = text_of(self);
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t start = at;
        const char32_t c = next_code_point(text, at);
        if (c == '\t') {
            if (size > 0) {
                const std::int64_t spaces = size - column % size;
                result.repeat(" ", static_cast<std::uint64_t>(spaces));
                column += spaces;
            }
            continue;
        }
        result += std::string_view(text).substr(start, at - start);
        column = c == '\n' || c == '\r' ? 0 : column + 1;
    }
    return same_kind(evaluator, self, result.take());
}

template <bool Prefix>
Value remove_affix(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
    const Bound bound(Prefix ? "removeprefix" : "removesuffix", {"/affix"}, arguments);
    const std::string& text = text_of(self);
    const std::string_view affix = bound.string(0);
    if (affix.empty() || !(Prefix ? text.starts_with(affix) : text.ends_with(affix))) return self;
    return same_kind(evaluator, self, Prefix ? text.substr(affix.size()) : text.substr(0, text.size() - affix.size()));
}

Value format_method(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
    return format_braces(evaluator, self, arguments);
}

Value format_map(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
    const Bound bound("format_map", {"/mapping"}, arguments);
    const Value& mapping = bound.required(0);
    if (!mapping.is(Kind::dict)) fail("format_map() needs a dict");
    Arguments values;
    for (const auto& [key, value] : mapping.dict().entries()) {
        if (key.is(Kind::string)) values.keyword.emplace_back(key.string().text(), value);
    }
    return format_braces(evaluator, self, values);
}

// Whether the text is not empty and `Predicate` holds for each of its code points.
template <bool (*Predicate)(char32_t)>
Value all_are(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
    const Bound bound("a string's method", {}, arguments);
    const std::string& text = text_of(self);
    evaluator.step_bytes(text.size());
    for (std::size_t at = 0; at < text.size();) {
        if (!Predicate(next_code_point(text, at))) return Value(false);
    }
    return Value(!text.empty());
}

bool is_alphanumeric(char32_t c) { return is_letter(c) || is_decimal_digit(c); }
bool is_alphabetic(char32_t c) { return is_letter(c); }
bool is_digit(char32_t c) { return is_decimal_digit(c) || c == 0xB2 || c == 0xB3 || c == 0xB9; }
bool is_decimal(char32_t c) { return is_decimal_digit(c); }
bool is_blank(char32_t c) { return is_space(c); }

Value is_ascii(Evaluator&, const Value& self, const Arguments& arguments) {
    const Bound bound("isascii", {}, arguments);
    return Value(self.string().is_ascii());
}

Value is_printable_method(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
    const Bound bound("isprintable", {}, arguments);
    const std::string& text = text_of(self);
    evaluator.step_bytes(text.size());
    for (std::size_t at = 0; at < text.size();) {
        const char32_t c = next_code_point(text, at);
        if (c != ' ' && !is_printable(c)) return Value(false);
    }
    return Value(true);
}

Value is_identifier(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
    const Bound bound("isidentifier", {}, arguments);
    const std::string& text = text_of(self);
    evaluator.step_bytes(text.size());
    for (std::size_t at = 0; at < text.size();) {
        const bool first = at == 0;
        const char32_t c = next_code_point(text, at);
        if (c != '_' && !is_letter(c) && (first || !is_decimal_digit(c))) return Value(false);
    }
    return Value(!text.empty());
}

template <bool Upper>
Value is_cased(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
    const Bound bound(Upper ? "isupper" : "islower", {}, arguments);
    evaluator.step_bytes(text_of(self).size());
    return Value(has_case(text_of(self), Upper));
}

Value is_title(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
    const Bound bound("istitle", {}, arguments);
    const std::string& text = text_of(self);
    evaluator.step_bytes(text.size());
    bool in_word = false;
    bool any = false;
    for (std::size_t at = 0; at < text.size();) {
        const char32_t c = next_code_point(text, at);
        const bool upper_case = is_upper(c);
        const bool lower_case = is_lower(c);
        if ((upper_case && in_word) || (lower_case && !in_word)) return Value(false);
        in_word = upper_case || lower_case;
        any = any || in_word;
    }
    return Value(any);
}

struct NamedMethod {
    std::string_view name;
    Method method;
};

constexpr NamedMethod kMethods[] = {
    {"capitalize", mapped<capitalized>},
    {"casefold", mapped<lower>},
    {"center", justify<'^'>},
    {"count", count},
    {"endswith", starts_or_ends_with<true>},
    {"expandtabs", expand_tabs},
    {"find", find<false, false>},
    {"format", format_method},
    {"format_map", format_map},
    {"index", find<false, true>},
    {"isalnum", all_are<is_alphanumeric>},
    {"isalpha", all_are<is_alphabetic>},
    {"isascii", is_ascii},
    {"isdecimal", all_are<is_decimal>},
    {"isdigit", all_are<is_digit>},
    {"isidentifier", is_identifier},
    {"islower", is_cased<false>},
    {"isnumeric", all_are<is_digit>},
    {"isprintable", is_printable_method},
    {"isspace", all_are<is_blank>},
    {"istitle", is_title},
    {"isupper", is_cased<true>},
    {"join", join},
    {"ljust", justify<'<'>},
    {"lower", mapped<lower>},
    {"lstrip", strip_method<true, false>},
    {"partition", partition<false>},
    {"removeprefix", remove_affix<true>},
    {"removesuffix", remove_affix<false>},
    {"replace", replace},
    {"rfind", find<true, false>},
    {"rindex", find<true, true>},
    {"rjust", justify<'>'>},
    {"rpartition", partition<true>},
    {"rsplit", split<true>},
    {"rstrip", strip_method<false, true>},
    {"split", split<false>},
    {"splitlines", split_lines_method},
    {"startswith", starts_or_ends_with<false>},
    {"strip", strip_method<true, true>},
    {"swapcase", mapped<swap_case>},
    {"title", mapped<title>},
    {"upper", mapped<upper>},
    {"zfill", zfill},
};

}  // namespace

Method find_string_method(std::string_view name) noexcept {
    const auto* found = std::lower_bound(std::begin(kMethods), std::end(kMethods), name,
                                         [](const NamedMethod& m, std::string_view n) { return m.name < n; });
    return found != std::end(kMethods) && found->name == name ? found->method : nullptr;
}

}  // namespace headroom::text::jinja
