#include <charconv>
#include <cmath>
#include <optional>

#include "core/text/jinja/failure.h"
#include "core/text/jinja/filter_functions.h"
#include "core/text/jinja/repr.h"
#include "core/text/jinja/unicode.h"

namespace headroom::text::jinja::filter {
namespace {

// Digits as Python reads them: spaces around, single underscores between.
std::optional<std::string> plain_number(std::string_view text) {
    text = strip(text, true, true, is_space);
    std::string digits;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '_') {
            digits += text[i];
            continue;
        }
        const auto is_alphanumeric = [](char c) { return is_letter(static_cast<unsigned char>(c)) || (c >= '0' && c <= '9'); };
        if (i == 0 || i + 1 == text.size() || !is_alphanumeric(text[i - 1]) || !is_alphanumeric(text[i + 1])) return std::nullopt;
    }
    return digits;
}

// int(text, base); base 0 takes it from the prefix. Nothing for what is not one.
std::optional<std::int64_t> parse_integer(std::string_view text, int base) {
    const auto written = plain_number(text);
    if (!written || written->empty()) return std::nullopt;
    std::string_view digits = *written;
    const bool negative = digits[0] == '-';
    if (digits[0] == '-' || digits[0] == '+') digits.remove_prefix(1);
    if (digits.size() > 2 && digits[0] == '0') {
        const char letter = static_cast<char>(digits[1] | 0x20);
        const int named = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
        if (named != 0 && (base == named || base == 0)) {
            base = named;
            digits.remove_prefix(2);
        }
    }
    if (base == 0) base = 10;
    if (digits.empty() || digits[0] == '-' || digits[0] == '+') return std::nullopt;
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
    if (end != digits.data() + digits.size()) return std::nullopt;
    if (error != std::errc() || value > (negative ? std::uint64_t{1} << 63 : INT64_MAX))
        fail("the number {} does not fit into 64 bits", text);
    return static_cast<std::int64_t>(negative ? 0 - value : value);
}

// float(text), or nothing.
std::optional<double> parse_real(std::string_view text) {
    const auto written = plain_number(text);
    if (!written || written->empty()) return std::nullopt;
    std::string_view digits = *written;
    const bool negative = digits[0] == '-';
    if (digits[0] == '-' || digits[0] == '+') digits.remove_prefix(1);
    if (digits.empty() || digits[0] == '-' || digits[0] == '+') return std::nullopt;
    double value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (end != digits.data() + digits.size() || digits.back() == ')') return std::nullopt;
    if (error == std::errc::result_out_of_range)
        value = digits.find("e-") != std::string_view::npos || digits.find("E-") != std::string_view::npos ? 0.0 : HUGE_VAL;
    return negative ? -value : value;
}

std::optional<std::int64_t> whole(double value) {
    if (std::isnan(value)) return std::nullopt;
    if (std::isinf(value)) fail("infinity is not an integer");
    if (!(value > -0x1p63 && value < 0x1p63)) fail("the number {} does not fit into 64 bits", real_repr(value));
    return static_cast<std::int64_t>(value);
}

}  // namespace

Value absolute(Evaluator&, const Value& input, Arguments& arguments) {
    const Bound bound("abs", {}, arguments);
    check_defined(input);
    if (!input.is_number()) fail("abs() needs a number, not a {}", type_name(input));
    if (input.is(Kind::real)) return Value(std::fabs(input.real()));
    return input.integer() < 0 ? negate(input, false) : Value(input.integer());
}

Value fallback(Evaluator& evaluator, const Value& input, Arguments& arguments) {
    const Bound bound("default", {"default_value", "boolean"}, arguments);
    if (input.is(Kind::undefined) || (bound.truth_or(1, false) && !truth(input)))
        return bound.value_or(0, evaluator.character(""));
    return input;
}

