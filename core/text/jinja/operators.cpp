#include "core/text/jinja/operators.h"

#include <algorithm>
#include <cmath>

#include "core/text/jinja/failure.h"
#include "core/text/jinja/format.h"
#include "core/text/jinja/html.h"
#include "core/text/jinja/search.h"
#include "core/text/jinja/unicode.h"

namespace headroom::text::jinja {
namespace {

[[noreturn]] void too_large() { fail("a number does not fit into 64 bits"); }

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
    if (b == 0) fail("division by zero");
    if (b == -1) {
        std::int64_t result = 0;
        if (__builtin_sub_overflow(std::int64_t{0}, a, &result)) too_large();
        return result;
    }
    const std::int64_t quotient = a / b;
    return a % b != 0 && (a % b < 0) != (b < 0) ? quotient - 1 : quotient;
}

std::int64_t modulo(std::int64_t a, std::int64_t b) {
    if (b == 0) fail("division by zero");
    if (b == -1) return 0;
    const std::int64_t rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

double modulo(double a, double b) {
    if (b == 0) fail("division by zero");
    double rest = std::fmod(a, b);
    if (rest == 0) return std::copysign(0.0, b);
    if ((rest < 0) != (b < 0)) rest += b;
    return rest;
}

double floor_divide(double a, double b) {
    if (b == 0) fail("division by zero");
    double rest = std::fmod(a, b);
    double quotient = (a - rest) / b;
    if (rest != 0 && (rest < 0) != (b < 0)) quotient -= 1;
    if (quotient == 0) return std::copysign(0.0, a / b);
    const double whole = std::floor(quotient);
    return quotient - whole > 0.5 ? whole + 1 : whole;
}

Value power(const Value& a, const Value& b) {
    if (a.is_integral() && b.is_integral() && b.integer() >= 0) {
        std::int64_t result = 1;
        std::int64_t base = a.integer();
        std::int64_t exponent = b.integer();
        if (base == -1) return Value(exponent % 2 == 0 ? std::int64_t{1} : std::int64_t{-1});
        while (exponent > 0) {
            if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) too_large();
            exponent >>= 1;
            if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) too_large();
        }
        return Value(result);
    }
    if (a.real() == 0 && b.real() < 0) fail("0 to the power of a negative number");
    const double result = std::pow(a.real(), b.real());
    if (std::isnan(result) && !std::isnan(a.real()) && !std::isnan(b.real())) fail("the power of a negative number is not real");
    if (std::isinf(result) && std::isfinite(a.real()) && std::isfinite(b.real())) fail("the result of ** is too large");
    return Value(result);
}

Value compute(syntax::Operator operation, const Value& a, const Value& b) {
    using syntax::Operator;
    if (operation == Operator::power) return power(a, b);
    if (operation == Operator::divide) {
        if (b.real() == 0) fail("division by zero");
        return Value(a.real() / b.real());
    }
    if (a.is_integral() && b.is_integral()) {
        const std::int64_t x = a.integer();
        const std::int64_t y = b.integer();
        std::int64_t result = 0;
        bool overflow = false;
        switch (operation) {
            case Operator::add: overflow = __builtin_add_overflow(x, y, &result); break;
            case Operator::subtract: overflow = __builtin_sub_overflow(x, y, &result); break;
            case Operator::multiply: overflow = __builtin_mul_overflow(x, y, &result); break;
            case Operator::floor_divide: result = floor_divide(x, y); break;
            default: result = modulo(x, y); break;
        }
        if (overflow) too_large();
        return Value(result);
    }
    const double x = a.real();
    const double y = b.real();
    switch (operation) {
        case Operator::add: return Value(x + y);
        case Operator::subtract: return Value(x - y);
        case Operator::multiply: return Value(x * y);
        case Operator::floor_divide: return Value(floor_divide(x, y));
        default: return Value(modulo(x, y));
    }
}

Value add_strings(Runtime& runtime, const String& a, const String& b) {
    const bool markup = a.is_markup() || b.is_markup();
    Text text(runtime);
    const auto append = [&](const String& part) {
        if (markup && !part.is_markup())
            escape_html(text, part.text());
        else
            text += part.text();
    };
    append(a);
    append(b);
    return runtime.string(text.take(), markup);
}

