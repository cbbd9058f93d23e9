#include "core/text/jinja/tests.h"

#include <algorithm>

#include "core/text/jinja/evaluator.h"
#include "core/text/jinja/failure.h"
#include "core/text/jinja/filters.h"
#include "core/text/jinja/repr.h"
#include "core/text/jinja/strings.h"

namespace headroom::text::jinja {
namespace {

// A test without arguments, from what it says of its input.
template <bool (*Holds)(const Value&)>
bool plain(Evaluator&, const Value& input, Arguments& arguments) {
    const Bound bound("a test", {}, arguments);
    return Holds(input);
}

template <Kind kind>
bool is_kind(const Value& value) {
    return value.is(kind);
}

bool is_defined(const Value& value) { return !value.is(Kind::undefined); }
bool is_false(const Value& value) { return value.is(Kind::boolean) && !value.boolean(); }
bool is_true(const Value& value) { return value.is(Kind::boolean) && value.boolean(); }
bool is_number(const Value& value) { return value.is_number(); }
bool is_escaped(const Value& value) { return value.is(Kind::string) && value.string().is_markup(); }

// What has a length and items by number or key; an undefined value counts, as in Jinja.
bool is_sequence(const Value& value) {
    return value.is(Kind::string) || value.is_sequence() || value.is(Kind::dict) || value.is(Kind::range) ||
           value.is(Kind::undefined);
}

bool is_callable(const Value& value) { return value.is(Kind::callable) || value.is(Kind::undefined); }

Value remainder(Evaluator& evaluator, const Value& value, std::int64_t by) {
    return arithmetic(evaluator, syntax::Operator::modulo, value, Value(by));
}

bool is_even(Evaluator& evaluator, const Value& input, Arguments& arguments) {
    const Bound bound("even", {}, arguments);
    return equal(evaluator, remainder(evaluator, input, 2), Value(std::int64_t{0}));
}

bool is_odd(Evaluator& evaluator, const Value& input, Arguments& arguments) {
    const Bound bound("odd", {}, arguments);
    return equal(evaluator, remainder(evaluator, input, 2), Value(std::int64_t{1}));
}

bool is_divisible_by(Evaluator& evaluator, const Value& input, Arguments& arguments) {
    const Bound bound("divisibleby", {"num"}, arguments);
    return equal(evaluator, arithmetic(evaluator, syntax::Operator::modulo, input, bound.required(0)), Value(std::int64_t{0}));
}

template <bool Upper>
bool is_case(Evaluator& evaluator, const Value& input, Arguments& arguments) {
    const Bound bound(Upper ? "upper" : "lower", {}, arguments);
    const std::string text = to_text(evaluator, input);
    evaluator.step_bytes(text.size());
    return has_case(text, Upper);
}

bool is_same_as(Evaluator&, const Value& input, Arguments& arguments) {
    const Bound bound("sameas", {"other"}, arguments);
    return input.is_identical(bound.required(0));
}

template <syntax::Comparison comparison>
bool compares(Evaluator& evaluator, const Value& input, Arguments& arguments) {
    const Bound bound("a comparison", {"other"}, arguments);
    return compare(evaluator, comparison, input, bound.required(0));
}

bool is_filter(Evaluator&, const Value& input, Arguments& arguments) {
    const Bound bound("filter", {}, arguments);
    return input.is(Kind::string) && find_filter(input.string().text()) != nullptr;
}

bool is_test(Evaluator&, const Value& input, Arguments& arguments) {
    const Bound bound("test", {}, arguments);
    return input.is(Kind::string) && find_test(input.string().text()) != nullptr;
}

struct NamedTest {
    std::string_view name;
    TestFunction function;
};

constexpr NamedTest kTests[] = {
    {"!=", compares<syntax::Comparison::not_equal>},
    {"<", compares<syntax::Comparison::less>},
    {"<=", compares<syntax::Comparison::less_equal>},
    {"==", compares<syntax::Comparison::equal>},
    {">", compares<syntax::Comparison::greater>},
    {">=", compares<syntax::Comparison::greater_equal>},
    {"boolean", plain<is_kind<Kind::boolean>>},
    {"callable", plain<is_callable>},
    {"defined", plain<is_defined>},
    {"divisibleby", is_divisible_by},
    {"eq", compares<syntax::Comparison::equal>},
    {"equalto", compares<syntax::Comparison::equal>},
    {"escaped", plain<is_escaped>},
    {"even", is_even},
    {"false", plain<is_false>},
    {"filter", is_filter},
    {"float", plain<is_kind<Kind::real>>},
    {"ge", compares<syntax::Comparison::greater_equal>},
    {"greaterthan", compares<syntax::Comparison::greater>},
    {"gt", compares<syntax::Comparison::greater>},
    {"in", compares<syntax::Comparison::in>},
    {"integer", plain<is_kind<Kind::integer>>},
    {"iterable", [](Evaluator&, const Value& input, Arguments&) { return is_iterable(input); }},
    {"le", compares<syntax::Comparison::less_equal>},
    {"lessthan", compares<syntax::Comparison::less>},
    {"lower", is_case<false>},
    {"lt", compares<syntax::Comparison::less>},
    {"mapping", plain<is_kind<Kind::dict>>},
    {"ne", compares<syntax::Comparison::not_equal>},
    {"none", plain<is_kind<Kind::none>>},
    {"number", plain<is_number>},
    {"odd", is_odd},
    {"sameas", is_same_as},
    {"sequence", plain<is_sequence>},
    {"string", plain<is_kind<Kind::string>>},
    {"test", is_test},
    {"true", plain<is_true>},
    {"undefined", plain<is_kind<Kind::undefined>>},
    {"upper", is_case<true>},
};

}  // namespace

TestFunction find_test(std::string_view name) noexcept {
    const auto* found = std::lower_bound(std::begin(kTests), std::end(kTests), name,
                                         [](const NamedTest& t, std::string_view n) { return t.name < n; });
    return found != std::end(kTests) && found->name == name ? found->function : nullptr;
}

}  // namespace headroom::text::jinja
