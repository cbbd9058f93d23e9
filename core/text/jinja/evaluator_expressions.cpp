#include "core/text/jinja/attributes.h"
#include "core/text/jinja/evaluator.h"
#include "core/text/jinja/failure.h"
#include "core/text/jinja/repr.h"

namespace headroom::text::jinja {

Value Evaluator::evaluate(const syntax::Expression& expression) {
    const Deeper deeper(*this);
    line_ = expression.line;
    return std::visit([this](const auto& node) { return evaluate(node); }, expression.node);
}

Value Evaluator::evaluate(const syntax::Literal& node) { return node.value; }

Value Evaluator::evaluate(const syntax::Name& node) {
    for (const Scope* scope = scope_.get(); scope != nullptr; scope = scope->parent.get()) {
        step(scope->variables.size() / 16);
        if (const Value* found = scope->find(node.id)) return *found;
    }
    const auto index = static_cast<std::size_t>(node.id);
    if (globals_[index]) return *globals_[index];
    return undefined(fmt::format("'{}' is undefined", template_.names[index]));
}

Value Evaluator::evaluate(const syntax::ListLiteral& node) {
    std::vector<Value> items;
    items.reserve(node.items.size());
    for (const auto& item : node.items) items.push_back(evaluate(*item));
    return node.is_tuple ? tuple(std::move(items)) : list(std::move(items));
}

Value Evaluator::evaluate(const syntax::DictLiteral& node) {
    std::vector<Entry> entries;
    entries.reserve(node.entries.size());
    for (const auto& [key, value] : node.entries) {
        Value evaluated_key = evaluate(*key);
        entries.emplace_back(std::move(evaluated_key), evaluate(*value));
    }
    return dict(std::move(entries));
}

Value Evaluator::evaluate(const syntax::Attribute& node) {
    const Value target = evaluate(*node.target);
    return attribute(*this, target, node.name);
}

Value Evaluator::evaluate(const syntax::Subscript& node) {
    const Value target = evaluate(*node.target);
    const Value key = evaluate(*node.key);
    return subscript(*this, target, key);
}

Value Evaluator::evaluate(const syntax::Slice& node) {
    const Value target = evaluate(*node.target);
    const auto part = [&](const syntax::ExpressionPtr& written) { return written ? evaluate(*written) : Value(); };
    const Value start = part(node.start);
    const Value stop = part(node.stop);
    const Value step = part(node.step);
    return slice(*this, target, start, stop, step);
}

Arguments Evaluator::arguments(const syntax::CallArguments& written) {
    Arguments result;
    result.positional.reserve(written.positional.size());
    for (const auto& argument : written.positional) result.positional.push_back(evaluate(*argument));
    for (const auto& [name, argument] : written.keyword) result.keyword.emplace_back(name, evaluate(*argument));
    if (written.positional_rest) {
        const Items rest(*this, evaluate(*written.positional_rest));
        check_items(rest.size());
        result.positional.insert(result.positional.end(), rest.begin(), rest.end());
    }
    if (written.keyword_rest) {
        const Value rest = evaluate(*written.keyword_rest);
        check_defined(rest);
        if (!rest.is(Kind::dict)) fail("** needs a dict, not a {}", type_name(rest));
        check_items(rest.dict().entries().size());
        for (const auto& [key, value] : rest.dict().entries()) {
            if (!key.is(Kind::string)) fail("** needs a dict with strings as keys");
            result.keyword.emplace_back(key.string().text(), value);
        }
    }
    for (std::size_t i = 0; i < result.keyword.size(); ++i) {
        step(i / 8);
        for (std::size_t j = 0; j < i; ++j) {
            if (result.keyword[i].first == result.keyword[j].first)
                fail("the argument '{}' is given twice", result.keyword[i].first);
        }
    }
    return result;
}

Value Evaluator::call(const Value& callee, Arguments& arguments) {
    check_defined(callee);
    if (!callee.is(Kind::callable)) fail("a {} cannot be called", type_name(callee));
    return callee.callable().call(*this, arguments);
}

// caller: of a call block, an argument more.
Value Evaluator::call_node(const syntax::Call& node, const Value* caller) {
    const int line = line_;
    const auto all_arguments = [&] {
        Arguments result = arguments(node.arguments);
        if (caller != nullptr) result.keyword.emplace_back("caller", *caller);
        line_ = line;
        return result;
    };
    // x.method(…) without a value for the method in between.
    if (const auto* named = std::get_if<syntax::Attribute>(&node.callee->node)) {
        const Value self = evaluate(*named->target);
        if (const Method method = find_method(self, named->name)) return method(*this, self, all_arguments());
        const Value callee = attribute(*this, self, named->name);
        Arguments given = all_arguments();
        return call(callee, given);
    }
    const Value callee = evaluate(*node.callee);
    Arguments given = all_arguments();
    return call(callee, given);
}

Value Evaluator::evaluate(const syntax::Call& node) { return call_node(node, nullptr); }

Value Evaluator::apply(const syntax::FilterCall& filter, const Value& input) {
    Arguments given = arguments(filter.arguments);
    line_ = filter.line;
    if (filter.function == nullptr) fail("there is no filter named '{}'", filter.name);
    return filter.function(*this, input, given);
}

Value Evaluator::evaluate(const syntax::Filter& node) {
    const Value input = evaluate(*node.target);
    return apply(node.call, input);
}

Value Evaluator::evaluate(const syntax::Test& node) {
    const Value input = evaluate(*node.target);
    Arguments given = arguments(node.arguments);
    if (node.function == nullptr) fail("there is no test named '{}'", node.name);
    return Value(node.function(*this, input, given) != node.negated);
}

Value Evaluator::evaluate(const syntax::Conditional& node) {
    if (truth(evaluate(*node.condition))) return evaluate(*node.value);
    if (node.otherwise) return evaluate(*node.otherwise);
    return undefined("an inline 'if' without 'else' has no value here");
}

Value Evaluator::evaluate(const syntax::Not& node) { return Value(!truth(evaluate(*node.operand))); }

Value Evaluator::evaluate(const syntax::Negate& node) { return negate(evaluate(*node.operand), node.is_plus); }

Value Evaluator::evaluate(const syntax::Logical& node) {
    Value value;
    for (const auto& operand : node.operands) {
        value = evaluate(*operand);
        if (truth(value) != node.is_and) break;
    }
    return value;
}

Value Evaluator::evaluate(const syntax::Concat& node) {
    Text text(*this);
    for (const auto& operand : node.operands) print(*this, text, evaluate(*operand));
    return string(text.take());
}

Value Evaluator::evaluate(const syntax::Arithmetic& node) {
    Value value = evaluate(*node.first);
    for (const auto& [operation, operand] : node.rest) {
        const Value right = evaluate(*operand);
        value = arithmetic(*this, operation, value, right);
    }
    return value;
}

Value Evaluator::evaluate(const syntax::Compare& node) {
    Value left = evaluate(*node.first);
    for (const auto& [comparison, operand] : node.rest) {
        Value right = evaluate(*operand);
        if (!compare(*this, comparison, left, right)) return Value(false);
        left = std::move(right);
    }
    return Value(true);
}

}  // namespace headroom::text::jinja
