#include "core/text/jinja/repr.h"

#include <charconv>
#include <cmath>

#include "core/text/jinja/failure.h"
#include "core/text/jinja/operators.h"
#include "core/text/jinja/unicode.h"

namespace headroom::text::jinja {
namespace {

void print_string_repr(Text& out, std::string_view text) {
    const char quote = text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos ? '"' : '\'';
    out += quote;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t start = at;
        const char32_t c = next_code_point(text, at);
        if (c == static_cast<char32_t>(quote) || c == '\\') {
            out += '\\';
            out += static_cast<char>(c);
        } else if (c == '\n')
            out += "\\n";
        else if (c == '\r')
            out += "\\r";
        else if (c == '\t')
            out += "\\t";
        else if (is_printable(c))
            out += text.substr(start, at - start);
        else if (c < 0x100)
            out += fmt::format("\\x{:02x}", static_cast<unsigned>(c));
        else if (c < 0x10000)
            out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
        else
            out += fmt::format("\\U{:08x}", static_cast<unsigned>(c));
    }
    out += quote;
}

// A namespace may hold itself: `level` counts what is being printed inside of what.
class Printer {
public:
    Printer(Runtime& runtime, Text& out) : runtime_(runtime), out_(out) {}

    void repr(const Value& value, int level) {
        if (level > runtime_.limits().depth)
            fail("a value that nests more than {} deep cannot be printed", runtime_.limits().depth);
        runtime_.step();
        switch (value.kind()) {
            case Kind::undefined: out_ += "Undefined"; break;
            case Kind::none: out_ += "None"; break;
            case Kind::boolean: out_ += value.boolean() ? "True" : "False"; break;
            case Kind::integer: out_ += std::to_string(value.integer()); break;
            case Kind::real: out_ += real_repr(value.real()); break;
            case Kind::string:
                if (value.string().is_markup()) out_ += "Markup(";
                runtime_.step_bytes(value.string().text().size());
                print_string_repr(out_, value.string().text());
                if (value.string().is_markup()) out_ += ')';
                break;
            case Kind::list: sequence(value.list().items(), "[", "]", level); break;
            case Kind::tuple: sequence(value.list().items(), "(", value.list().items().size() == 1 ? ",)" : ")", level); break;
            case Kind::dict: dict(value.dict(), level); break;
            case Kind::view: view(value, level); break;
            case Kind::range: {
                const RangeObject& range = value.range();
                out_ += range.step() == 1 ? fmt::format("range({}, {})", range.start(), range.stop())
                                          : fmt::format("range({}, {}, {})", range.start(), range.stop(), range.step());
                break;
            }
            case Kind::iterator: out_ += "<generator object>"; break;
            case Kind::name_space: name_space(value.name_space(), level); break;
            case Kind::callable: out_ += value.callable().description(); break;
        }
    }

private:
    void sequence(const std::vector<Value>& items, std::string_view open, std::string_view close, int level) {
        out_ += open;
        for (std::size_t i = 0; i < items.size(); ++i) {
            if (i > 0) out_ += ", ";
            repr(items[i], level + 1);
        }
        out_ += close;
    }

    void dict(const Dict& value, int level) {
        out_ += '{';
        bool first = true;
        for (const auto& [key, item] : value.entries()) {
            if (!first) out_ += ", ";
            first = false;
            repr(key, level + 1);
            out_ += ": ";
            repr(item, level + 1);
        }
        out_ += '}';
    }

    void view(const Value& value, int level) {
        const View::Part part = value.view().part();
        out_ += part == View::Part::keys ? "dict_keys(" : part == View::Part::values ? "dict_values(" : "dict_items(";
        sequence(Items(runtime_, value).to_vector(), "[", "])", level);
    }

    void name_space(const Namespace& value, int level) {
        out_ += "<Namespace {";
        bool first = true;
        for (const auto& [name, item] : value.entries()) {
            if (!first) out_ += ", ";
            first = false;
            print_string_repr(out_, name);
            out_ += ": ";
            repr(item, level + 1);
        }
        out_ += "}>";
    }

    Runtime& runtime_;
    Text& out_;
};

}  // namespace

std::string real_repr(double value) {
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
    char buffer[32];
    const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific);
    const std::string_view written(buffer, static_cast<std::size_t>(end - buffer));
    const std::size_t e = written.find('e');
    int exponent = 0;
    const char* digits_of_exponent = buffer + e + (written[e + 1] == '+' ? 2 : 1);
    std::from_chars(digits_of_exponent, end, exponent);
    std::string digits;
    for (const char c : written.substr(0, e)) {
        if (c >= '0' && c <= '9') digits += c;
    }
    std::string result = written[0] == '-' ? "-" : "";
    if (exponent < -4 || exponent >= 16) {
        result += digits[0];
        if (digits.size() > 1) result += "." + digits.substr(1);
        return result + fmt::format("e{}{:02}", exponent < 0 ? '-' : '+', std::abs(exponent));
    }
    if (exponent < 0) return result + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
    const auto whole = static_cast<std::size_t>(exponent) + 1;
    if (digits.size() <= whole) return result + digits + std::string(whole - digits.size(), '0') + ".0";
    return result + digits.substr(0, whole) + "." + digits.substr(whole);
}

void print_repr(Runtime& runtime, Text& out, const Value& value) { Printer(runtime, out).repr(value, 0); }

void print(Runtime& runtime, Text& out, const Value& value) {
    if (value.is(Kind::string))
        out += value.string().text();
    else if (!value.is(Kind::undefined))
        print_repr(runtime, out, value);
}

std::string to_text(Runtime& runtime, const Value& value) {
    Text text(runtime);
    print(runtime, text, value);
    return text.take();
}

}  // namespace headroom::text::jinja
