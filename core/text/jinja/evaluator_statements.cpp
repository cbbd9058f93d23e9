#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/text/jinja/evaluator.h"
#include "core/text/jinja/failure.h"
#include "core/text/jinja/from_json.h"
#include "core/text/jinja/globals.h"
#include "core/text/jinja/loop.h"
#include "core/text/jinja/repr.h"

namespace headroom::text::jinja {

// Output goes into a text of its own while this lives.
class Evaluator::Capture {
public:
    explicit Capture(Evaluator& evaluator)
        : evaluator_(evaluator), text_(evaluator), before_(std::exchange(evaluator.out_, &text_)) {}
    ~Capture() { evaluator_.out_ = before_; }
    Capture(const Capture&) = delete;
    Capture& operator=(const Capture&) = delete;
    [[nodiscard]] Value take() { return evaluator_.string(text_.take()); }

private:
    Evaluator& evaluator_;
    Text text_;
    Text* before_;
};

// A scope inside of `around` while this lives.
class Evaluator::Inner {
public:
    Inner(Evaluator& evaluator, ScopePtr around)
        : evaluator_(evaluator), before_(std::exchange(evaluator.scope_, std::make_shared<Scope>(std::move(around)))) {}
    explicit Inner(Evaluator& evaluator) : Inner(evaluator, evaluator.scope_) {}
    ~Inner() { evaluator_.scope_ = std::move(before_); }
    Inner(const Inner&) = delete;
    Inner& operator=(const Inner&) = delete;

private:
    Evaluator& evaluator_;
    ScopePtr before_;
};

namespace {

// One more call of a macro or a recursive loop while this lives.
class Called {
public:
    Called(int& calls, int limit) : calls_(calls) {
        if (calls >= limit) fail("the template calls itself more than {} deep", limit);
        ++calls_;
    }
    ~Called() { --calls_; }
    Called(const Called&) = delete;
    Called& operator=(const Called&) = delete;

private:
    int& calls_;
};

struct LoopEnd {
    const LoopObject* loop;
    ~LoopEnd() {
        if (loop != nullptr) loop->finish();
    }
};

}  // namespace

const Value* Scope::find(syntax::NameId name) const noexcept {
    for (const auto& [id, value] : variables) {
        if (id == name) return &value;
    }
    return nullptr;
}

void Scope::set(syntax::NameId name, Value value) {
    for (auto& [id, old] : variables) {
        if (id == name) {
            old = std::move(value);
            return;
        }
    }
    variables.emplace_back(name, std::move(value));
}

MacroObject::MacroObject(Memory* memory, const syntax::Macro& macro, ScopePtr scope)
    : Callable(memory, sizeof(MacroObject), 0), macro_(macro), scope_(std::move(scope)) {}

Value MacroObject::call(Evaluator& evaluator, Arguments& arguments) const { return evaluator.call_macro(*this, arguments); }

std::optional<Value> MacroObject::attribute(Evaluator& evaluator, std::string_view name) const {
    if (name == "name") return evaluator.string(macro_.text);
    if (name == "caller") return Value(macro_.uses_caller);
    if (name == "catch_kwargs") return Value(macro_.uses_kwargs);
    if (name == "catch_varargs") return Value(macro_.uses_varargs);
    if (name != "arguments") return std::nullopt;
    std::vector<Value> names;
    for (const syntax::Parameter& parameter : macro_.parameters) names.push_back(evaluator.string(parameter.text));
    return evaluator.tuple(std::move(names));
}

std::string MacroObject::description() const {
    return macro_.text.empty() ? "<Macro anonymous>" : fmt::format("<Macro '{}'>", macro_.text);
}

Evaluator::Evaluator(const syntax::Template& source, const TemplateLimits& limits, std::chrono::local_seconds now)
    : Runtime(limits, now), template_(source), globals_(source.names.size()), scope_(std::make_shared<Scope>(nullptr)) {}

Evaluator::~Evaluator() {
    for (const ScopePtr& scope : kept_) scope->variables.clear();
}

std::string Evaluator::render(const nlohmann::ordered_json& context) {
    for (std::size_t i = 0; i < template_.names.size(); ++i) {
        const auto found = context.find(template_.names[i]);
        if (found != context.end())
            globals_[i] = from_json(*this, *found);
        else
            globals_[i] = global_function(*this, template_.names[i]);
    }
    Text text(*this);
    out_ = &text;
    static_cast<void>(run(template_.body));
    return text.take();
}

void Evaluator::too_deep() const { fail("the template nests too deep: calls and expressions inside of each other"); }

Evaluator::Flow Evaluator::run(const syntax::Body& body) {
    for (const syntax::Statement& statement : body) {
        if (const Flow flow = run(statement); flow != Flow::next) return flow;
    }
    return Flow::next;
}

Evaluator::Flow Evaluator::run(const syntax::Statement& statement) {
    const Deeper deeper(*this);
    line_ = statement.line;
    return std::visit([this](const auto& node) { return execute(node); }, statement.node);
}

Evaluator::Flow Evaluator::execute(const syntax::Data& node) {
    *out_ += node.text;
    return Flow::next;
}

Evaluator::Flow Evaluator::execute(const syntax::Output& node) {
    const Value value = evaluate(*node.value);
    print(*this, *out_, value);
    return Flow::next;
}

void Evaluator::assign(const syntax::Target& target, const Value& value) {
    if (target.attribute) {
        const Value* found = nullptr;
        for (const Scope* scope = scope_.get(); scope != nullptr && found == nullptr; scope = scope->parent.get())
            found = scope->find(target.name);
        if (found == nullptr || !found->is(Kind::name_space)) {
            fail_at(target.line, "'{}.{}' cannot be set: only a namespace() has attributes that change",
                    template_.names[static_cast<std::size_t>(target.name)], *target.attribute);
        }
        step(found->name_space().entries().size() / 8);
        found->name_space().set(*target.attribute, value);
        return;
    }
    if (!target.is_tuple) {
        step(scope_->variables.size() / 16);
        scope_->set(target.name, value);
        return;
    }
    const Items items(*this, value);
    if (items.size() != target.items.size()) {
        fail_at(target.line, "{} names, but {} values to unpack into them", target.items.size(), items.size());
    }
    for (std::size_t i = 0; i < items.size(); ++i) assign(target.items[i], items[i]);
}

Evaluator::Flow Evaluator::execute(const syntax::Set& node) {
    const Value value = evaluate(*node.value);
    assign(node.target, value);
    return Flow::next;
}

Value Evaluator::filtered(const std::vector<syntax::FilterCall>& filters, Value value) {
    for (const syntax::FilterCall& filter : filters) value = apply(filter, value);
    return value;
}

Evaluator::Flow Evaluator::execute(const syntax::SetBlock& node) {
    Value value;
    {
        const Inner inner(*this);
        {
            Capture capture(*this);
            if (const Flow flow = run(node.body); flow != Flow::next) return flow;
            value = capture.take();
        }
        value = filtered(node.filters, std::move(value));
    }
    assign(node.target, value);
    return Flow::next;
}

Evaluator::Flow Evaluator::execute(const syntax::If& node) {
    for (const auto& [condition, body] : node.branches) {
        if (truth(evaluate(*condition))) return run(body);
    }
    return run(node.otherwise);
}

// The items for which the loop's condition holds, each tried with the loop's variables set.
std::vector<Value> Evaluator::chosen(const syntax::For& loop, const Items& items) {
    std::vector<Value> result;
    for (const Value& item : items) {
        const Inner inner(*this);
        assign(loop.target, item);
        if (truth(evaluate(*loop.condition))) result.push_back(item);
    }
    return result;
}

void Evaluator::run_loop(const syntax::For& loop, const Value& value, int depth) {
    Items items(*this, value);
    if (loop.condition) items = Items(chosen(loop, items));
    const std::size_t count = items.size();
    const ScopePtr around = scope_;
    Value loop_value;
    if (loop.uses_loop) loop_value = callable<LoopObject>(loop, around, std::move(items), depth);
    const auto* object = loop.uses_loop ? static_cast<const LoopObject*>(loop_value.object()) : nullptr;
    const LoopEnd end{object};
    const Items& all = object != nullptr ? object->items() : items;
    for (std::size_t i = 0; i < count; ++i) {
        step();
        const Inner inner(*this);
        if (object != nullptr) {
            object->go_to(i);
            scope_->set(template_.loop, loop_value);
        }
        assign(loop.target, all[i]);
        if (run(loop.body) == Flow::break_loop) break;
    }
    if (count == 0) {
        const Inner inner(*this);
        static_cast<void>(run(loop.otherwise));
    }
}

Evaluator::Flow Evaluator::execute(const syntax::For& node) {
    const Value items = evaluate(*node.items);
    run_loop(node, items, 0);
    return Flow::next;
}

Value Evaluator::loop_again(const syntax::For& loop, const ScopePtr& around, const Value& items, int depth) {
    const Called called(calls_, limits().depth);
    const int line = line_;
    Value text;
    {
        const Inner inner(*this, around);
        Capture capture(*this);
        run_loop(loop, items, depth);
        text = capture.take();
    }
    line_ = line;
    return text;
}

Evaluator::Flow Evaluator::execute(const syntax::With& node) {
    std::vector<Value> values;
    for (const auto& [target, value] : node.variables) values.push_back(evaluate(*value));
    const Inner inner(*this);
    for (std::size_t i = 0; i < values.size(); ++i) assign(node.variables[i].first, values[i]);
    return run(node.body);
}

// The current scope, which from now on lives until the end of the rendering.
ScopePtr Evaluator::keep_scope() {
    if (!scope_->is_kept) {
        memory().take(sizeof(Scope) + sizeof(ScopePtr));
        scope_->is_kept = true;
        kept_.push_back(scope_);
    }
    return scope_;
}

Evaluator::Flow Evaluator::execute(const syntax::DefineMacro& node) {
    scope_->set(node.macro->name, callable<MacroObject>(*node.macro, keep_scope()));
    return Flow::next;
}

Evaluator::Flow Evaluator::execute(const syntax::CallBlock& node) {
    const Value caller = callable<MacroObject>(*node.caller, keep_scope());
    const Value value = call_node(std::get<syntax::Call>(node.call->node), &caller);
    print(*this, *out_, value);
    return Flow::next;
}

Evaluator::Flow Evaluator::execute(const syntax::FilterBlock& node) {
    const Inner inner(*this);
    Value value;
    {
        Capture capture(*this);
        if (const Flow flow = run(node.body); flow != Flow::next) return flow;
        value = capture.take();
    }
    print(*this, *out_, filtered(node.filters, std::move(value)));
    return Flow::next;
}

Evaluator::Flow Evaluator::execute(const syntax::Scoped& node) {
    const Inner inner(*this);
    return run(node.body);
}

Evaluator::Flow Evaluator::execute(const syntax::Break&) { return Flow::break_loop; }
Evaluator::Flow Evaluator::execute(const syntax::Continue&) { return Flow::continue_loop; }

Value Evaluator::call_macro(const MacroObject& object, Arguments& arguments) {
    const Called called(calls_, limits().depth);
    const int line = line_;
    const syntax::Macro& macro = object.macro();
    const std::string_view name = macro.text.empty() ? std::string_view("caller") : std::string_view(macro.text);
    const auto take = [&](std::string_view key) -> std::optional<Value> {
        const auto found = std::find_if(arguments.keyword.begin(), arguments.keyword.end(),
                                        [&](const auto& entry) { return entry.first == key; });
        if (found == arguments.keyword.end()) return std::nullopt;
        Value value = std::move(found->second);
        arguments.keyword.erase(found);
        return value;
    };
    Value text;
    {
        const Inner inner(*this, object.scope());
        const std::size_t given = std::min(arguments.positional.size(), macro.parameters.size());
        std::vector<const syntax::Parameter*> absent;
        for (std::size_t i = 0; i < macro.parameters.size(); ++i) {
            const syntax::Parameter& parameter = macro.parameters[i];
            if (i < given)
                scope_->set(parameter.name, arguments.positional[i]);
            else if (auto value = take(parameter.text))
                scope_->set(parameter.name, *std::move(value));
            else
                absent.push_back(&parameter);
        }
        if (macro.uses_caller) {
            auto caller = take("caller");
            scope_->set(template_.caller,
                        caller ? *std::move(caller) : undefined("there is no caller: this macro was not used in a call block"));
        }
        if (macro.uses_kwargs) {
            std::vector<Entry> entries;
            for (auto& [key, value] : arguments.keyword) entries.emplace_back(string(key), std::move(value));
            scope_->set(template_.kwargs, dict(std::move(entries)));
        } else if (!arguments.keyword.empty()) {
            fail("the macro '{}' has no parameter '{}'", name, arguments.keyword.front().first);
        }
        if (macro.uses_varargs) {
            const auto rest = arguments.positional.begin() + static_cast<std::ptrdiff_t>(given);
            scope_->set(template_.varargs, tuple({rest, arguments.positional.end()}));
        } else if (arguments.positional.size() > macro.parameters.size()) {
            fail("the macro '{}' takes {} arguments, not {}", name, macro.parameters.size(), arguments.positional.size());
        }
        // Defaults see the parameters before them.
        for (const syntax::Parameter* parameter : absent) {
            scope_->set(parameter->name, parameter->fallback
                                             ? evaluate(*parameter->fallback)
                                             : undefined(fmt::format("the parameter '{}' was not given", parameter->text)));
        }
        Capture capture(*this);
        static_cast<void>(run(macro.body));
        text = capture.take();
    }
    line_ = line;
    return text;
}

}  // namespace headroom::text::jinja
