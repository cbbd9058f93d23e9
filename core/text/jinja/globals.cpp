#include "core/text/jinja/globals.h"

#include "core/text/jinja/evaluator.h"
#include "core/text/jinja/failure.h"
#include "core/text/jinja/repr.h"
#include "core/text/jinja/strftime.h"

namespace headroom::text::jinja {
namespace {

using Body = Value (*)(Evaluator& evaluator, const Arguments& arguments);

class Function final : public Callable {
public:
    Function(Memory* memory, std::string_view name, Body body)
        : Callable(memory, sizeof(Function), 0), name_(name), body_(body) {}
    [[nodiscard]] Value call(Evaluator& evaluator, Arguments& arguments) const override { return body_(evaluator, arguments); }
    [[nodiscard]] std::string description() const override { return fmt::format("<function {}>", name_); }

private:
    std::string_view name_;
    Body body_;
};

Value range(Evaluator& evaluator, const Arguments& arguments) {
    const Bound bound("range", {"/start", "/stop", "/step"}, arguments);
    const std::int64_t first = bound.integer(0);
    if (bound.get(1) == nullptr) return evaluator.range(0, first, 1);
    return evaluator.range(first, bound.integer(1), bound.get(2) != nullptr ? bound.integer(2) : 1);
}

// dict(pairs or dict, key=value, …)
std::vector<Entry> dict_entries(Evaluator& evaluator, const Arguments& arguments) {
    std::vector<Entry> entries;
    if (arguments.positional.size() > 1) fail("dict() takes one dict or list of pairs, not {}", arguments.positional.size());
    for (const Value& source : arguments.positional) {
        check_defined(source);
        if (source.is(Kind::dict)) {
            entries = source.dict().entries();
            continue;
        }
        for (const Value& pair : Items(evaluator, source)) {
            const Items parts(evaluator, pair);
            if (parts.size() != 2) fail("dict() needs pairs, not {} values", parts.size());
            entries.emplace_back(parts[0], parts[1]);
        }
    }
    for (const auto& [name, value] : arguments.keyword) entries.emplace_back(evaluator.string(name), value);
    evaluator.check_items(entries.size());
    return entries;
}

Value dict(Evaluator& evaluator, const Arguments& arguments) { return evaluator.dict(dict_entries(evaluator, arguments)); }

Value name_space(Evaluator& evaluator, const Arguments& arguments) {
    const Value result = evaluator.name_space();
    for (const auto& [key, value] : dict_entries(evaluator, arguments)) {
        if (!key.is(Kind::string)) fail("namespace() needs strings as names");
        evaluator.step(result.name_space().entries().size() / 8);
        result.name_space().set(key.string().text(), value);
    }
    return result;
}

Value raise_exception(Evaluator& evaluator, const Arguments& arguments) {
    const Bound bound("raise_exception", {"message"}, arguments);
    throw Failure{.message = to_text(evaluator, bound.required(0)), .raised = true};
}

Value strftime_now(Evaluator& evaluator, const Arguments& arguments) {
    const Bound bound("strftime_now", {"format"}, arguments);
    const std::string_view format = bound.string(0);
    evaluator.step_bytes(format.size());
    evaluator.check_size(format.size() * 16);  // no conversion gives more for its two characters
    return evaluator.string(strftime(format, evaluator.now()));
}

// cycler(a, b, …): next(), current, reset().
class Cycler final : public Callable {
public:
    Cycler(Memory* memory, std::vector<Value> values, int depth)
        : Callable(memory, values.size() * sizeof(Value), depth), values_(std::move(values)) {}
    [[nodiscard]] Value call(Evaluator&, Arguments&) const override { fail("a cycler cannot be called: use its next()"); }
    [[nodiscard]] std::optional<Value> attribute(Evaluator& evaluator, std::string_view name) const override;
    [[nodiscard]] std::string description() const override { return "<Cycler>"; }

    [[nodiscard]] Value next() const {
        const Value value = values_[position_];
        position_ = (position_ + 1) % values_.size();
        return value;
    }
    void reset() const noexcept { position_ = 0; }

private:
    std::vector<Value> values_;
    mutable std::size_t position_ = 0;
};

class CyclerMethod final : public Callable {
public:
    CyclerMethod(Memory* memory, Value cycler, bool is_next)
        : Callable(memory, sizeof(CyclerMethod), cycler.depth() + 1), cycler_(std::move(cycler)), is_next_(is_next) {}
    [[nodiscard]] Value call(Evaluator&, Arguments&) const override {
        const auto& cycler = static_cast<const Cycler&>(cycler_.callable());
        if (is_next_) return cycler.next();
        cycler.reset();
        return {};
    }
    [[nodiscard]] std::string description() const override { return "<bound method of a cycler>"; }

private:
    Value cycler_;
    bool is_next_;
};

std::optional<Value> Cycler::attribute(Evaluator& evaluator, std::string_view name) const {
    if (name == "current") return values_[position_];
    if (name != "next" && name != "reset") return std::nullopt;
    return evaluator.callable<CyclerMethod>(self(), name == "next");
}

Value cycler(Evaluator& evaluator, const Arguments& arguments) {
    if (arguments.positional.empty() || !arguments.keyword.empty()) fail("cycler() needs values");
    int depth = 0;
    for (const Value& value : arguments.positional) depth = std::max(depth, value.depth());
    return evaluator.callable<Cycler>(arguments.positional, depth + 1);
}

// joiner(separator): nothing at the first call, then the separator.
class Joiner final : public Callable {
public:
    Joiner(Memory* memory, Value separator)
        : Callable(memory, sizeof(Joiner), separator.depth() + 1), separator_(std::move(separator)) {}
    [[nodiscard]] Value call(Evaluator& evaluator, Arguments& arguments) const override {
        const Bound bound("joiner", {}, arguments);
        return std::exchange(used_, true) ? separator_ : evaluator.character("");
    }
    [[nodiscard]] std::string description() const override { return "<Joiner>"; }

private:
    Value separator_;
    mutable bool used_ = false;
};

Value joiner(Evaluator& evaluator, const Arguments& arguments) {
    const Bound bound("joiner", {"sep"}, arguments);
    return evaluator.callable<Joiner>(bound.value_or(0, evaluator.string(", ")));
}

constexpr std::pair<std::string_view, Body> kFunctions[] = {
    {"range", range},
    {"dict", dict},
    {"namespace", name_space},
    {"cycler", cycler},
    {"joiner", joiner},
    {"raise_exception", raise_exception},
    {"strftime_now", strftime_now},
};

}  // namespace

std::optional<Value> global_function(Runtime& runtime, std::string_view name) {
    for (const auto& [known, body] : kFunctions) {
        if (known == name) return runtime.callable<Function>(known, body);
    }
    return std::nullopt;
}

}  // namespace headroom::text::jinja
