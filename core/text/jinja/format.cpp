#include "core/text/jinja/format.h"

#include <charconv>

#include "core/text/jinja/attributes.h"
#include "core/text/jinja/evaluator.h"
#include "core/text/jinja/failure.h"
#include "core/text/jinja/format_spec.h"
#include "core/text/jinja/html.h"
#include "core/text/jinja/operators.h"
#include "core/text/jinja/repr.h"
#include "core/text/jinja/unicode.h"

namespace headroom::text::jinja {
namespace {

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

// Digits at `at`, which moves behind them; 0 where there are none.
std::int64_t read_number(std::string_view text, std::size_t& at) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), value);
    if (error == std::errc::result_out_of_range) fail("a width in a format is too large");
    at = static_cast<std::size_t>(end - text.data());
    return value;
}

std::string ascii_repr(Runtime& runtime, const Value& value) {
    Text text(runtime);
    print_repr(runtime, text, value);
    const std::string& full = text.view();
    std::string result;
    for (std::size_t at = 0; at < full.size();) {
        const char32_t c = next_code_point(full, at);
        if (c < 0x80)
            result += static_cast<char>(c);
        else if (c < 0x100)
            result += fmt::format("\\x{:02x}", static_cast<unsigned>(c));
        else if (c < 0x10000)
            result += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
        else
            result += fmt::format("\\U{:08x}", static_cast<unsigned>(c));
    }
    return result;
}

class PercentFormatter {
public:
    PercentFormatter(Runtime& runtime, const Value& format, const Value& values)
        : runtime_(runtime),
          text_(format.string().text()),
          markup_(format.string().is_markup()),
          values_(values),
          out_(runtime) {}

    Value run() {
        runtime_.step_bytes(text_.size());
        while (at_ < text_.size()) {
            const std::size_t percent = text_.find('%', at_);
            out_ += text_.substr(at_, percent - at_);
            if (percent == std::string_view::npos) break;
            at_ = percent + 1;
            conversion();
        }
        // Python counts only what cannot be looked up by key.
        const bool has_items = values_.is(Kind::dict) || values_.is(Kind::list) || values_.is(Kind::range) || values_.is(Kind::undefined);
        const bool all_used = values_.is(Kind::tuple) ? used_ == values_.list().items().size() : used_ > 0 || has_items;
        if (!all_used) fail("a % format uses fewer values than it was given");
        return runtime_.string(out_.take(), markup_);
    }

private:
    const Value& next_value() {
        if (values_.is(Kind::tuple)) {
            if (used_ >= values_.list().items().size()) fail("a % format needs more values than it was given");
            return values_.list().items()[used_++];
        }
        if (used_++ > 0) fail("a % format needs more values than it was given");
        return values_;
    }

    const Value& named_value() {
        const std::size_t end = text_.find(')', at_);
        if (end == std::string_view::npos) fail("a %( in a format has no )");
        if (!values_.is(Kind::dict)) fail("a format with %(names) needs a dict");
        const std::string_view name = text_.substr(at_ + 1, end - at_ - 1);
        const Value* value = values_.dict().find(name);
        if (value == nullptr) fail("a % format needs the value '{}'", name);
        at_ = end + 1;
        return *value;
    }

    std::int64_t number() {
        if (at_ >= text_.size() || text_[at_] != '*') return read_number(text_, at_);
        ++at_;
        const Value& value = next_value();
        if (!value.is_integral()) fail("a * in a % format needs an integer");
        return value.integer();
    }