Value repeat(Runtime& runtime, const Value& value, std::int64_t times) {
    times = std::max<std::int64_t>(times, 0);
    if (value.is(Kind::string)) {
        Text text(runtime);
        text.repeat(value.string().text(), static_cast<std::uint64_t>(times));
        return runtime.string(text.take(), value.string().is_markup());
    }
    const auto& items = value.list().items();
    std::vector<Value> result;
    if (!items.empty()) {
        const auto most = static_cast<std::uint64_t>(runtime.limits().output_bytes);
        runtime.check_items(std::min(static_cast<std::uint64_t>(times), most) * items.size());
        result.reserve(static_cast<std::size_t>(times) * items.size());
        for (std::int64_t i = 0; i < times; ++i) result.insert(result.end(), items.begin(), items.end());
    }
    return value.is(Kind::list) ? runtime.list(std::move(result)) : runtime.tuple(std::move(result));
}

// Where slicing starts and stops, how it steps and how many items it gives, as Python's slice.indices has it.
struct SliceRange {
    std::int64_t start, stop, step, count;
};

SliceRange slice_range(std::int64_t length, const Value& start, const Value& stop, const Value& step) {
    const auto integer = [](const Value& value) {
        check_defined(value);
        if (!value.is_integral()) fail("a slice needs integers, not a {}", type_name(value));
        return value.integer();
    };
    const std::int64_t by = step.is(Kind::none) ? 1 : integer(step);
    if (by == 0) fail("the step of a slice is 0");
    const auto clip = [&](const Value& value, std::int64_t fallback) {
        if (value.is(Kind::none)) return fallback;
        std::int64_t index = integer(value);
        if (index < 0)
            index = index < -length ? -1 : index + length;
        else if (index >= length)
            return by > 0 ? length : length - 1;
        return index < 0 && by > 0 ? std::int64_t{0} : index;
    };
    const std::int64_t first = clip(start, by > 0 ? 0 : length - 1);
    const std::int64_t last = clip(stop, by > 0 ? length : -1);
    const std::int64_t distance = by > 0 ? last - first : first - last;
    if (distance <= 0) return {first, last, by, 0};
    // The size of the step, where -2^63 has none: anything beyond the length is one item.
    const std::int64_t size = by == INT64_MIN ? INT64_MAX : std::abs(by);
    return {first, last, by, (distance - 1) / size + 1};
}

const char* symbol(syntax::Operator operation) noexcept {
    switch (operation) {
        case syntax::Operator::add: return "+";
        case syntax::Operator::subtract: return "-";
        case syntax::Operator::multiply: return "*";
        case syntax::Operator::divide: return "/";
        case syntax::Operator::floor_divide: return "//";
        case syntax::Operator::modulo: return "%";
        case syntax::Operator::power: return "**";
    }
    return "?";
}

std::vector<Value> characters(Runtime& runtime, const std::string& text) {
    std::vector<Value> items;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t start = at;
        static_cast<void>(next_code_point(text, at));
        items.push_back(runtime.character(std::string_view(text).substr(start, at - start)));
    }
    return items;
}

}  // namespace

void check_defined(const Value& value) {
    if (value.is(Kind::undefined)) fail("{}", value.string().text());
}

bool truth(const Value& value) noexcept {
    switch (value.kind()) {
        case Kind::undefined:
        case Kind::none: return false;
        case Kind::boolean: return value.boolean();
        case Kind::integer: return value.integer() != 0;
        case Kind::real: return value.real() != 0;
        default: return length(value).value_or(1) != 0;
    }
}

std::optional<std::int64_t> length(const Value& value) noexcept {
    switch (value.kind()) {
        case Kind::undefined: return 0;
        case Kind::string: return static_cast<std::int64_t>(value.string().length());
        case Kind::list:
        case Kind::tuple: return static_cast<std::int64_t>(value.list().items().size());
        case Kind::dict: return static_cast<std::int64_t>(value.dict().entries().size());
        case Kind::view: return static_cast<std::int64_t>(value.view().dict().entries().size());
        case Kind::range: return value.range().length();
        default: return std::nullopt;
    }
}

