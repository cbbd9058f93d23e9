#include "core/text/jinja/tojson.h"

#include <algorithm>
#include <cmath>

#include "core/text/chat_prompt.h"
#include "core/text/jinja/failure.h"
#include "core/text/jinja/operators.h"
#include "core/text/jinja/repr.h"
#include "core/text/jinja/unicode.h"

namespace headroom::text::jinja {
namespace {

class Writer {
public:
    Writer(Runtime& runtime, const JsonStyle& style) : runtime_(runtime), style_(style), out_(runtime) {}

    void write(const Value& value, int level) {
        runtime_.step();
        switch (value.kind()) {
            case Kind::none: out_ += "null"; break;
            case Kind::boolean: out_ += value.boolean() ? "true" : "false"; break;
            case Kind::integer: out_ += std::to_string(value.integer()); break;
            case Kind::real: out_ += real(value.real()); break;
            case Kind::string: string(value.string().text()); break;
            case Kind::list:
            case Kind::tuple: sequence(value.list().items(), level); break;
            case Kind::dict: dict(value.dict(), level); break;
            default: fail("a {} cannot be written as JSON", type_name(value));
        }
    }

    [[nodiscard]] std::string take() { return out_.take(); }

private:
    static std::string real(double value) {
        if (std::isnan(value)) return "NaN";
        if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
        return real_repr(value);
    }

    void string(std::string_view text) {
        runtime_.step_bytes(text.size());
        out_ += '"';
        for (std::size_t at = 0; at < text.size();) {
            const std::size_t start = at;
            const char32_t c = next_code_point(text, at);
            switch (c) {
                case '"': out_ += "\\\""; break;
                case '\\': out_ += "\\\\"; break;
                case '\n': out_ += "\\n"; break;
                case '\r': out_ += "\\r"; break;
                case '\t': out_ += "\\t"; break;
                case '\f': out_ += "\\f"; break;
                case '\b': out_ += "\\b"; break;
                default:
                    if (c < 0x20)
                        unit(c);
                    else if (c < 0x80 || !style_.ensure_ascii || is_plain_mark(text.substr(start, at - start))) {
                        if (c == 0x7F && style_.ensure_ascii)
                            unit(c);
                        else
                            out_ += text.substr(start, at - start);
                    } else if (c < 0x10000)
                        unit(c);
                    else {
                        unit(0xD800 + ((c - 0x10000) >> 10));
                        unit(0xDC00 + ((c - 0x10000) & 0x3FF));
                    }
            }
        }
        out_ += '"';
    }

    // The mark of plain text has to reach the tokenizer as it is.
    static bool is_plain_mark(std::string_view character) { return character == kPlainMark; }

    void unit(char32_t value) { out_ += fmt::format("\\u{:04x}", static_cast<unsigned>(value)); }

    void new_line(int level) {
        if (!style_.indent) return;
        out_ += '\n';
        out_.repeat(*style_.indent, static_cast<std::uint64_t>(level));
    }

    void sequence(const std::vector<Value>& items, int level) {
        if (items.empty()) {
            out_ += "[]";
            return;
        }
        out_ += '[';
        for (std::size_t i = 0; i < items.size(); ++i) {
            if (i > 0) out_ += style_.item_separator;
            new_line(level + 1);
            write(items[i], level + 1);
        }
        new_line(level);
        out_ += ']';
    }

    void key(const Value& value) {
        switch (value.kind()) {
            case Kind::string: string(value.string().text()); break;
            case Kind::none: out_ += "\"null\""; break;
            case Kind::boolean: out_ += value.boolean() ? "\"true\"" : "\"false\""; break;
            case Kind::integer: string(std::to_string(value.integer())); break;
            case Kind::real: string(real(value.real())); break;
            default: fail("a {} cannot be a key in JSON", type_name(value));
        }
    }

    void dict(const Dict& value, int level) {
        if (value.entries().empty()) {
            out_ += "{}";
            return;
        }
        std::vector<const Entry*> entries;
        for (const Entry& entry : value.entries()) entries.push_back(&entry);
        if (style_.sort_keys) {
            std::stable_sort(entries.begin(), entries.end(),
                             [&](const Entry* a, const Entry* b) { return order(runtime_, a->first, b->first) < 0; });
        }
        out_ += '{';
        bool first = true;
        for (const Entry* entry : entries) {
            if (!first) out_ += style_.item_separator;
            first = false;
            new_line(level + 1);
            key(entry->first);
            out_ += style_.key_separator;
            write(entry->second, level + 1);
        }
        new_line(level);
        out_ += '}';
    }

    Runtime& runtime_;
    const JsonStyle& style_;
    Text out_;
};

}  // namespace

std::string to_json(Runtime& runtime, const Value& value, const JsonStyle& style) {
    Writer writer(runtime, style);
    writer.write(value, 0);
    return writer.take();
}

}  // namespace headroom::text::jinja