    void conversion() {
        const Value* named = at_ < text_.size() && text_[at_] == '(' ? &named_value() : nullptr;
        FormatSpec spec;
        spec.align = '>';
        bool zero = false;
        for (; at_ < text_.size(); ++at_) {
            const char flag = text_[at_];
            if (flag == '-')
                spec.align = '<';
            else if (flag == '+')
                spec.sign = '+';
            else if (flag == ' ')
                spec.sign = spec.sign == '+' ? '+' : ' ';
            else if (flag == '#')
                spec.alternate = true;
            else if (flag == '0')
                zero = true;
            else
                break;
        }
        spec.width = number();
        if (spec.width < 0) {
            spec.align = '<';
            spec.width = spec.width == INT64_MIN ? INT64_MAX : -spec.width;
        }
        if (at_ < text_.size() && text_[at_] == '.') {
            ++at_;
            spec.precision = std::max<std::int64_t>(number(), 0);
        }
        while (at_ < text_.size() && (text_[at_] == 'h' || text_[at_] == 'l' || text_[at_] == 'L')) ++at_;
        if (at_ >= text_.size()) fail("a % format ends within a conversion");
        const char type = text_[at_++];
        if (type == '%') {
            out_ += '%';
            return;
        }
        const Value& value = named != nullptr ? *named : next_value();
        if (type == 's' || type == 'r' || type == 'a') {
            std::string text;
            if (type == 's')
                text = to_text(runtime_, value);
            else if (type == 'a')
                text = ascii_repr(runtime_, value);
            else {
                Text repr(runtime_);
                print_repr(runtime_, repr, value);
                text = repr.take();
            }
            if (markup_ && !(value.is(Kind::string) && value.string().is_markup())) {
                Text escaped(runtime_);
                escape_html(escaped, text);
                text = escaped.take();
            }
            format_string(out_, text, spec);
            return;
        }
        check_defined(value);
        if (type == 'c') {
            if (value.is(Kind::string) && value.string().length() == 1) return format_string(out_, value.string().text(), spec);
            if (!value.is_integral()) fail("%c needs one character or its number");
            return format_string(out_, to_utf8(static_cast<char32_t>(value.integer())), spec);
        }
        if (!value.is_number()) fail("%{} needs a number, not a {}", type, type_name(value));
        if (zero && spec.align == '>') {
            spec.align = '=';
            spec.fill = "0";
        }
        Value number = value;
        switch (type) {
            case 'd':
            case 'i':
            case 'u':
                spec.type = 'd';
                if (value.is(Kind::real)) {
                    if (!(value.real() > -0x1p63 && value.real() < 0x1p63)) fail("%d cannot write this number");
                    number = Value(static_cast<std::int64_t>(value.real()));
                }
                break;
            case 'o':
            case 'x':
            case 'X':
                if (!value.is_integral()) fail("%{} needs an integer, not a {}", type, type_name(value));
                [[fallthrough]];
            case 'e':
            case 'E':
            case 'f':
            case 'F':
            case 'g':
            case 'G': spec.type = type; break;
            default: fail("a % format has no conversion '{}'", type);
        }
        format_number(out_, number, spec);
    }

    Runtime& runtime_;
    std::string_view text_;
    bool markup_;
    const Value& values_;
    Text out_;
    std::size_t at_ = 0;
    std::size_t used_ = 0;
};

class BraceFormatter {
public:
    // markup: the format is escaped text, and what is put into it gets escaped.
    BraceFormatter(Evaluator& evaluator, const Arguments& arguments, bool markup)
        : evaluator_(evaluator), runtime_(evaluator), arguments_(arguments), markup_(markup) {}

    void run(Text& out, std::string_view text, int level) {
        if (level > 2) fail("the fields of a format nest too deep");
        runtime_.step_bytes(text.size());
        for (std::size_t at = 0; at < text.size();) {
            const std::size_t brace = text.find_first_of("{}", at);
            out += text.substr(at, brace - at);
            if (brace == std::string_view::npos) return;
            if (brace + 1 < text.size() && text[brace + 1] == text[brace]) {
                out += text[brace];
                at = brace + 2;
                continue;
            }
            if (text[brace] == '}') fail("a }} in a format closes nothing");
            std::size_t end = brace + 1;
            for (int open = 1; open > 0; ++end) {
                if (end >= text.size()) fail("a {{ in a format is not closed");
                open += text[end] == '{' ? 1 : text[end] == '}' ? -1 : 0;
            }
            field(out, text.substr(brace + 1, end - brace - 2), level);
            at = end;
        }
    }

private:
    void field(Text& out, std::string_view text, int level) {
        std::size_t name_end = 0;
        for (int brackets = 0; name_end < text.size(); ++name_end) {
            if (text[name_end] == '[')
                ++brackets;
            else if (text[name_end] == ']')
                --brackets;
            else if (brackets <= 0 && (text[name_end] == '!' || text[name_end] == ':'))
                break;
        }
        Value value = lookup(text.substr(0, name_end));
        std::string_view rest = text.substr(name_end);
        if (rest.starts_with('!')) {
            if (rest.size() < 2) fail("a ! in a format needs r, s or a");
            value = converted(value, rest[1]);
            rest.remove_prefix(2);
        }
        std::string spec;
        if (rest.starts_with(':')) {
            Text expanded(runtime_);
            run(expanded, rest.substr(1), level + 1);
            spec = expanded.take();
        } else if (!rest.empty()) {
            fail("a field of a format has something behind its conversion");
        }
        if (!markup_) return write(out, value, spec);
        Text plain(runtime_);
        write(plain, value, spec);
        if (value.is(Kind::string) && value.string().is_markup())
            out += plain.view();
        else
            escape_html(out, plain.view());
    }

