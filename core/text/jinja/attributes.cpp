#include "core/text/jinja/attributes.h"

#include <algorithm>

#include "core/text/jinja/arguments.h"
#include "core/text/jinja/evaluator.h"
#include "core/text/jinja/failure.h"
#include "core/text/jinja/operators.h"
#include "core/text/jinja/repr.h"
#include "core/text/jinja/unicode.h"

namespace headroom::text::jinja {
namespace {

struct NamedMethod {
    std::string_view name;
    Method method;
};

Method find_in(std::span<const NamedMethod> methods, std::string_view name) noexcept {
    const auto found = std::find_if(methods.begin(), methods.end(), [&](const NamedMethod& m) { return m.name == name; });
    return found == methods.end() ? nullptr : found->method;
}

Value refuse_change(Evaluator&, const Value& self, const Arguments&) {
    fail("a template cannot change a {}: make a new one", type_name(self));
}

Value copy(Evaluator&, const Value& self, const Arguments& arguments) {
    const Bound bound("copy", {}, arguments);
    return self;
}

// d.get(key, default)
Value dict_get(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
    const Bound bound("get", {"/key", "/default"}, arguments);
    evaluator.check_key(bound.required(0));
    const Value* found = self.dict().find(bound.required(0));
    return found != nullptr ? *found : bound.value_or(1, Value());
}

template <View::Part part>
Value dict_view(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
    const Bound bound("view of a dict", {}, arguments);
    return evaluator.view(self, part);
}

Value list_count(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
    const Bound bound("count", {"/value"}, arguments);
    const Value& wanted = bound.required(0);
    const auto& items = self.list().items();
    return Value(static_cast<std::int64_t>(std::count_if(items.begin(), items.end(), [&](const Value& item) {
        return item.is_identical(wanted) || equal(evaluator, item, wanted);
    })));
}

// l.index(value, start, stop)
Value list_index(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
    const Bound bound("index", {"/value", "/start", "/stop"}, arguments);
    const auto& items = self.list().items();
    const auto size = static_cast<std::int64_t>(items.size());
    const auto clip = [&](std::int64_t index) { return std::clamp(index < 0 ? index + size : index, std::int64_t{0}, size); };
    const Value& wanted = bound.required(0);
    const std::int64_t stop = clip(bound.integer_or(2, size));
    for (std::int64_t i = clip(bound.integer_or(1, 0)); i < stop; ++i) {
        const Value& item = items[static_cast<std::size_t>(i)];
        if (item.is_identical(wanted) || equal(evaluator, item, wanted)) return Value(i);
    }
    fail("index(): the value is not in the {}", type_name(self));
}

constexpr NamedMethod kDictMethods[] = {
    {"get", dict_get},
    {"items", dict_view<View::Part::items>},
    {"keys", dict_view<View::Part::keys>},
    {"values", dict_view<View::Part::values>},
    {"copy", copy},
    {"clear", refuse_change},
    {"pop", refuse_change},
    {"popitem", refuse_change},
    {"setdefault", refuse_change},
    {"update", refuse_change},
};

constexpr NamedMethod kTupleMethods[] = {{"count", list_count}, {"index", list_index}};

constexpr NamedMethod kListMethods[] = {
    {"count", list_count},      {"index", list_index},    {"copy", copy},
    {"append", refuse_change},  {"clear", refuse_change}, {"extend", refuse_change},
    {"insert", refuse_change},  {"pop", refuse_change},   {"remove", refuse_change},
    {"reverse", refuse_change}, {"sort", refuse_change},
};

// A method with the value it belongs to, as a value of its own.
class BoundMethod final : public Callable {
public:
    BoundMethod(Memory* memory, Value self, std::string_view name, Method method)
        : Callable(memory, sizeof(BoundMethod), self.depth() + 1), self_(std::move(self)), name_(name), method_(method) {}
    [[nodiscard]] Value call(Evaluator& evaluator, Arguments& arguments) const override {
        return method_(evaluator, self_, arguments);
    }
    [[nodiscard]] std::string description() const override {
        return fmt::format("<built-in method {} of {} object>", name_, type_name(self_));
    }

private:
    Value self_;
    std::string name_;
    Method method_;
};

// What is not a dict's item.
std::optional<Value> own_attribute(Evaluator& evaluator, const Value& target, std::string_view name) {
    if (const Method method = find_method(target, name)) {
        // As in Jinja's sandbox: what would change a value is undefined, and fails when it is called.
        if (method == refuse_change)
            return evaluator.undefined(fmt::format("'{}' would change a {}: a template cannot", name, type_name(target)));
        return evaluator.callable<BoundMethod>(target, name, method);
    }
    if (target.is(Kind::name_space)) {
        evaluator.step(target.name_space().entries().size() / 8);
        const Value* found = target.name_space().find(name);
        return found != nullptr ? std::optional(*found) : std::nullopt;
    }
    if (target.is(Kind::callable)) return target.callable().attribute(evaluator, name);
    if (target.is(Kind::tuple) && target.list().is_group()) {
        if (name == "grouper") return target.list().items()[0];
        if (name == "list") return target.list().items()[1];
    }
    return std::nullopt;
}

Value missing(Evaluator& evaluator, const Value& target, std::string_view name) {
    constexpr std::size_t kShown = 80;
    return evaluator.undefined(fmt::format("a {} has no '{}'", type_name(target), name.substr(0, byte_offset(name, kShown))));
}

// Of a list, tuple, string or range: nothing where there is no such item.
std::optional<Value> item_at(Evaluator& evaluator, const Value& target, std::int64_t index) {
    const std::int64_t size = *length(target);
    if (index < 0) index += size;
    if (index < 0 || index >= size) return std::nullopt;
    if (target.is(Kind::range)) return Value(target.range().at(index));
    if (target.is_sequence()) return target.list().items()[static_cast<std::size_t>(index)];
    const std::string& text = target.string().text();
    const auto place = static_cast<std::size_t>(index);
    if (!target.string().is_ascii()) evaluator.step_bytes(text.size());
    const std::size_t begin = target.string().is_ascii() ? place : byte_offset(text, place);
    std::size_t end = begin;
    static_cast<void>(next_code_point(text, end));
    return evaluator.string(text.substr(begin, end - begin), target.string().is_markup());
}

}  // namespace

Method find_method(const Value& self, std::string_view name) noexcept {
    switch (self.kind()) {
        case Kind::string: return find_string_method(name);
        case Kind::dict: return find_in(kDictMethods, name);
        case Kind::list: return find_in(kListMethods, name);
        case Kind::tuple: return find_in(kTupleMethods, name);
        default: return nullptr;
    }
}

Value attribute(Evaluator& evaluator, const Value& target, std::string_view name) {
    check_defined(target);
    if (auto own = own_attribute(evaluator, target, name)) return *std::move(own);
    if (target.is(Kind::dict)) {
        if (const Value* found = target.dict().find(name)) return *found;
    }
    return missing(evaluator, target, name);
}

Value subscript(Evaluator& evaluator, const Value& target, const Value& key) {
    check_defined(target);
    if (target.is(Kind::dict)) {
        if (key.is(Kind::list) || key.is(Kind::dict)) return missing(evaluator, target, type_name(key));
        evaluator.check_key(key);
        if (const Value* found = target.dict().find(key)) return *found;
    } else if (key.is_integral() && (target.is(Kind::string) || target.is_sequence() || target.is(Kind::range))) {
        if (auto item = item_at(evaluator, target, key.integer())) return *std::move(item);
    }
    if (key.is(Kind::string)) {
        const std::string& name = key.string().text();
        if (auto own = own_attribute(evaluator, target, name)) return *std::move(own);
        return missing(evaluator, target, name);
    }
    return missing(evaluator, target, key.is_number() ? to_text(evaluator, key) : std::string(type_name(key)));
}

}  // namespace headroom::text::jinja
