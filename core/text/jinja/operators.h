#pragma once

// Python's operators on values. All throw Failure where Python raises.

#include <compare>
#include <span>
#include <string_view>
#include <vector>

#include "core/text/jinja/runtime.h"
#include "core/text/jinja/syntax.h"
#include "core/text/jinja/value.h"

namespace headroom::text::jinja {

[[nodiscard]] bool truth(const Value& value) noexcept;
[[nodiscard]] bool equal(Runtime& runtime, const Value& a, const Value& b);
// For <, <=, >, >= and sorting; fails for values without an order.
[[nodiscard]] std::partial_ordering order(Runtime& runtime, const Value& a, const Value& b);
[[nodiscard]] bool contains(Runtime& runtime, const Value& container, const Value& item);
[[nodiscard]] bool compare(Runtime& runtime, syntax::Comparison comparison, const Value& a, const Value& b);

[[nodiscard]] Value arithmetic(Runtime& runtime, syntax::Operator operation, const Value& a, const Value& b);
[[nodiscard]] Value negate(const Value& value, bool is_plus);

// len(); nothing for what has none.
[[nodiscard]] std::optional<std::int64_t> length(const Value& value) noexcept;

// The items one gets by iterating; a list's own without a copy.
class Items {
public:
    // Fails for what cannot be iterated. An iterator is used up.
    Items(Runtime& runtime, const Value& value);
    explicit Items(std::vector<Value> items) noexcept : own_(std::move(items)), span_(own_) {}
    Items(Items&&) noexcept = default;
    Items& operator=(Items&&) noexcept = default;
    [[nodiscard]] auto begin() const noexcept { return span_.begin(); }
    [[nodiscard]] auto end() const noexcept { return span_.end(); }
    [[nodiscard]] std::size_t size() const noexcept { return span_.size(); }
    [[nodiscard]] const Value& operator[](std::size_t index) const noexcept { return span_[index]; }
    [[nodiscard]] std::vector<Value> to_vector() const { return {span_.begin(), span_.end()}; }

private:
    Value owner_;
    std::vector<Value> own_;
    std::span<const Value> span_;
};
[[nodiscard]] bool is_iterable(const Value& value) noexcept;

// value[start:stop:step], each an integer or None.
[[nodiscard]] Value slice(Runtime& runtime, const Value& value, const Value& start, const Value& stop, const Value& step);

// Fails with an undefined value's message.
void check_defined(const Value& value);

}  // namespace headroom::text::jinja
