#include <algorithm>

#include "core/text/jinja/failure.h"
#include "core/text/jinja/filter_functions.h"
#include "core/text/jinja/format.h"
#include "core/text/jinja/html.h"
#include "core/text/jinja/repr.h"
#include "core/text/jinja/strings.h"
#include "core/text/jinja/tojson.h"
#include "core/text/jinja/unicode.h"
#include "core/text/jinja/wrap.h"

namespace headroom::text::jinja::filter {
namespace {

// The input as a string: strings as they are (escaped text stays it), other values as they print.
Value as_string(Evaluator& evaluator, const Value& input) {
    const Value text = input.is(Kind::string) ? input : evaluator.string(to_text(evaluator, input));
    evaluator.step_bytes(text.string().text().size());
    return text;
}

Value same_kind(Evaluator& evaluator, const Value& text, std::string changed) {
    return evaluator.string(std::move(changed), text.string().is_markup());
}

std::string escaped(Evaluator& evaluator, const Value& value) {
    if (value.is(Kind::string) && value.string().is_markup()) return value.string().text();
    const std::string plain = to_text(evaluator, value);
    evaluator.step_bytes(plain.size());
    Text text(evaluator);
    escape_html(text, plain);
    return text.take();
}

// Words begin at the start and behind spaces, hyphens and opening brackets, other than for str.title().
std::string title_words(std::string_view text) {
    std::string result;
    std::size_t word = 0;
    const auto finish = [&](std::size_t end) {
        if (end == word) return;
        std::size_t behind = word;
        static_cast<void>(next_code_point(text, behind));
        result += jinja::upper(text.substr(word, behind - word));
        result += jinja::lower(text.substr(behind, end - behind));
    };
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t start = at;
        const char32_t c = next_code_point(text, at);
        if (!is_space(c) && std::u32string_view(U"-({[<").find(c) == std::u32string_view::npos) continue;
        finish(start);
        result += text.substr(start, at - start);
        word = at;
    }
    finish(text.size());
    return result;
}

}  // namespace

Value capitalize(Evaluator& evaluator, const Value& input, Arguments& arguments) {
    const Bound bound("capitalize", {}, arguments);
    const Value text = as_string(evaluator, input);
    return same_kind(evaluator, text, capitalized(text.string().text()));
}

Value center(Evaluator& evaluator, const Value& input, Arguments& arguments) {
    const Bound bound("center", {"width"}, arguments);
    const Value text = as_string(evaluator, input);
    return same_kind(evaluator, text, justified(evaluator, text.string().text(), bound.integer_or(0, 80), " ", '^'));
}

Value escape(Evaluator& evaluator, const Value& input, Arguments& arguments) {
    const Bound bound("escape", {}, arguments);
    return evaluator.string(escaped(evaluator, input), true);
}

Value force_escape(Evaluator& evaluator, const Value& input, Arguments& arguments) {
    const Bound bound("forceescape", {}, arguments);
    return evaluator.string(escaped(evaluator, evaluator.string(to_text(evaluator, input))), true);
}

Value format(Evaluator& evaluator, const Value& input, Arguments& arguments) {
    const Value text = as_string(evaluator, input);
    if (arguments.keyword.empty()) return format_percent(evaluator, text, evaluator.tuple(arguments.positional));
    if (!arguments.positional.empty()) fail("format() takes values either by position or by name");
    std::vector<Entry> entries;
    for (const auto& [name, value] : arguments.keyword) entries.emplace_back(evaluator.string(name), value);
    return format_percent(evaluator, text, evaluator.dict(std::move(entries)));
}

Value indent(Evaluator& evaluator, const Value& input, Arguments& arguments) {
    const Bound bound("indent", {"width", "first", "blank"}, arguments);
    check_defined(input);
    if (!input.is(Kind::string)) fail("indent() needs a string, not a {}", type_name(input));
    evaluator.step_bytes(input.string().text().size());
    Text spaces(evaluator);
    if (const Value* width = bound.get(0); width != nullptr && width->is(Kind::string))
        spaces += width->string().text();
    else
        spaces.repeat(" ", static_cast<std::uint64_t>(std::max<std::int64_t>(bound.integer_or(0, 4), 0)));
    const bool blank = bound.truth_or(2, false);
    const std::string text = input.string().text() + "\n";
    Text result(evaluator);
    if (bound.truth_or(1, false)) result += spaces.view();
    bool is_first = true;
    for (const std::string_view line : split_lines(text, false)) {
        if (!is_first) {
            result += '\n';
            if (blank || !line.empty()) result += spaces.view();
        }
        is_first = false;
        result += line;
    }
    return same_kind(evaluator, input, result.take());
}