Value file_size(Evaluator& evaluator, const Value& input, Arguments& arguments) {
    static constexpr std::string_view kPrefixes = "kMGTPEZY";
    const Bound bound("filesizeformat", {"binary"}, arguments);
    const bool binary = bound.truth_or(0, false);
    check_defined(input);
    if (input.is(Kind::string)) evaluator.step_bytes(input.string().text().size());
    const std::optional<double> parsed = input.is_number()        ? std::optional(input.real())
                                         : input.is(Kind::string) ? parse_real(input.string().text())
                                                                  : std::nullopt;
    if (!parsed) fail("filesizeformat() needs a number, not a {}", type_name(input));
    const double bytes = *parsed;
    const double base = binary ? 1024 : 1000;
    if (bytes == 1) return evaluator.string("1 Byte");
    if (bytes < base) return evaluator.string(fmt::format("{} Bytes", whole(bytes).value_or(0)));
    double unit = base;
    std::size_t prefix = 0;
    for (unit *= base; bytes >= unit && prefix + 1 < kPrefixes.size(); unit *= base) ++prefix;
    std::string name(1, kPrefixes[prefix]);
    if (binary) name = (prefix == 0 ? "K" : name) + "i";
    return evaluator.string(fmt::format("{:.1f} {}B", base * bytes / unit, name));
}

Value integer(Evaluator& evaluator, const Value& input, Arguments& arguments) {
    const Bound bound("int", {"default", "base"}, arguments);
    check_defined(input);
    const Value otherwise = bound.value_or(0, Value(std::int64_t{0}));
    std::optional<std::int64_t> result;
    if (input.is_integral()) {
        result = input.integer();
    } else if (input.is(Kind::real)) {
        result = whole(input.real());
    } else if (input.is(Kind::string)) {
        const std::int64_t base = bound.integer_or(1, 10);
        const std::string& text = input.string().text();
        evaluator.step_bytes(text.size());
        if (base == 0 || (base >= 2 && base <= 36)) result = parse_integer(text, static_cast<int>(base));
        if (!result) {
            if (const auto number = parse_real(text)) result = whole(*number);
        }
    }
    return result ? Value(*result) : otherwise;
}

Value real(Evaluator& evaluator, const Value& input, Arguments& arguments) {
    const Bound bound("float", {"default"}, arguments);
    check_defined(input);
    if (input.is_number()) return Value(input.real());
    if (input.is(Kind::string)) evaluator.step_bytes(input.string().text().size());
    const auto parsed = input.is(Kind::string) ? parse_real(input.string().text()) : std::nullopt;
    return parsed ? Value(*parsed) : bound.value_or(0, Value(0.0));
}

Value length(Evaluator&, const Value& input, Arguments& arguments) {
    const Bound bound("length", {}, arguments);
    const auto size = jinja::length(input);
    if (!size) fail("a {} has no length", type_name(input));
    return Value(*size);
}

Value round(Evaluator&, const Value& input, Arguments& arguments) {
    const Bound bound("round", {"precision", "method"}, arguments);
    check_defined(input);
    if (!input.is_number()) fail("round() needs a number, not a {}", type_name(input));
    const std::int64_t precision = bound.integer_or(0, 0);
    const std::string_view method = bound.string_or(1, "common");
    if (method != "common" && method != "ceil" && method != "floor")
        fail("round() knows the methods common, ceil and floor, not '{}'", method);
    const double value = input.real();
    if (method != "common") {
        const double scale = std::pow(10.0, static_cast<double>(precision));
        const double scaled = method == "ceil" ? std::ceil(value * scale) : std::floor(value * scale);
        if (!std::isfinite(scaled)) fail("round() of a number that is too large");
        return Value(scaled / scale);
    }
    if (input.is_integral() && precision >= 0) return Value(input.integer());
    if (!std::isfinite(value) || precision > 323) return Value(value);
    if (precision >= 0) {
        // The exact decimal digits decide, half to even: as many as asked for, read back.
        const std::string digits = fmt::format("{:.{}f}", value, static_cast<int>(precision));
        double result = 0;
        std::from_chars(digits.data(), digits.data() + digits.size(), result);
        return Value(result);
    }
    const double scale = std::pow(10.0, static_cast<double>(std::min<std::int64_t>(-precision, 400)));
    const double rounded = std::isinf(scale) ? 0.0 : std::nearbyint(value / scale) * scale;
    return input.is_integral() ? Value(static_cast<std::int64_t>(rounded)) : Value(rounded);
}

}  // namespace headroom::text::jinja::filter
