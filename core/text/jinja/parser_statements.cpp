#include <algorithm>
#include <utility>

#include "core/text/jinja/failure.h"
#include "core/text/jinja/filters.h"
#include "core/text/jinja/parser.h"

namespace headroom::text::jinja {

using namespace syntax;

namespace {

constexpr std::size_t kMostParameters = 255;

}  // namespace

Parser::Parser(std::string_view source, int depth) : tokens_(tokenize(source)), depth_(depth) {}

Template Parser::run() {
    template_.loop = intern("loop");
    template_.caller = intern("caller");
    template_.varargs = intern("varargs");
    template_.kwargs = intern("kwargs");
    template_.body = body({}, {}, 0);
    if (!unknown_.empty()) throw unknown_.front();
    return std::move(template_);
}

Parser::Nested::Nested(Parser& parser) : parser_(parser) {
    if (parser.nesting_ >= parser.depth_) fail_at(parser.current().line, "the template nests more than {} deep", parser.depth_);
    ++parser.nesting_;
}

bool Parser::at_symbol(std::string_view symbol) const noexcept {
    return current().type == TokenType::symbol && current().text == symbol;
}
bool Parser::at_name(std::string_view name) const noexcept { return current().type == TokenType::name && current().text == name; }

const Token& Parser::next() noexcept {
    const Token& token = current();
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
}

bool Parser::skip_symbol(std::string_view symbol) noexcept {
    if (!at_symbol(symbol)) return false;
    next();
    return true;
}

bool Parser::skip_name(std::string_view name) noexcept {
    if (!at_name(name)) return false;
    next();
    return true;
}

void Parser::unexpected(std::string_view expected) const {
    fail_at(current().line, "expected {}, found {}", expected, describe(current()));
}

const Token& Parser::expect(TokenType type, std::string_view what) {
    if (current().type != type) unexpected(what);
    return next();
}

void Parser::expect_symbol(std::string_view symbol) {
    if (!skip_symbol(symbol)) unexpected(fmt::format("'{}'", symbol));
}

NameId Parser::intern(const std::string& name) {
    const auto [found, added] = ids_.try_emplace(name, static_cast<NameId>(template_.names.size()));
    if (added) {
        template_.names.push_back(name);
        mentions_.push_back(0);
    }
    return found->second;
}

// Up to a tag that is one of `ends`, which is left as the current token; up to the end of the template where there are none.
Body Parser::body(std::initializer_list<std::string_view> ends, std::string_view opener, int opener_line) {
    const Nested nested(*this);
    Body result;
    while (true) {
        const Token& token = current();
        switch (token.type) {
            case TokenType::data: result.push_back({token.line, Data{next().text}}); break;
            case TokenType::variable_begin: {
                next();
                links_ = 0;
                ExpressionPtr value = tuple_or_expression(true);
                expect(TokenType::variable_end, "'}}'");
                result.push_back({token.line, Output{std::move(value)}});
                break;
            }
            case TokenType::block_begin:
                next();
                if (current().type != TokenType::name) unexpected("the name of a tag");
                if (std::find(ends.begin(), ends.end(), current().text) != ends.end()) return result;
                statement(result);
                expect(TokenType::block_end, "'%}'");
                break;
            default:
                if (ends.size() > 0)
                    fail_at(opener_line, "this '{}' has no end: '{}' is missing", opener, *std::prev(ends.end()));
                return result;
        }
    }
}

void Parser::statement(Body& result) {
    links_ = 0;
    const Token& tag = next();
    const int line = tag.line;
    const std::string& name = tag.text;
    if (name == "set")
        result.push_back(set(line));
    else if (name == "if")
        result.push_back(if_block(line));
    else if (name == "for")
        result.push_back(for_loop(line));
    else if (name == "macro")
        result.push_back(macro(line));
    else if (name == "call")
        result.push_back(call_block(line));
    else if (name == "filter")
        result.push_back(filter_block(line));
    else if (name == "with")
        result.push_back(with(line));
    else if (name == "print")
        print(result);
    else if (name == "generation" || name == "block" || name == "autoescape")
        result.push_back(scoped(line, name));
    else if (name == "break" || name == "continue") {
        if (loops_ == 0) fail_at(line, "'{}' outside of a loop", name);
        if (name == "break")
            result.push_back({line, Break{}});
        else
            result.push_back({line, Continue{}});
    } else if (name == "include" || name == "import" || name == "from" || name == "extends") {
        fail_at(line, "'{}' is not possible: a chat template is one file", name);
    } else {
        fail_at(line, "there is no tag named '{}' here", name);
    }
}

void Parser::check_assignable(const Token& name) const {
    static constexpr std::string_view kConstants[] = {"true", "false", "none", "True", "False", "None"};
    if (std::find(std::begin(kConstants), std::end(kConstants), name.text) != std::end(kConstants)) {
        fail_at(name.line, "'{}' cannot be assigned to", name.text);
    }
}

Target Parser::target_item() {
    if (skip_symbol("(")) {
        const Nested nested(*this);
        Target inner = target(false);
        expect_symbol(")");
        return inner;
    }
    const Token& name = expect(TokenType::name, "a name to assign to");
    check_assignable(name);
    Target result;
    result.line = name.line;
    result.name = intern(name.text);
    if (result.name == template_.loop) ++loop_assignments_;
    return result;
}

Target Parser::target(bool allow_attribute) {
    Target first = target_item();
    if (allow_attribute && !first.is_tuple && skip_symbol(".")) {
        first.attribute = expect(TokenType::name, "the name of an attribute").text;
        return first;
    }
    if (!at_symbol(",")) return first;
    Target result;
    result.line = first.line;
    result.is_tuple = true;
    result.items.push_back(std::move(first));
    while (skip_symbol(",")) {
        if (at_symbol("=") || at_symbol(")") || at_name("in")) break;
        result.items.push_back(target_item());
    }
    return result;
}

Statement Parser::set(int line) {
    Target assigned = target(true);
    if (skip_symbol("=")) {
        ExpressionPtr value = tuple_or_expression(true);
        return {line, Set{std::move(assigned), std::move(value)}};
    }
    SetBlock block;
    block.target = std::move(assigned);
    if (skip_symbol("|")) block.filters = filter_chain();
    expect(TokenType::block_end, "'=' or '%}'");
    block.body = body({"endset"}, "set", line);
    next();
    return {line, std::move(block)};
}

Statement Parser::if_block(int line) {
    const std::size_t unknown = unknown_.size();
    If node;
    while (true) {
        ExpressionPtr condition = tuple_or_expression(false);
        skip_symbol(":");
        expect(TokenType::block_end, "'%}'");
        Body then = body({"elif", "else", "endif"}, "if", line);
        node.branches.emplace_back(std::move(condition), std::move(then));
        const std::string& end = next().text;
        if (end == "elif") continue;
        if (end == "else") {
            skip_symbol(":");
            expect(TokenType::block_end, "'%}'");
            node.otherwise = body({"endif"}, "if", line);
            next();
        }
        unknown_.resize(unknown);
        return {line, std::move(node)};
    }
}

Statement Parser::for_loop(int line) {
    For node;
    const int assignments = loop_assignments_;
    node.target = target(false);
    if (!skip_name("in")) unexpected("'in'");
    node.items = tuple_or_expression(false);
    if (skip_name("if")) node.condition = expression();
    node.recursive = skip_name("recursive");
    skip_symbol(":");
    expect(TokenType::block_end, "'%}'");
    const int mentions = mentions_[static_cast<std::size_t>(template_.loop)];
    ++loops_;
    node.body = body({"else", "endfor"}, "for", line);
    --loops_;
    node.uses_loop = node.recursive || mentions_[static_cast<std::size_t>(template_.loop)] != mentions;
    if (next().text == "else") {
        skip_symbol(":");
        expect(TokenType::block_end, "'%}'");
        node.otherwise = body({"endfor"}, "for", line);
        next();
    }
    if (loop_assignments_ != assignments) fail_at(line, "this loop assigns to 'loop', which is its own variable");
    return {line, std::move(node)};
}

Statement Parser::with(int line) {
    With node;
    while (current().type != TokenType::block_end) {
        if (!node.variables.empty()) expect_symbol(",");
        Target variable = target_item();
        expect_symbol("=");
        node.variables.emplace_back(std::move(variable), expression());
    }
    next();
    node.body = body({"endwith"}, "with", line);
    next();
    return {line, std::move(node)};
}

void Parser::parameters(Macro& macro) {
    expect_symbol("(");
    while (!at_symbol(")")) {
        if (!macro.parameters.empty()) expect_symbol(",");
        const Token& name = expect(TokenType::name, "the name of a parameter");
        check_assignable(name);
        if (macro.parameters.size() >= kMostParameters) fail_at(name.line, "more than {} parameters", kMostParameters);
        for (const Parameter& other : macro.parameters) {
            if (other.text == name.text) fail_at(name.line, "two parameters are named '{}'", name.text);
        }
        Parameter parameter{intern(name.text), name.text, nullptr};
        if (skip_symbol("="))
            parameter.fallback = expression();
        else if (!macro.parameters.empty() && macro.parameters.back().fallback) {
            fail_at(name.line, "the parameter '{}' needs a default value, because the one before it has one", name.text);
        }
        macro.parameters.push_back(std::move(parameter));
    }
    expect_symbol(")");
}

void Parser::macro_body(Macro& macro, std::string_view end, std::string_view tag, int line) {
    expect(TokenType::block_end, "'%}'");
    const auto count = [&](NameId name) { return mentions_[static_cast<std::size_t>(name)]; };
    const int callers = count(template_.caller);
    const int varargs = count(template_.varargs);
    const int kwargs = count(template_.kwargs);
    const int loops = std::exchange(loops_, 0);
    macro.body = body({end}, tag, line);
    loops_ = loops;
    next();
    const auto declares = [&](NameId name) {
        return std::any_of(macro.parameters.begin(), macro.parameters.end(), [&](const Parameter& p) { return p.name == name; });
    };
    for (const Parameter& parameter : macro.parameters) {
        if (parameter.name == template_.caller && !parameter.fallback && count(template_.caller) != callers) {
            fail_at(line, "the parameter 'caller' has to be left out or be given a default value");
        }
    }
    macro.uses_caller = count(template_.caller) != callers && !declares(template_.caller);
    macro.uses_varargs = count(template_.varargs) != varargs && !declares(template_.varargs);
    macro.uses_kwargs = count(template_.kwargs) != kwargs && !declares(template_.kwargs);
}

Statement Parser::macro(int line) {
    auto macro = std::make_unique<Macro>();
    const Token& name = expect(TokenType::name, "the name of the macro");
    check_assignable(name);
    macro->name = intern(name.text);
    macro->text = name.text;
    parameters(*macro);
    macro_body(*macro, "endmacro", "macro", line);
    return {line, DefineMacro{std::move(macro)}};
}

Statement Parser::call_block(int line) {
    auto caller = std::make_unique<Macro>();
    caller->name = template_.caller;
    if (at_symbol("(")) parameters(*caller);
    ExpressionPtr called = expression();
    if (!std::holds_alternative<Call>(called->node)) fail_at(line, "'call' needs the call of a macro");
    macro_body(*caller, "endcall", "call", line);
    return {line, CallBlock{std::move(caller), std::move(called)}};
}

Statement Parser::filter_block(int line) {
    FilterBlock node;
    node.filters = filter_chain();
    expect(TokenType::block_end, "'%}'");
    node.body = body({"endfilter"}, "filter", line);
    next();
    return {line, std::move(node)};
}

// generation and block only give their body variables of its own: nothing is trained here, and there is no second template.
Statement Parser::scoped(int line, std::string_view tag) {
    if (tag == "block") {
        expect(TokenType::name, "the name of the block");
        skip_name("scoped");
        if (at_name("required")) fail_at(line, "'required' is not possible: a chat template is one file");
    } else if (tag == "autoescape") {
        if (!at_name("false") && !at_name("False")) fail_at(line, "only 'autoescape false' is possible");
        next();
    }
    expect(TokenType::block_end, "'%}'");
    Scoped node;
    const std::string end = "end" + std::string(tag);
    // In Jinja, generation and block are functions of their own, which break and continue do not leave.
    const int loops = tag == "autoescape" ? loops_ : std::exchange(loops_, 0);
    node.body = body({end}, tag, line);
    loops_ = loops;
    next();
    if (tag == "block" && current().type == TokenType::name) next();
    return {line, std::move(node)};
}

void Parser::print(Body& result) {
    bool first = true;
    while (current().type != TokenType::block_end) {
        if (!first) expect_symbol(",");
        first = false;
        const int line = current().line;
        result.push_back({line, Output{expression()}});
    }
}

}  // namespace headroom::text::jinja