Value lower(Evaluator& evaluator, const Value& input, Arguments& arguments) {
    const Bound bound("lower", {}, arguments);
    const Value text = as_string(evaluator, input);
    return same_kind(evaluator, text, jinja::lower(text.string().text()));
}

Value upper(Evaluator& evaluator, const Value& input, Arguments& arguments) {
    const Bound bound("upper", {}, arguments);
    const Value text = as_string(evaluator, input);
    return same_kind(evaluator, text, jinja::upper(text.string().text()));
}

Value replace(Evaluator& evaluator, const Value& input, Arguments& arguments) {
    const Bound bound("replace", {"old", "new", "count"}, arguments);
    const std::string from = to_text(evaluator, bound.required(0));
    const std::string to = to_text(evaluator, bound.required(1));
    return evaluator.string(replace_text(evaluator, to_text(evaluator, input), from, to, bound.integer_or(2, -1)));
}

Value safe(Evaluator& evaluator, const Value& input, Arguments& arguments) {
    const Bound bound("safe", {}, arguments);
    return evaluator.string(to_text(evaluator, input), true);
}

Value string(Evaluator& evaluator, const Value& input, Arguments& arguments) {
    const Bound bound("string", {}, arguments);
    return as_string(evaluator, input);
}

Value strip_tags(Evaluator& evaluator, const Value& input, Arguments& arguments) {
    const Bound bound("striptags", {}, arguments);
    return evaluator.string(jinja::strip_tags(as_string(evaluator, input).string().text()));
}

Value title(Evaluator& evaluator, const Value& input, Arguments& arguments) {
    const Bound bound("title", {}, arguments);
    return evaluator.string(title_words(as_string(evaluator, input).string().text()));
}

Value tojson(Evaluator& evaluator, const Value& input, Arguments& arguments) {
    const Bound bound("tojson", {"ensure_ascii", "indent", "separators", "sort_keys"}, arguments);
    JsonStyle style;
    style.ensure_ascii = bound.truth_or(0, false);
    style.sort_keys = bound.truth_or(3, false);
    if (const Value* width = bound.get(1); width != nullptr && !width->is(Kind::none)) {
        Text level(evaluator);
        if (width->is(Kind::string))
            level += width->string().text();
        else
            level.repeat(" ", static_cast<std::uint64_t>(std::max<std::int64_t>(bound.integer(1), 0)));
        style.indent = level.take();
        style.item_separator = ",";
    }
    if (const Value* separators = bound.get(2); separators != nullptr && !separators->is(Kind::none)) {
        const Items pair(evaluator, *separators);
        if (pair.size() != 2 || !pair[0].is(Kind::string) || !pair[1].is(Kind::string))
            fail("tojson() needs two strings as separators");
        style.item_separator = pair[0].string().text();
        style.key_separator = pair[1].string().text();
    }
    return evaluator.string(to_json(evaluator, input, style));
}

Value trim(Evaluator& evaluator, const Value& input, Arguments& arguments) {
    const Bound bound("trim", {"chars"}, arguments);
    return strip_value(evaluator, as_string(evaluator, input), bound.get(0), true, true);
}

Value truncate(Evaluator& evaluator, const Value& input, Arguments& arguments) {
    const Bound bound("truncate", {"length", "killwords", "end", "leeway"}, arguments);
    const std::string_view end = bound.string_or(2, "...");
    const std::int64_t length = bound.integer_or(0, 255);
    const std::int64_t leeway = bound.integer_or(3, 5);
    const auto end_length = static_cast<std::int64_t>(count_code_points(end));
    if (length < end_length) fail("truncate() to {} characters has no room for its '{}'", length, end);
    if (leeway < 0) fail("truncate() with a leeway of {}", leeway);
    const auto size = jinja::length(input);
    if (size && (*size <= length || *size - length <= leeway)) return input;
    if (!input.is(Kind::string)) fail("truncate() needs a string, not a {}", type_name(input));
    const String& text = input.string();
    evaluator.step_bytes(text.text().size());
    std::string kept = text.text().substr(0, byte_offset(text.text(), static_cast<std::size_t>(length - end_length)));
    if (!bound.truth_or(1, false)) {
        if (const std::size_t space = kept.rfind(' '); space != std::string::npos) kept.resize(space);
    }
    return same_kind(evaluator, input, kept + std::string(end));
}

