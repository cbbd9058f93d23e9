#include "core/text/jinja/format_spec.h"

#include <algorithm>
#include <cmath>

#include "core/text/jinja/failure.h"
#include "core/text/jinja/repr.h"
#include "core/text/jinja/unicode.h"

namespace headroom::text::jinja {
namespace {

constexpr std::int64_t kMostDigits = 1'000;  // behind the point: more than any double has

void pad(Text& out, std::string_view prefix, std::string_view body, const FormatSpec& spec, char align) {
    const auto size = static_cast<std::int64_t>(count_code_points(prefix) + count_code_points(body));
    const auto missing = static_cast<std::uint64_t>(std::max<std::int64_t>(spec.width - size, 0));
    const std::uint64_t left = align == '>' ? missing : align == '^' ? missing / 2 : 0;
    out.repeat(spec.fill, left);
    out += prefix;
    if (align == '=') out.repeat(spec.fill, missing);
    out += body;
    if (align != '=') out.repeat(spec.fill, missing - left);
}

std::string integer_digits(std::uint64_t value, int base, bool capital) {
    const std::string_view symbols = capital ? "0123456789ABCDEF" : "0123456789abcdef";
    std::string digits;
    do {
        digits += symbols[value % static_cast<unsigned>(base)];
        value /= static_cast<unsigned>(base);
    } while (value > 0);
    std::reverse(digits.begin(), digits.end());
    return digits;
}

void group(std::string& digits, char separator) {
    const std::size_t whole = std::min(digits.find_first_not_of("0123456789"), digits.size());
    for (std::size_t at = whole; at > 3; at -= 3) digits.insert(at - 3, 1, separator);
}

std::string real_digits(double value, const FormatSpec& spec) {
    const char type = static_cast<char>(spec.type | 0x20);
    if (std::isnan(value)) return type != spec.type && spec.type != '\0' ? "NAN" : "nan";
    if (std::isinf(value)) return type != spec.type && spec.type != '\0' ? "INF" : "inf";
    if (spec.type == '\0' && spec.precision < 0) return real_repr(value);
    const auto precision = static_cast<int>(spec.precision < 0 ? 6 : spec.precision);
    std::string digits;
    switch (type) {
        case 'e': digits = fmt::format("{:.{}e}", value, precision); break;
        case 'f': digits = fmt::format("{:.{}f}", value, precision); break;
        default:
            digits = spec.alternate ? fmt::format("{:#.{}g}", value, precision) : fmt::format("{:.{}g}", value, precision);
            break;
    }
    if (type != spec.type && spec.type != '\0') {
        std::transform(digits.begin(), digits.end(), digits.begin(), [](char c) { return c == 'e' ? 'E' : c; });
    }
    return digits;
}

}  // namespace

void format_number(Text& out, const Value& value, FormatSpec spec) {
    if (spec.precision > kMostDigits) fail("a number cannot be formatted with {} digits", spec.precision);
    std::string prefix;
    std::string digits;
    const bool as_real = value.is(Kind::real) || std::string_view("eEfFgG%").find(spec.type) != std::string_view::npos;
    if (as_real && spec.type != '\0' && std::string_view("eEfFgG%n").find(spec.type) == std::string_view::npos) {
        fail("a float cannot be formatted as '{}'", spec.type);
    }
    bool negative = false;
    if (as_real) {
        double number = value.real();
        negative = std::signbit(number) && !std::isnan(number);
        number = std::fabs(number);
        const bool percent = spec.type == '%';
        if (percent) {
            number *= 100;
            spec.type = 'f';
        }
        if (spec.type == 'n') spec.type = 'g';
        digits = real_digits(number, spec);
        if (percent) digits += '%';
    } else {
        const std::int64_t number = value.integer();
        negative = number < 0;
        const std::uint64_t size = negative ? 0 - static_cast<std::uint64_t>(number) : static_cast<std::uint64_t>(number);
        switch (spec.type) {
            case '\0':
            case 'd':
            case 'n': digits = integer_digits(size, 10, false); break;
            case 'b': digits = integer_digits(size, 2, false); break;
            case 'o': digits = integer_digits(size, 8, false); break;
            case 'x':
            case 'X': digits = integer_digits(size, 16, spec.type == 'X'); break;
            default: fail("an integer cannot be formatted as '{}'", spec.type);
        }
        if (spec.precision > static_cast<std::int64_t>(digits.size())) {
            digits.insert(0, static_cast<std::size_t>(spec.precision) - digits.size(), '0');
        }
        if (spec.alternate && spec.type != '\0' && spec.type != 'd' && spec.type != 'n') prefix = std::string("0") + spec.type;
    }
    if (spec.grouping != '\0') group(digits, spec.grouping);
    if (negative)
        prefix.insert(0, "-");
    else if (spec.sign != '-')
        prefix.insert(0, 1, spec.sign);
    if (spec.zero && spec.align == '\0') {
        spec.fill = "0";
        spec.align = '=';
    }
    pad(out, prefix, digits, spec, spec.align == '\0' ? '>' : spec.align);
}

void format_string(Text& out, std::string_view text, const FormatSpec& spec) {
    if (spec.precision >= 0) text = text.substr(0, byte_offset(text, static_cast<std::size_t>(spec.precision)));
    pad(out, "", text, spec, spec.align == '\0' ? '<' : spec.align);
}

}  // namespace headroom::text::jinja