bool equal(Runtime& runtime, const Value& a, const Value& b) {
    runtime.step();
    if (a.is_number() && b.is_number()) return compare_numbers(a, b) == 0;
    if (a.kind() != b.kind()) return false;
    if (a.is(Kind::undefined) || a.is(Kind::none)) return true;
    if (a.object() == b.object()) return true;
    switch (a.kind()) {
        case Kind::string:
            runtime.step_copy(std::min(a.string().text().size(), b.string().text().size()));
            return a.string().text() == b.string().text();
        case Kind::list:
        case Kind::tuple: {
            const auto& x = a.list().items();
            const auto& y = b.list().items();
            if (x.size() != y.size()) return false;
            for (std::size_t i = 0; i < x.size(); ++i) {
                if (!x[i].is_identical(y[i]) && !equal(runtime, x[i], y[i])) return false;
                runtime.step();
            }
            return true;
        }
        case Kind::dict: {
            if (a.dict().entries().size() != b.dict().entries().size()) return false;
            for (const auto& [key, value] : a.dict().entries()) {
                runtime.check_key(key);
                const Value* other = b.dict().find(key);
                if (other == nullptr || (!value.is_identical(*other) && !equal(runtime, value, *other))) return false;
            }
            return true;
        }
        case Kind::range: {
            const RangeObject& x = a.range();
            const RangeObject& y = b.range();
            if (x.length() != y.length() || x.length() == 0) return x.length() == y.length();
            return x.start() == y.start() && (x.length() == 1 || x.step() == y.step());
        }
        default: return false;
    }
}

std::partial_ordering order(Runtime& runtime, const Value& a, const Value& b) {
    runtime.step();
    check_defined(a);
    check_defined(b);
    if (a.is_number() && b.is_number()) return compare_numbers(a, b);
    if (a.is(Kind::string) && b.is(Kind::string)) {
        runtime.step_copy(std::min(a.string().text().size(), b.string().text().size()));
        return a.string().text() <=> b.string().text();
    }
    if (a.is_sequence() && a.kind() == b.kind()) {
        const auto& x = a.list().items();
        const auto& y = b.list().items();
        for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
            if (x[i].is_identical(y[i]) || equal(runtime, x[i], y[i])) continue;
            return order(runtime, x[i], y[i]);
        }
        return x.size() <=> y.size();
    }
    fail("a {} and a {} have no order", type_name(a), type_name(b));
}

bool compare(Runtime& runtime, syntax::Comparison comparison, const Value& a, const Value& b) {
    using syntax::Comparison;
    switch (comparison) {
        case Comparison::equal: return equal(runtime, a, b);
        case Comparison::not_equal: return !equal(runtime, a, b);
        case Comparison::less: return order(runtime, a, b) < 0;
        case Comparison::less_equal: return order(runtime, a, b) <= 0;
        case Comparison::greater: return order(runtime, a, b) > 0;
        case Comparison::greater_equal: return order(runtime, a, b) >= 0;
        case Comparison::in: return contains(runtime, b, a);
        case Comparison::not_in: return !contains(runtime, b, a);
    }
    return false;
}

bool contains(Runtime& runtime, const Value& container, const Value& item) {
    if (container.is(Kind::string)) {
        check_defined(item);
        if (!item.is(Kind::string)) fail("'in' a string needs a string, not a {}", type_name(item));
        const std::string& text = container.string().text();
        runtime.step_bytes(text.size());
        return find_text(text, item.string().text(), 0) != std::string::npos;
    }
    if (container.is(Kind::dict) || (container.is(Kind::view) && container.view().part() == View::Part::keys)) {
        runtime.check_key(item);
        return (container.is(Kind::dict) ? container.dict() : container.view().dict()).find(item) != nullptr;
    }
    for (const Value& candidate : Items(runtime, container)) {
        runtime.step();
        if (candidate.is_identical(item) || equal(runtime, candidate, item)) return true;
    }
    return false;
}

Value arithmetic(Runtime& runtime, syntax::Operator operation, const Value& a, const Value& b) {
    using syntax::Operator;
    check_defined(a);
    if (operation == Operator::modulo && a.is(Kind::string)) return format_percent(runtime, a, b);
    check_defined(b);
    if (a.is_number() && b.is_number()) return compute(operation, a, b);
    if (operation == Operator::add) {
        if (a.is(Kind::string) && b.is(Kind::string)) return add_strings(runtime, a.string(), b.string());
        if (a.is_sequence() && a.kind() == b.kind()) {
            const auto& x = a.list().items();
            const auto& y = b.list().items();
            runtime.check_items(x.size() + y.size());
            std::vector<Value> items;
            items.reserve(x.size() + y.size());
            items.insert(items.end(), x.begin(), x.end());
            items.insert(items.end(), y.begin(), y.end());
            return a.is(Kind::list) ? runtime.list(std::move(items)) : runtime.tuple(std::move(items));
        }
    }
    if (operation == Operator::multiply) {
        const auto repeatable = [](const Value& value) { return value.is(Kind::string) || value.is_sequence(); };
        if (repeatable(a) && b.is_integral()) return repeat(runtime, a, b.integer());
        if (a.is_integral() && repeatable(b)) return repeat(runtime, b, a.integer());
    }
    fail("'{}' is not possible between a {} and a {}", symbol(operation), type_name(a), type_name(b));
}