Value url_encode(Evaluator& evaluator, const Value& input, Arguments& arguments) {
    const Bound bound("urlencode", {}, arguments);
    Text result(evaluator);
    if (input.is(Kind::string) || !is_iterable(input)) {
        quote_url(result, as_string(evaluator, input).string().text(), true);
        return evaluator.string(result.take());
    }
    const Value pairs = input.is(Kind::dict) ? evaluator.view(input, View::Part::items) : input;
    bool is_first = true;
    for (const Value& pair : Items(evaluator, pairs)) {
        const Items parts(evaluator, pair);
        if (parts.size() != 2) fail("urlencode() needs pairs, not {} values", parts.size());
        if (!is_first) result += '&';
        is_first = false;
        quote_url(result, as_string(evaluator, parts[0]).string().text(), false);
        result += '=';
        quote_url(result, as_string(evaluator, parts[1]).string().text(), false);
    }
    // A query writes spaces as "+".
    return evaluator.string(replace_text(evaluator, result.view(), "%20", "+", -1));
}

Value word_count(Evaluator& evaluator, const Value& input, Arguments& arguments) {
    const Bound bound("wordcount", {}, arguments);
    const Value value = as_string(evaluator, input);
    const std::string& text = value.string().text();
    std::int64_t words = 0;
    bool in_word = false;
    for (std::size_t at = 0; at < text.size();) {
        const char32_t c = next_code_point(text, at);
        const bool part = c == '_' || is_letter(c) || is_decimal_digit(c);
        if (part && !in_word) ++words;
        in_word = part;
    }
    return Value(words);
}

Value word_wrap(Evaluator& evaluator, const Value& input, Arguments& arguments) {
    const Bound bound("wordwrap", {"width", "break_long_words", "wrapstring", "break_on_hyphens"}, arguments);
    check_defined(input);
    if (!input.is(Kind::string)) fail("wordwrap() needs a string, not a {}", type_name(input));
    evaluator.step_bytes(input.string().text().size());
    const std::int64_t width = bound.integer_or(0, 79);
    if (width < 1) fail("wordwrap() to a width of {}", width);
    const std::string_view between = bound.string_or(2, "\n");
    const WrapStyle style{static_cast<std::size_t>(width), bound.truth_or(1, true), bound.truth_or(3, true)};
    Text result(evaluator);
    bool is_first_paragraph = true;
    for (const std::string_view paragraph : split_lines(input.string().text(), false)) {
        if (!is_first_paragraph) result += between;
        is_first_paragraph = false;
        bool is_first = true;
        for (const std::string& line : wrap(evaluator, paragraph, style)) {
            if (!is_first) result += between;
            is_first = false;
            result += line;
        }
    }
    return evaluator.string(result.take());
}

Value xml_attributes(Evaluator& evaluator, const Value& input, Arguments& arguments) {
    const Bound bound("xmlattr", {"autospace"}, arguments);
    check_defined(input);
    if (!input.is(Kind::dict)) fail("xmlattr() needs a dict, not a {}", type_name(input));
    Text result(evaluator);
    for (const auto& [key, value] : input.dict().entries()) {
        if (value.is(Kind::none) || value.is(Kind::undefined)) continue;
        if (!key.is(Kind::string) || key.string().text().find_first_of(" \t\n\r\f\v/>=") != std::string::npos) {
            fail("xmlattr() cannot use {} as the name of an attribute", to_text(evaluator, key));
        }
        if (result.size() > 0) result += ' ';
        result += escaped(evaluator, key);
        result += "=\"";
        result += escaped(evaluator, value);
        result += '"';
    }
    const std::string space = result.size() > 0 && bound.truth_or(0, true) ? " " : "";
    return evaluator.string(space + result.take());
}

}  // namespace headroom::text::jinja::filter
