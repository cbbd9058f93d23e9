#include "core/text/jinja/value.h"

#include <algorithm>
#include <cmath>
#include <compare>

#include "core/text/jinja/failure.h"
#include "core/text/jinja/unicode.h"

namespace headroom::text::jinja {
namespace {

constexpr std::size_t kOverhead = 64;  // what an object costs beside its contents

int depth_of(const std::vector<Value>& items) noexcept {
    int depth = 0;
    for (const Value& item : items) depth = std::max(depth, item.depth());
    return depth + 1;
}

int depth_of(const std::vector<Entry>& entries) noexcept {
    int depth = 0;
    for (const auto& [key, value] : entries) depth = std::max({depth, key.depth(), value.depth()});
    return depth + 1;
}

int sign(std::weak_ordering order) noexcept { return order < 0 ? -1 : order > 0 ? 1 : 0; }

// Numbers first, then strings, tuples, and the rest by kind and address.
int rank(const Value& value) noexcept {
    if (value.is_number()) return 0;
    if (value.is(Kind::string)) return 1;
    if (value.is(Kind::tuple)) return 2;
    return 3 + static_cast<int>(value.kind());
}

std::partial_ordering compare_integer(std::int64_t a, double b) noexcept {
    if (std::isnan(b)) return std::partial_ordering::unordered;
    if (b >= 0x1p63) return std::partial_ordering::less;
    if (b < -0x1p63) return std::partial_ordering::greater;
    const double whole = std::trunc(b);
    if (const auto order = a <=> static_cast<std::int64_t>(whole); order != 0) return order;
    return 0.0 <=> b - whole;
}

}  // namespace

std::partial_ordering compare_numbers(const Value& a, const Value& b) noexcept {
    if (a.is_integral() && b.is_integral()) return a.integer() <=> b.integer();
    if (a.is_integral()) return compare_integer(a.integer(), b.real());
    if (b.is_integral()) {
        const auto order = compare_integer(b.integer(), a.real());
        return order < 0 ? std::partial_ordering::greater : order > 0 ? std::partial_ordering::less : order;
    }
    return a.real() <=> b.real();
}

void Memory::take(std::size_t bytes) {
    if (bytes > limit_ - used_) fail("the template needs more than {} MiB of memory", limit_ >> 20);
    used_ += bytes;
}

Object::Object(Memory* memory, std::size_t bytes, int depth) : memory_(memory), bytes_(bytes + kOverhead), depth_(depth) {
    if (memory_ != nullptr) memory_->take(bytes_);
}

Object::~Object() {
    if (memory_ != nullptr) memory_->give_back(bytes_);
}

Namespace& Value::name_space() const noexcept {
    // The one kind of object that templates change.
    return const_cast<Namespace&>(static_cast<const Namespace&>(*object_));
}

bool Value::is_identical(const Value& other) const noexcept {
    if (kind_ != other.kind_) return false;
    switch (kind_) {
        case Kind::none: return true;
        case Kind::boolean: return scalar_.boolean == other.scalar_.boolean;
        case Kind::integer: return scalar_.integer == other.scalar_.integer;
        case Kind::real: return scalar_.real == other.scalar_.real;
        default: return object_ == other.object_;
    }
}

String::String(Memory* memory, std::string text, bool markup)
    : Object(memory, text.size(), 0), text_(std::move(text)), length_(count_code_points(text_)), markup_(markup) {}

List::List(Memory* memory, std::vector<Value> items, bool is_group)
    : Object(memory, items.size() * sizeof(Value), depth_of(items)), items_(std::move(items)), is_group_(is_group) {}

Dict::Dict(Memory* memory, std::vector<Entry> entries, std::vector<std::uint32_t> sorted)
    : Object(memory, entries.size() * (sizeof(Entry) + sizeof(std::uint32_t)), depth_of(entries)),
      entries_(std::move(entries)),
      sorted_(std::move(sorted)) {}

const Value* Dict::find(std::string_view key) const noexcept {
    const auto compare = [&](std::uint32_t position) {
        const Value& candidate = entries_[position].first;
        const int order = rank(candidate) - 1;  // a string's rank
        return order != 0 ? order : std::string_view(candidate.string().text()).compare(key);
    };
    const auto found = std::lower_bound(sorted_.begin(), sorted_.end(), 0, [&](std::uint32_t p, int) { return compare(p) < 0; });
    return found != sorted_.end() && compare(*found) == 0 ? &entries_[*found].second : nullptr;
}

const Value* Dict::find(const Value& key) const noexcept {
    const auto found = std::lower_bound(sorted_.begin(), sorted_.end(), 0,
                                        [&](std::uint32_t p, int) { return compare_keys(entries_[p].first, key) < 0; });
    return found != sorted_.end() && compare_keys(entries_[*found].first, key) == 0 ? &entries_[*found].second : nullptr;
}

int compare_keys(const Value& a, const Value& b) noexcept {
    const int order = rank(a) - rank(b);
    if (order != 0) return order;
    if (a.is_number()) {
        // NaN sorts last, and all of them are one key.
        const bool a_is_nan = std::isnan(a.real());
        const bool b_is_nan = std::isnan(b.real());
        if (a_is_nan || b_is_nan) return static_cast<int>(a_is_nan) - static_cast<int>(b_is_nan);
        const auto numbers = compare_numbers(a, b);
        return numbers < 0 ? -1 : numbers > 0 ? 1 : 0;
    }
    if (a.object() == b.object()) return 0;
    if (a.is(Kind::string)) return a.string().text().compare(b.string().text());
    if (a.is(Kind::tuple)) {
        const auto& x = a.list().items();
        const auto& y = b.list().items();
        for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
            if (const int item = compare_keys(x[i], y[i]); item != 0) return item;
        }
        return sign(x.size() <=> y.size());
    }
    // Undefined values and None are equal among themselves, other things only to themselves.
    if (a.is(Kind::none) || a.is(Kind::undefined)) return 0;
    return sign(std::compare_three_way{}(a.object(), b.object()));
}

