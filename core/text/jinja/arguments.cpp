#include "core/text/jinja/arguments.h"

#include <algorithm>

#include "core/text/jinja/failure.h"
#include "core/text/jinja/operators.h"

namespace headroom::text::jinja {

Bound::Bound(std::string_view function, std::initializer_list<std::string_view> names, const Arguments& arguments)
    : function_(function) {
    std::copy(names.begin(), names.end(), names_);
    if (arguments.positional.size() > names.size()) {
        fail("{}() takes at most {} arguments, not {}", function, names.size(), arguments.positional.size());
    }
    for (std::size_t i = 0; i < arguments.positional.size(); ++i) values_[i] = &arguments.positional[i];
    for (const auto& [name, value] : arguments.keyword) {
        const auto* found = std::find(names.begin(), names.end(), std::string_view(name));
        if (found == names.end()) fail("{}() has no parameter '{}'", function, name);
        const auto index = static_cast<std::size_t>(found - names.begin());
        if (values_[index] != nullptr) fail("{}() got its parameter '{}' twice", function, name);
        values_[index] = &value;
    }
}

const Value& Bound::required(std::size_t parameter) const {
    if (values_[parameter] == nullptr) {
        const std::string_view name = names_[parameter];
        fail("{}() needs its parameter '{}'", function_, name.substr(name.starts_with('/') ? 1 : 0));
    }
    return *values_[parameter];
}

Value Bound::value_or(std::size_t parameter, Value fallback) const {
    return values_[parameter] != nullptr ? *values_[parameter] : std::move(fallback);
}

std::int64_t Bound::integer(std::size_t parameter) const {
    const Value& value = required(parameter);
    if (value.is(Kind::undefined)) fail("{}", value.string().text());
    if (!value.is_integral()) fail("{}() needs an integer, not a {}", function_, type_name(value));
    return value.integer();
}

std::string_view Bound::string(std::size_t parameter) const {
    const Value& value = required(parameter);
    if (value.is(Kind::undefined)) fail("{}", value.string().text());
    if (!value.is(Kind::string)) fail("{}() needs a string, not a {}", function_, type_name(value));
    return value.string().text();
}

std::int64_t Bound::integer_or(std::size_t parameter, std::int64_t fallback) const {
    return values_[parameter] == nullptr || values_[parameter]->is(Kind::none) ? fallback : integer(parameter);
}

std::string_view Bound::string_or(std::size_t parameter, std::string_view fallback) const {
    return values_[parameter] == nullptr || values_[parameter]->is(Kind::none) ? fallback : string(parameter);
}

bool Bound::truth_or(std::size_t parameter, bool fallback) const {
    return values_[parameter] == nullptr ? fallback : truth(*values_[parameter]);
}

}  // namespace headroom::text::jinja
