#include "core/text/jinja/failure.h"
#include "core/text/jinja/filters.h"
#include "core/text/jinja/parser.h"
#include "core/text/jinja/tests.h"

namespace headroom::text::jinja {

using namespace syntax;

namespace {

template <class Node>
ExpressionPtr make(int line, Node node) {
    return std::make_unique<const Expression>(Expression{line, std::move(node)});
}

Value literal_string(std::string text) { return {Kind::string, std::make_shared<const String>(nullptr, std::move(text), false)}; }

}  // namespace

// An expression, or several with commas between them: a tuple, which may be empty only in parentheses.
ExpressionPtr Parser::tuple_or_expression(bool with_condition, bool parenthesised) {
    const int line = current().line;
    std::vector<ExpressionPtr> items;
    bool is_tuple = false;
    const auto at_end = [&] {
        const TokenType type = current().type;
        return type == TokenType::variable_end || type == TokenType::block_end || at_symbol(")") ||
               (!with_condition && at_name("recursive"));
    };
    while (true) {
        if (!items.empty()) expect_symbol(",");
        if (at_end()) break;
        items.push_back(expression(with_condition));
        if (!at_symbol(",")) break;
        is_tuple = true;
    }
    if (!is_tuple) {
        if (!items.empty()) return std::move(items.front());
        if (!parenthesised) unexpected("an expression");
    }
    return make(line, ListLiteral{std::move(items), true});
}

ExpressionPtr Parser::expression(bool with_condition) {
    const Nested nested(*this);
    const int line = current().line;
    const std::size_t unknown = unknown_.size();
    ExpressionPtr value = logical(false);
    while (with_condition && skip_name("if")) {
        ExpressionPtr condition = logical(false);
        ExpressionPtr otherwise = skip_name("else") ? expression() : nullptr;
        unknown_.resize(unknown);
        value = make(line, Conditional{std::move(condition), std::move(value), std::move(otherwise)});
    }
    return value;
}

ExpressionPtr Parser::logical(bool is_and) {
    const int line = current().line;
    const auto operand = [&] { return is_and ? negation() : logical(true); };
    ExpressionPtr first = operand();
    const std::string_view word = is_and ? "and" : "or";
    if (!at_name(word)) return first;
    Logical node{{}, is_and};
    node.operands.push_back(std::move(first));
    while (skip_name(word)) node.operands.push_back(operand());
    return make(line, std::move(node));
}

ExpressionPtr Parser::negation() {
    if (!at_name("not")) return comparison();
    const Nested nested(*this);
    const int line = next().line;
    return make(line, Not{negation()});
}

ExpressionPtr Parser::comparison() {
    static constexpr std::pair<std::string_view, Comparison> kSymbols[] = {
        {"==", Comparison::equal},         {"!=", Comparison::not_equal}, {"<=", Comparison::less_equal},
        {">=", Comparison::greater_equal}, {"<", Comparison::less},       {">", Comparison::greater}};
    const int line = current().line;
    ExpressionPtr first = sum();
    Compare node;
    while (true) {
        bool found = false;
        for (const auto& [symbol, operation] : kSymbols) {
            if (!skip_symbol(symbol)) continue;
            node.rest.emplace_back(operation, sum());
            found = true;
            break;
        }
        if (found) continue;
        if (skip_name("in")) {
            node.rest.emplace_back(Comparison::in, sum());
        } else if (at_name("not") && look().type == TokenType::name && look().text == "in") {
            next();
            next();
            node.rest.emplace_back(Comparison::not_in, sum());
        } else {
            break;
        }
    }
    if (node.rest.empty()) return first;
    node.first = std::move(first);
    return make(line, std::move(node));
}

ExpressionPtr Parser::sum() {
    const int line = current().line;
    ExpressionPtr first = concat();
    Arithmetic node;
    while (at_symbol("+") || at_symbol("-")) {
        const Operator operation = next().text == "+" ? Operator::add : Operator::subtract;
        node.rest.emplace_back(operation, concat());
    }
    if (node.rest.empty()) return first;
    node.first = std::move(first);
    return make(line, std::move(node));
}

ExpressionPtr Parser::concat() {
    const int line = current().line;
    ExpressionPtr first = product();
    if (!at_symbol("~")) return first;
    Concat node;
    node.operands.push_back(std::move(first));
    while (skip_symbol("~")) node.operands.push_back(product());
    return make(line, std::move(node));
}

ExpressionPtr Parser::product() {
    static constexpr std::pair<std::string_view, Operator> kSymbols[] = {
        {"*", Operator::multiply}, {"/", Operator::divide}, {"//", Operator::floor_divide}, {"%", Operator::modulo}};
    const int line = current().line;
    ExpressionPtr first = power();
    Arithmetic node;
    while (true) {
        bool found = false;
        for (const auto& [symbol, operation] : kSymbols) {
            if (!skip_symbol(symbol)) continue;
            node.rest.emplace_back(operation, power());
            found = true;
            break;
        }
        if (!found) break;
    }
    if (node.rest.empty()) return first;
    node.first = std::move(first);
    return make(line, std::move(node));
}

// From left to right, other than in Python.
ExpressionPtr Parser::power() {
    const int line = current().line;
    ExpressionPtr first = unary();
    Arithmetic node;
    while (skip_symbol("**")) node.rest.emplace_back(Operator::power, unary());
    if (node.rest.empty()) return first;
    node.first = std::move(first);
    return make(line, std::move(node));
}

ExpressionPtr Parser::unary(bool with_filter) {
    const int line = current().line;
    ExpressionPtr operand;
    if (at_symbol("-") || at_symbol("+")) {
        const Nested nested(*this);
        const bool is_plus = next().text == "+";
        operand = make(line, Negate{unary(false), is_plus});
    } else {
        operand = primary();
    }
    operand = postfix(std::move(operand));
    return with_filter ? filters_and_tests(std::move(operand)) : std::move(operand);
}

ExpressionPtr Parser::primary() {
    const Token& token = current();
    const int line = token.line;
    switch (token.type) {
        case TokenType::name: {
            next();
            if (token.text == "true" || token.text == "True") return make(line, Literal{Value(true)});
            if (token.text == "false" || token.text == "False") return make(line, Literal{Value(false)});
            if (token.text == "none" || token.text == "None") return make(line, Literal{Value()});
            const NameId id = intern(token.text);
            ++mentions_[static_cast<std::size_t>(id)];
            return make(line, Name{id});
        }
        case TokenType::string: {
            std::string text;
            while (current().type == TokenType::string) text += next().text;
            return make(line, Literal{literal_string(std::move(text))});
        }
        case TokenType::integer: next(); return make(line, Literal{Value(token.integer)});
        case TokenType::real: next(); return make(line, Literal{Value(token.real)});
        case TokenType::symbol: break;
        default: unexpected("an expression");
    }
    const Nested nested(*this);
    if (skip_symbol("(")) {
        ExpressionPtr inner = tuple_or_expression(true, true);
        expect_symbol(")");
        return inner;
    }
    if (skip_symbol("[")) {
        ListLiteral list{{}, false};
        while (!at_symbol("]")) {
            if (!list.items.empty()) expect_symbol(",");
            if (at_symbol("]")) break;
            list.items.push_back(expression());
        }
        expect_symbol("]");
        return make(line, std::move(list));
    }
    if (skip_symbol("{")) {
        DictLiteral dict;
        while (!at_symbol("}")) {
            if (!dict.entries.empty()) expect_symbol(",");
            if (at_symbol("}")) break;
            ExpressionPtr key = expression();
            expect_symbol(":");
            ExpressionPtr value = expression();
            dict.entries.emplace_back(std::move(key), std::move(value));
        }
        expect_symbol("}");
        return make(line, std::move(dict));
    }
    unexpected("an expression");
}

void Parser::count_link() {
    constexpr int kLinksPerLevel = 5;
    if (++links_ > kLinksPerLevel * depth_)
        fail_at(current().line, "a tag with more than {} attributes, calls and filters", kLinksPerLevel * depth_);
}

ExpressionPtr Parser::postfix(ExpressionPtr operand) {
    while (at_symbol(".") || at_symbol("[") || at_symbol("(")) {
        count_link();
        operand = at_symbol("(") ? call(std::move(operand)) : subscript(std::move(operand));
    }
    return operand;
}

ExpressionPtr Parser::filters_and_tests(ExpressionPtr operand) {
    while (true) {
        if (skip_symbol("|")) {
            count_link();
            const int line = current().line;
            FilterCall filter = filter_call();
            operand = make(line, Filter{std::move(operand), std::move(filter)});
        } else if (at_name("is")) {
            count_link();
            operand = test(std::move(operand));
        } else if (at_symbol("(")) {
            count_link();
            operand = call(std::move(operand));
        } else {
            return operand;
        }
    }
}

ExpressionPtr Parser::subscript(ExpressionPtr operand) {
    const int line = current().line;
    if (skip_symbol(".")) {
        const Token& name = next();
        if (name.type == TokenType::name) return make(line, Attribute{std::move(operand), name.text});
        if (name.type != TokenType::integer)
            fail_at(name.line, "a name or a number was expected behind '.', not {}", describe(name));
        return make(line, Subscript{std::move(operand), make(line, Literal{Value(name.integer)})});
    }
    expect_symbol("[");
    const Nested nested(*this);
    ExpressionPtr start, stop, step;
    if (!at_symbol(":")) {
        start = expression();
        if (at_symbol(",")) {  // several keys are one tuple
            ListLiteral keys{{}, true};
            keys.items.push_back(std::move(start));
            while (skip_symbol(",")) keys.items.push_back(expression());
            start = make(line, std::move(keys));
        }
        if (skip_symbol("]")) return make(line, Subscript{std::move(operand), std::move(start)});
    }
    expect_symbol(":");
    if (!at_symbol(":") && !at_symbol("]")) stop = expression();
    if (skip_symbol(":") && !at_symbol("]")) step = expression();
    expect_symbol("]");
    return make(line, Slice{std::move(operand), std::move(start), std::move(stop), std::move(step)});
}

ExpressionPtr Parser::call(ExpressionPtr callee) {
    const int line = current().line;
    CallArguments arguments = call_arguments();
    return make(line, Call{std::move(callee), std::move(arguments)});
}

CallArguments Parser::call_arguments() {
    const Nested nested(*this);
    const int line = current().line;
    expect_symbol("(");
    CallArguments arguments;
    const auto ensure = [&](bool ok) {
        if (!ok) fail_at(line, "the arguments of this call stand in the wrong order");
    };
    bool first = true;
    while (!at_symbol(")")) {
        if (!first) {
            expect_symbol(",");
            if (at_symbol(")")) break;
        }
        first = false;
        if (skip_symbol("*")) {
            ensure(!arguments.positional_rest && !arguments.keyword_rest);
            arguments.positional_rest = expression();
        } else if (skip_symbol("**")) {
            ensure(!arguments.keyword_rest);
            arguments.keyword_rest = expression();
        } else if (current().type == TokenType::name && look().type == TokenType::symbol && look().text == "=") {
            ensure(!arguments.keyword_rest);
            std::string key = next().text;
            next();
            arguments.keyword.emplace_back(std::move(key), expression());
        } else {
            ensure(!arguments.positional_rest && !arguments.keyword_rest && arguments.keyword.empty());
            arguments.positional.push_back(expression());
        }
    }
    expect_symbol(")");
    return arguments;
}

std::string Parser::dotted_name() {
    std::string name = expect(TokenType::name, "a name").text;
    while (skip_symbol(".")) name += "." + expect(TokenType::name, "a name").text;
    return name;
}

FilterCall Parser::filter_call() {
    FilterCall filter;
    filter.line = current().line;
    filter.name = dotted_name();
    filter.function = find_filter(filter.name);
    if (filter.function == nullptr) unknown_.push_back({fmt::format("there is no filter named '{}'", filter.name), filter.line});
    if (at_symbol("(")) filter.arguments = call_arguments();
    return filter;
}

std::vector<FilterCall> Parser::filter_chain() {
    std::vector<FilterCall> chain;
    do chain.push_back(filter_call());
    while (skip_symbol("|"));
    return chain;
}

ExpressionPtr Parser::test(ExpressionPtr operand) {
    const int line = next().line;
    const bool negated = skip_name("not");
    std::string name = dotted_name();
    const TestFunction function = find_test(name);
    if (function == nullptr) unknown_.push_back({fmt::format("there is no test named '{}'", name), line});
    CallArguments arguments;
    const bool starts_argument = current().type == TokenType::name || current().type == TokenType::string ||
                                 current().type == TokenType::integer || current().type == TokenType::real || at_symbol("[") ||
                                 at_symbol("{");
    if (at_symbol("(")) {
        arguments = call_arguments();
    } else if (starts_argument && !at_name("else") && !at_name("or") && !at_name("and")) {
        if (at_name("is")) fail_at(line, "tests cannot be chained: write 'and' between them");
        arguments.positional.push_back(postfix(primary()));
    }
    return make(line, Test{std::move(operand), std::move(name), function, std::move(arguments), negated});
}

}  // namespace headroom::text::jinja
