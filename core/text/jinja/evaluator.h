#pragma once

// Renders a syntax tree.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/text/jinja/arguments.h"
#include "core/text/jinja/operators.h"
#include "core/text/jinja/runtime.h"
#include "core/text/jinja/syntax.h"

namespace headroom::text::jinja {

// The variables of one block, and the block around it.
struct Scope {
    explicit Scope(std::shared_ptr<Scope> around) noexcept : parent(std::move(around)) {}
    [[nodiscard]] const Value* find(syntax::NameId name) const noexcept;
    void set(syntax::NameId name, Value value);

    std::shared_ptr<Scope> parent;
    std::vector<std::pair<syntax::NameId, Value>> variables;
    bool is_kept = false;  // by a macro
};
using ScopePtr = std::shared_ptr<Scope>;

// A macro, or the body of a call block, with the variables around it.
class MacroObject final : public Callable {
public:
    MacroObject(Memory* memory, const syntax::Macro& macro, ScopePtr scope);
    [[nodiscard]] Value call(Evaluator& evaluator, Arguments& arguments) const override;
    [[nodiscard]] std::optional<Value> attribute(Evaluator& evaluator, std::string_view name) const override;
    [[nodiscard]] std::string description() const override;
    [[nodiscard]] const syntax::Macro& macro() const noexcept { return macro_; }
    [[nodiscard]] const ScopePtr& scope() const noexcept { return scope_; }

private:
    const syntax::Macro& macro_;
    ScopePtr scope_;
};

class Evaluator : public Runtime {
public:
    Evaluator(const syntax::Template& source, const TemplateLimits& limits, std::chrono::local_seconds now);
    ~Evaluator();

    // Once. Throws Failure.
    [[nodiscard]] std::string render(const nlohmann::ordered_json& context);
    // Where the evaluator stands.
    [[nodiscard]] int line() const noexcept { return line_; }

    [[nodiscard]] Value call(const Value& callee, Arguments& arguments);
    [[nodiscard]] Value call_macro(const MacroObject& macro, Arguments& arguments);
    // The text of one run of a recursive loop over `items`; `depth`: how many are around it.
    [[nodiscard]] Value loop_again(const syntax::For& loop, const ScopePtr& around, const Value& items, int depth);

private:
    enum class Flow { next, break_loop, continue_loop };

    // One more nested evaluation while this lives. Frames of several kinds lie between two macros' calls, so there may be more of
    // them than the limit on calls says; what counts is the stack.
    class Deeper {
    public:
        explicit Deeper(Evaluator& evaluator) : evaluator_(evaluator) {
            evaluator.step();
            if (evaluator.level_ >= kLevelsPerCall * evaluator.limits().depth) evaluator.too_deep();
            ++evaluator.level_;
        }
        ~Deeper() { --evaluator_.level_; }
        Deeper(const Deeper&) = delete;
        Deeper& operator=(const Deeper&) = delete;

    private:
        static constexpr int kLevelsPerCall = 5;
        Evaluator& evaluator_;
    };
    [[noreturn]] void too_deep() const;

    class Capture;
    class Inner;

    // Statements (evaluator_statements.cpp).
    Flow run(const syntax::Body& body);
    Flow run(const syntax::Statement& statement);
    Flow execute(const syntax::Data& node);
    Flow execute(const syntax::Output& node);
    Flow execute(const syntax::Set& node);
    Flow execute(const syntax::SetBlock& node);
    Flow execute(const syntax::If& node);
    Flow execute(const syntax::For& node);
    Flow execute(const syntax::With& node);
    Flow execute(const syntax::DefineMacro& node);
    Flow execute(const syntax::CallBlock& node);
    Flow execute(const syntax::FilterBlock& node);
    Flow execute(const syntax::Scoped& node);
    Flow execute(const syntax::Break& node);
    Flow execute(const syntax::Continue& node);
    void run_loop(const syntax::For& loop, const Value& items, int depth);
    [[nodiscard]] std::vector<Value> chosen(const syntax::For& loop, const Items& items);
    void assign(const syntax::Target& target, const Value& value);
    [[nodiscard]] ScopePtr keep_scope();
    [[nodiscard]] Value filtered(const std::vector<syntax::FilterCall>& filters, Value value);

    // Expressions (evaluator_expressions.cpp).
    Value evaluate(const syntax::Expression& expression);
    Value evaluate(const syntax::Literal& node);
    Value evaluate(const syntax::Name& node);
    Value evaluate(const syntax::ListLiteral& node);
    Value evaluate(const syntax::DictLiteral& node);
    Value evaluate(const syntax::Attribute& node);
    Value evaluate(const syntax::Subscript& node);
    Value evaluate(const syntax::Slice& node);
    Value evaluate(const syntax::Call& node);
    Value evaluate(const syntax::Filter& node);
    Value evaluate(const syntax::Test& node);
    Value evaluate(const syntax::Conditional& node);
    Value evaluate(const syntax::Not& node);
    Value evaluate(const syntax::Negate& node);
    Value evaluate(const syntax::Logical& node);
    Value evaluate(const syntax::Concat& node);
    Value evaluate(const syntax::Arithmetic& node);
    Value evaluate(const syntax::Compare& node);
    [[nodiscard]] Value call_node(const syntax::Call& node, const Value* caller);
    [[nodiscard]] Arguments arguments(const syntax::CallArguments& written);
    [[nodiscard]] Value apply(const syntax::FilterCall& filter, const Value& input);

    const syntax::Template& template_;
    std::vector<std::optional<Value>> globals_;  // by NameId: the context, and the built-in functions
    ScopePtr scope_;
    std::vector<ScopePtr> kept_;  // emptied at the end: a scope may hold a macro that holds the scope
    Text* out_ = nullptr;
    int line_ = 0;
    int level_ = 0;  // nested evaluations
    int calls_ = 0;  // nested calls of macros and recursive loops
};

}  // namespace headroom::text::jinja
