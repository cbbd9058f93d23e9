#pragma once

// The syntax tree of a template. Made once by the parser, then only read (from any thread).

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/text/jinja/value.h"

namespace headroom::text::jinja {

// The function behind a filter's or a test's name; null where there is none (an error once it is reached).
using FilterFunction = Value (*)(Evaluator& evaluator, const Value& input, Arguments& arguments);
using TestFunction = bool (*)(Evaluator& evaluator, const Value& input, Arguments& arguments);

namespace syntax {

using NameId = int;  // an index into Template::names

struct Expression;
using ExpressionPtr = std::unique_ptr<const Expression>;

// Arguments as they are written: f(a, b, *rest, key=c, **more).
struct CallArguments {
    std::vector<ExpressionPtr> positional;
    std::vector<std::pair<std::string, ExpressionPtr>> keyword;
    ExpressionPtr positional_rest;
    ExpressionPtr keyword_rest;
};

struct FilterCall {
    std::string name;
    FilterFunction function = nullptr;
    CallArguments arguments;
    int line = 0;
};

struct Literal {
    Value value;
};
struct Name {
    NameId id;
};
struct ListLiteral {
    std::vector<ExpressionPtr> items;
    bool is_tuple;
};
struct DictLiteral {
    std::vector<std::pair<ExpressionPtr, ExpressionPtr>> entries;
};
struct Attribute {  // target.name
    ExpressionPtr target;
    std::string name;
};
struct Subscript {  // target[key]
    ExpressionPtr target;
    ExpressionPtr key;
};
struct Slice {  // target[start:stop:step]
    ExpressionPtr target;
    ExpressionPtr start, stop, step;  // null where left out
};
struct Call {
    ExpressionPtr callee;
    CallArguments arguments;
};
struct Filter {
    ExpressionPtr target;
    FilterCall call;
};
struct Test {
    ExpressionPtr target;
    std::string name;
    TestFunction function;
    CallArguments arguments;
    bool negated;
};
struct Conditional {  // value if condition else otherwise
    ExpressionPtr condition;
    ExpressionPtr value;
    ExpressionPtr otherwise;  // null where left out
};
struct Not {
    ExpressionPtr operand;
};
struct Negate {
    ExpressionPtr operand;
    bool is_plus;  // +x
};
struct Logical {  // a and b and c, a or b or c
    std::vector<ExpressionPtr> operands;
    bool is_and;
};
struct Concat {  // a ~ b ~ c
    std::vector<ExpressionPtr> operands;
};

enum class Operator : std::uint8_t { add, subtract, multiply, divide, floor_divide, modulo, power };
struct Arithmetic {  // first op b op c, from left to right
    ExpressionPtr first;
    std::vector<std::pair<Operator, ExpressionPtr>> rest;
};

enum class Comparison : std::uint8_t { equal, not_equal, less, less_equal, greater, greater_equal, in, not_in };
struct Compare {  // first < b <= c: each is compared with its neighbour
    ExpressionPtr first;
    std::vector<std::pair<Comparison, ExpressionPtr>> rest;
};

struct Expression {
    int line = 0;
    std::variant<Literal, Name, ListLiteral, DictLiteral, Attribute, Subscript, Slice, Call, Filter, Test, Conditional, Not,
                 Negate, Logical, Concat, Arithmetic, Compare>
        node;
};

// What is assigned to: a name, a tuple of targets, or an attribute of a namespace.
struct Target {
    int line = 0;
    NameId name = -1;
    std::optional<std::string> attribute;  // name.attribute
    std::vector<Target> items;             // a tuple, where is_tuple
    bool is_tuple = false;
};

struct Statement;
using Body = std::vector<Statement>;

struct Data {
    std::string text;
};
struct Output {
    ExpressionPtr value;
};
struct Set {
    Target target;
    ExpressionPtr value;
};
struct SetBlock {
    Target target;
    std::vector<FilterCall> filters;
    Body body;
};
struct If {
    std::vector<std::pair<ExpressionPtr, Body>> branches;
    Body otherwise;
};
struct For {
    Target target;
    ExpressionPtr items;
    ExpressionPtr condition;  // null where left out
    Body body;
    Body otherwise;
    bool recursive = false;
    bool uses_loop = false;  // the body mentions `loop`
};
struct With {
    std::vector<std::pair<Target, ExpressionPtr>> variables;
    Body body;
};
struct Parameter {
    NameId name;
    std::string text;
    ExpressionPtr fallback;  // null: undefined where it is not given
};
struct Macro {
    NameId name;
    std::string text;  // its name; empty for a call block
    std::vector<Parameter> parameters;
    Body body;
    bool uses_caller = false, uses_varargs = false, uses_kwargs = false;
};
struct DefineMacro {
    std::unique_ptr<const Macro> macro;
};
struct CallBlock {
    std::unique_ptr<const Macro> caller;
    ExpressionPtr call;  // its node is a Call
};
struct FilterBlock {
    std::vector<FilterCall> filters;
    Body body;
};
struct Scoped {  // {% generation %}, {% block %}, {% autoescape false %}: a body with variables of its own
    Body body;
};
struct Break {};
struct Continue {};

struct Statement {
    int line = 0;
    std::variant<Data, Output, Set, SetBlock, If, For, With, DefineMacro, CallBlock, FilterBlock, Scoped, Break, Continue> node;
};

struct Template {
    std::vector<std::string> names;  // of variables
    Body body;
    // Names the interpreter itself sets.
    NameId loop = -1, caller = -1, varargs = -1, kwargs = -1;
};

}  // namespace syntax
}  // namespace headroom::text::jinja