    Value converted(const Value& value, char conversion) {
        if (conversion == 's') return runtime_.string(to_text(runtime_, value));
        if (conversion == 'a') return runtime_.string(ascii_repr(runtime_, value));
        if (conversion != 'r') fail("a format has no conversion '!{}'", conversion);
        Text text(runtime_);
        print_repr(runtime_, text, value);
        return runtime_.string(text.take());
    }

    Value lookup(std::string_view name) {
        const std::size_t end = std::min(name.find_first_of(".["), name.size());
        const std::string_view first = name.substr(0, end);
        Value value = argument(first);
        for (std::string_view rest = name.substr(end); !rest.empty();) {
            if (rest[0] == '.') {
                const std::size_t stop = std::min(rest.find_first_of(".[", 1), rest.size());
                value = attribute(evaluator_, value, rest.substr(1, stop - 1));
                rest.remove_prefix(stop);
            } else {
                const std::size_t stop = rest.find(']');
                if (rest[0] != '[' || stop == std::string_view::npos) fail("a field of a format is not well-formed");
                const std::string_view key = rest.substr(1, stop - 1);
                std::size_t at = 0;
                if (!key.empty() && is_digit(key[0]))
                    value = subscript(evaluator_, value, Value(read_number(key, at)));
                else
                    value = subscript(evaluator_, value, runtime_.string(std::string(key)));
                rest.remove_prefix(stop + 1);
            }
            check_defined(value);
        }
        return value;
    }

    Value argument(std::string_view name) {
        if (name.empty() || is_digit(name[0])) {
            std::size_t at = 0;
            const auto index = name.empty() ? next_++ : static_cast<std::size_t>(read_number(name, at));
            if (index >= arguments_.positional.size()) fail("a format needs more values than it was given");
            return arguments_.positional[index];
        }
        for (const auto& [key, value] : arguments_.keyword) {
            if (key == name) return value;
        }
        fail("a format needs the value '{}'", name);
    }

    void write(Text& out, const Value& value, std::string_view text) {
        if (text.empty()) return print(runtime_, out, value);
        FormatSpec spec;
        std::size_t at = 0;
        const auto is_align = [](char c) { return c == '<' || c == '>' || c == '^' || c == '='; };
        std::size_t behind = 0;
        static_cast<void>(next_code_point(text, behind));
        if (behind < text.size() && is_align(text[behind])) {
            spec.fill = text.substr(0, behind);
            spec.align = text[behind];
            at = behind + 1;
        } else if (is_align(text[0])) {
            spec.align = text[at++];
        }
        const auto take = [&](std::string_view any) {
            return at < text.size() && any.find(text[at]) != std::string_view::npos ? text[at++] : '\0';
        };
        if (const char sign = take("+- "); sign != '\0') spec.sign = sign;
        spec.alternate = take("#") != '\0';
        spec.zero = take("0") != '\0';
        spec.width = read_number(text, at);
        spec.grouping = take(",_");
        if (take(".") != '\0') {
            if (at >= text.size() || !is_digit(text[at])) fail("a format lacks its precision");
            spec.precision = read_number(text, at);
        }
        spec.type = take("bcdeEfFgGnosxX%");
        if (at != text.size()) fail("'{}' is not a format", text);
        if (value.is_number()) {  // True is 1 here
            if (spec.type == 's') fail("a number cannot be formatted as 's'");
            if (spec.type == 'c') return format_string(out, to_utf8(static_cast<char32_t>(value.integer())), spec);
            return format_number(out, value, spec);
        }
        if (!value.is(Kind::string)) fail("a {} cannot be formatted with '{}'", type_name(value), text);
        if (spec.type != '\0' && spec.type != 's') fail("a string cannot be formatted as '{}'", spec.type);
        if (spec.zero && spec.align == '\0') {
            spec.fill = "0";
            spec.align = '<';
        }
        format_string(out, to_text(runtime_, value), spec);
    }

    Evaluator& evaluator_;
    Runtime& runtime_;
    const Arguments& arguments_;
    bool markup_;
    std::size_t next_ = 0;
};

}  // namespace

Value format_percent(Runtime& runtime, const Value& format, const Value& values) {
    return PercentFormatter(runtime, format, values).run();
}

Value format_braces(Evaluator& evaluator, const Value& format, const Arguments& arguments) {
    Text text(evaluator);
    const bool markup = format.string().is_markup();
    BraceFormatter(evaluator, arguments, markup).run(text, format.string().text(), 0);
    return evaluator.string(text.take(), markup);
}

}  // namespace headroom::text::jinja