View::View(Memory* memory, const Value& dict, Part part)
    : Object(memory, sizeof(View), dict.depth() + 1), dict_(dict), part_(part) {}

RangeObject::RangeObject(Memory* memory, std::int64_t start, std::int64_t stop, std::int64_t step, std::int64_t length)
    : Object(memory, sizeof(RangeObject), 0), start_(start), stop_(stop), step_(step), length_(length) {}

Iterator::Iterator(Memory* memory, std::vector<Value> items)
    : Object(memory, items.size() * sizeof(Value), depth_of(items)), items_(std::move(items)) {}

std::optional<Value> Iterator::next() const {
    if (next_ == items_.size()) return std::nullopt;
    return std::move(items_[next_++]);
}

std::vector<Value> Iterator::take_rest() const {
    std::vector<Value> rest(std::make_move_iterator(items_.begin() + static_cast<std::ptrdiff_t>(next_)),
                            std::make_move_iterator(items_.end()));
    items_.clear();
    next_ = 0;
    return rest;
}

Namespace::Namespace(Memory* memory) : Object(memory, sizeof(Namespace), 1) {}

const Value* Namespace::find(std::string_view name) const noexcept {
    const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const auto& entry) { return entry.first == name; });
    return found == entries_.end() ? nullptr : &found->second;
}

void Namespace::set(std::string_view name, Value value) {
    if (const Value* found = find(name))
        *const_cast<Value*>(found) = std::move(value);
    else
        entries_.emplace_back(name, std::move(value));
}

std::optional<Value> Callable::attribute(Evaluator&, std::string_view) const { return std::nullopt; }

std::string_view type_name(const Value& value) noexcept {
    switch (value.kind()) {
        case Kind::undefined: return "undefined";
        case Kind::none: return "None";
        case Kind::boolean: return "bool";
        case Kind::integer: return "int";
        case Kind::real: return "float";
        case Kind::string: return "str";
        case Kind::list: return "list";
        case Kind::tuple: return "tuple";
        case Kind::dict: return "dict";
        case Kind::view: return "dict view";
        case Kind::range: return "range";
        case Kind::iterator: return "generator";
        case Kind::name_space: return "namespace";
        case Kind::callable: return "function";
    }
    return "value";
}

}  // namespace headroom::text::jinja
