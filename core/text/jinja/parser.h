#pragma once

// Tokens to a syntax tree. Precedence and syntax follow Jinja 3.1, with the loop controls extension and {% generation %}.

#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/text/jinja/failure.h"
#include "core/text/jinja/lexer.h"
#include "core/text/jinja/syntax.h"

namespace headroom::text::jinja {

class Parser {
public:
    // depth: how deeply expressions and blocks may nest.
    Parser(std::string_view source, int depth);
    // Once. Throws Failure with the line.
    [[nodiscard]] syntax::Template run();

private:
    // Statements (parser_statements.cpp).
    syntax::Body body(std::initializer_list<std::string_view> ends, std::string_view opener, int opener_line);
    void statement(syntax::Body& body);
    syntax::Statement set(int line);
    syntax::Statement if_block(int line);
    syntax::Statement for_loop(int line);
    syntax::Statement with(int line);
    syntax::Statement macro(int line);
    syntax::Statement call_block(int line);
    syntax::Statement filter_block(int line);
    syntax::Statement scoped(int line, std::string_view tag);
    void print(syntax::Body& body);
    void parameters(syntax::Macro& macro);
    void macro_body(syntax::Macro& macro, std::string_view end, std::string_view tag, int line);
    syntax::Target target(bool allow_attribute);
    syntax::Target target_item();
    void check_assignable(const Token& name) const;

    // Expressions (parser_expressions.cpp).
    syntax::ExpressionPtr tuple_or_expression(bool with_condition, bool parenthesised = false);
    syntax::ExpressionPtr expression(bool with_condition = true);
    syntax::ExpressionPtr logical(bool is_and);
    syntax::ExpressionPtr negation();
    syntax::ExpressionPtr comparison();
    syntax::ExpressionPtr sum();
    syntax::ExpressionPtr concat();
    syntax::ExpressionPtr product();
    syntax::ExpressionPtr power();
    syntax::ExpressionPtr unary(bool with_filter = true);
    syntax::ExpressionPtr primary();
    syntax::ExpressionPtr postfix(syntax::ExpressionPtr operand);
    syntax::ExpressionPtr filters_and_tests(syntax::ExpressionPtr operand);
    syntax::ExpressionPtr subscript(syntax::ExpressionPtr operand);
    syntax::ExpressionPtr call(syntax::ExpressionPtr callee);
    syntax::ExpressionPtr test(syntax::ExpressionPtr operand);
    syntax::FilterCall filter_call();
    std::vector<syntax::FilterCall> filter_chain();
    syntax::CallArguments call_arguments();
    std::string dotted_name();

    // Tokens.
    [[nodiscard]] const Token& current() const noexcept { return tokens_[at_]; }
    [[nodiscard]] const Token& look() const noexcept { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }
    [[nodiscard]] bool at_symbol(std::string_view symbol) const noexcept;
    [[nodiscard]] bool at_name(std::string_view name) const noexcept;
    const Token& next() noexcept;
    bool skip_symbol(std::string_view symbol) noexcept;
    bool skip_name(std::string_view name) noexcept;
    const Token& expect(TokenType type, std::string_view what);
    void expect_symbol(std::string_view symbol);
    [[noreturn]] void unexpected(std::string_view expected) const;

    syntax::NameId intern(const std::string& name);

    // Counts one level of nesting while it lives.
    class Nested {
    public:
        explicit Nested(Parser& parser);
        ~Nested() { --parser_.nesting_; }
        Nested(const Nested&) = delete;
        Nested& operator=(const Nested&) = delete;

    private:
        Parser& parser_;
    };

    std::vector<Token> tokens_;
    std::size_t at_ = 0;
    int depth_;
    int nesting_ = 0;
    int links_ = 0;  // of chains like a.b[0](1)|f in this tag: each link holds the one before it, which is nesting too
    void count_link();
    // Unknown filters and tests. Inside of an if they are errors only once they are reached, and are taken off here again.
    std::vector<Failure> unknown_;
    int loops_ = 0;  // inside a loop of this macro: break and continue are allowed
    std::unordered_map<std::string, syntax::NameId> ids_;
    std::vector<int> mentions_;  // of each name so far, as a variable that is read
    int loop_assignments_ = 0;   // of the name `loop`
    syntax::Template template_;
};

}  // namespace headroom::text::jinja
