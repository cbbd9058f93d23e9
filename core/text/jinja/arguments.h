#pragma once

// The arguments of one call, and their binding to the parameters of a built-in function.

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/text/jinja/value.h"

namespace headroom::text::jinja {

class Runtime;

struct Arguments {
    std::vector<Value> positional;
    std::vector<std::pair<std::string, Value>> keyword;
};

class Bound {
public:
    // names: the parameters in their order; one that starts with '/' cannot be given by keyword. Fails for too many and for
    // unknown ones. `arguments` has to outlive this.
    Bound(std::string_view function, std::initializer_list<std::string_view> names, const Arguments& arguments);

    // Null where it is not given.
    [[nodiscard]] const Value* get(std::size_t parameter) const noexcept { return values_[parameter]; }
    [[nodiscard]] const Value& required(std::size_t parameter) const;
    [[nodiscard]] Value value_or(std::size_t parameter, Value fallback) const;
    // None counts as not given, other types are an error.
    [[nodiscard]] std::int64_t integer_or(std::size_t parameter, std::int64_t fallback) const;
    [[nodiscard]] std::string_view string_or(std::size_t parameter, std::string_view fallback) const;
    [[nodiscard]] bool truth_or(std::size_t parameter, bool fallback) const;
    [[nodiscard]] std::int64_t integer(std::size_t parameter) const;
    [[nodiscard]] std::string_view string(std::size_t parameter) const;

private:
    static constexpr std::size_t kMost = 8;
    std::string_view function_;
    std::string_view names_[kMost];
    const Value* values_[kMost] = {};
};

}  // namespace headroom::text::jinja
