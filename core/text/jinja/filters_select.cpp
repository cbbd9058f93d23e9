#include "core/text/jinja/failure.h"
#include "core/text/jinja/filter_functions.h"
#include "core/text/jinja/filters.h"
#include "core/text/jinja/tests.h"

namespace headroom::text::jinja::filter {
namespace {

// The arguments behind the first `count`.
Arguments behind(const Arguments& arguments, std::size_t count) {
    Arguments rest;
    rest.positional.assign(arguments.positional.begin() + static_cast<std::ptrdiff_t>(count), arguments.positional.end());
    rest.keyword = arguments.keyword;
    return rest;
}

const std::string& name_of(const Value& value, std::string_view what) {
    if (!value.is(Kind::string)) fail("the name of a {} has to be a string, not a {}", what, type_name(value));
    return value.string().text();
}

// select, reject and their kin: the items for which a test (or their truth) is `wanted`.
Value chosen(Evaluator& evaluator, const Value& input, const Arguments& arguments, bool by_attribute, bool wanted) {
    if (!truth(input)) return evaluator.iterator({});
    const std::size_t used = by_attribute ? 1 : 0;
    if (arguments.positional.size() < used) fail("the name of an attribute is missing");
    const AttributePath path(evaluator, by_attribute ? &arguments.positional[0] : nullptr);
    TestFunction test = nullptr;
    Arguments test_arguments;
    if (arguments.positional.size() > used) {
        const std::string& name = name_of(arguments.positional[used], "test");
        test = find_test(name);
        if (test == nullptr) fail("there is no test named '{}'", name);
        test_arguments = behind(arguments, used + 1);
    }
    std::vector<Value> result;
    for (const Value& item : Items(evaluator, input)) {
        evaluator.step();
        const Value value = path.follow(evaluator, item);
        const bool holds = test != nullptr ? test(evaluator, value, test_arguments) : truth(value);
        if (holds == wanted) result.push_back(item);
    }
    return evaluator.iterator(std::move(result));
}

}  // namespace

Value map(Evaluator& evaluator, const Value& input, Arguments& arguments) {
    if (!truth(input)) return evaluator.iterator({});
    std::vector<Value> result;
    if (arguments.positional.empty()) {
        const Bound bound("map", {"attribute", "default"}, arguments);
        const AttributePath path(evaluator, &bound.required(0));
        const Value* fallback = bound.get(1) != nullptr && bound.get(1)->is(Kind::none) ? nullptr : bound.get(1);
        for (const Value& item : Items(evaluator, input)) {
            evaluator.step();
            result.push_back(path.follow(evaluator, item, fallback));
        }
        return evaluator.iterator(std::move(result));
    }
    const std::string& name = name_of(arguments.positional[0], "filter");
    const FilterFunction function = find_filter(name);
    if (function == nullptr) fail("there is no filter named '{}'", name);
    const Arguments rest = behind(arguments, 1);
    for (const Value& item : Items(evaluator, input)) {
        evaluator.step();
        Arguments each = rest;
        result.push_back(function(evaluator, item, each));
    }
    return evaluator.iterator(std::move(result));
}

Value reject(Evaluator& evaluator, const Value& input, Arguments& arguments) {
    return chosen(evaluator, input, arguments, false, false);
}
Value reject_attribute(Evaluator& evaluator, const Value& input, Arguments& arguments) {
    return chosen(evaluator, input, arguments, true, false);
}
Value select(Evaluator& evaluator, const Value& input, Arguments& arguments) {
    return chosen(evaluator, input, arguments, false, true);
}
Value select_attribute(Evaluator& evaluator, const Value& input, Arguments& arguments) {
    return chosen(evaluator, input, arguments, true, true);
}

}  // namespace headroom::text::jinja::filter