Value negate(const Value& value, bool is_plus) {
    check_defined(value);
    if (value.is(Kind::real)) return Value(is_plus ? value.real() : -value.real());
    if (!value.is_integral()) fail("a {} has no sign", type_name(value));
    std::int64_t result = value.integer();
    if (!is_plus && __builtin_sub_overflow(std::int64_t{0}, value.integer(), &result)) too_large();
    return Value(result);
}

bool is_iterable(const Value& value) noexcept {
    switch (value.kind()) {
        case Kind::none:
        case Kind::boolean:
        case Kind::integer:
        case Kind::real:
        case Kind::name_space:
        case Kind::callable: return false;
        default: return true;
    }
}

Items::Items(Runtime& runtime, const Value& value) {
    switch (value.kind()) {
        case Kind::undefined: break;
        case Kind::string:
            runtime.check_items(value.string().length());
            own_ = characters(runtime, value.string().text());
            break;
        case Kind::list:
        case Kind::tuple:
            owner_ = value;
            span_ = value.list().items();
            return;
        case Kind::dict:
        case Kind::view: {
            const Dict& dict = value.is(Kind::dict) ? value.dict() : value.view().dict();
            const View::Part part = value.is(Kind::dict) ? View::Part::keys : value.view().part();
            runtime.check_items(dict.entries().size());
            own_.reserve(dict.entries().size());
            for (const auto& [key, item] : dict.entries()) {
                if (part == View::Part::keys)
                    own_.push_back(key);
                else if (part == View::Part::values)
                    own_.push_back(item);
                else
                    own_.push_back(runtime.tuple({key, item}));
            }
            break;
        }
        case Kind::range:
            runtime.check_items(static_cast<std::uint64_t>(value.range().length()));
            for (std::int64_t i = 0; i < value.range().length(); ++i) own_.emplace_back(value.range().at(i));
            break;
        case Kind::iterator: own_ = value.iterator().take_rest(); break;
        default: fail("a {} cannot be iterated over", type_name(value));
    }
    span_ = own_;
}

Value slice(Runtime& runtime, const Value& value, const Value& start, const Value& stop, const Value& step) {
    check_defined(value);
    const auto size = length(value);
    const bool possible = value.is(Kind::string) || value.is_sequence() || value.is(Kind::range);
    if (!size || !possible) fail("a {} cannot be sliced", type_name(value));
    const SliceRange part = slice_range(*size, start, stop, step);
    if (value.is(Kind::range)) {
        const RangeObject& range = value.range();
        std::int64_t new_step = 0;
        if (__builtin_mul_overflow(range.step(), part.step, &new_step)) too_large();
        return runtime.range(range.at(part.start), range.at(part.stop), new_step);
    }
    if (value.is_sequence()) {
        const auto& items = value.list().items();
        runtime.check_items(static_cast<std::uint64_t>(part.count));
        std::vector<Value> result;
        result.reserve(static_cast<std::size_t>(part.count));
        for (std::int64_t i = 0; i < part.count; ++i)
            result.push_back(items[static_cast<std::size_t>(part.start + i * part.step)]);
        return value.is(Kind::list) ? runtime.list(std::move(result)) : runtime.tuple(std::move(result));
    }
    const String& string = value.string();
    const std::string& text = string.text();
    runtime.step_bytes(text.size());
    if (part.step == 1) {
        std::size_t begin = static_cast<std::size_t>(part.start);
        std::size_t end = begin + static_cast<std::size_t>(part.count);
        if (!string.is_ascii()) {
            begin = byte_offset(text, begin);
            end = begin + byte_offset(std::string_view(text).substr(begin), static_cast<std::size_t>(part.count));
        }
        return runtime.string(text.substr(begin, end - begin), string.is_markup());
    }
    std::vector<std::size_t> starts;  // of each code point
    for (std::size_t at = 0; at < text.size();) {
        starts.push_back(at);
        static_cast<void>(next_code_point(text, at));
    }
    starts.push_back(text.size());
    std::string result;
    for (std::int64_t i = 0; i < part.count; ++i) {
        const auto index = static_cast<std::size_t>(part.start + i * part.step);
        result.append(text, starts[index], starts[index + 1] - starts[index]);
    }
    return runtime.string(std::move(result), string.is_markup());
}

}  // namespace headroom::text::jinja
