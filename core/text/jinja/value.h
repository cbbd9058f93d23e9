#pragma once

// The values a template computes with: Python's, as far as templates can reach them. All are immutable except namespaces, loops
// and iterators. Containers know how deeply they nest, so that nothing recursive (printing, comparing, freeing) runs away.

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace headroom::text::jinja {

class Evaluator;
class Value;
struct Arguments;

enum class Kind : std::uint8_t {
    undefined,
    none,
    boolean,
    integer,
    real,
    string,
    list,
    tuple,
    dict,
    view,  // dict.keys(), dict.values(), dict.items()
    range,
    iterator,    // what map, select, … return: runs through once
    name_space,  // namespace(…)
    callable,    // functions, macros, methods, loops, cyclers
};

// Bytes alive in one rendering. take() fails where the limit is passed.
class Memory {
public:
    explicit Memory(std::uint64_t limit) noexcept : limit_(limit) {}
    void take(std::size_t bytes);
    void give_back(std::size_t bytes) noexcept { used_ -= bytes; }

private:
    std::uint64_t limit_;
    std::uint64_t used_ = 0;
};

// What a value points to. `memory` is null for what belongs to the syntax tree.
class Object {
public:
    Object(Memory* memory, std::size_t bytes, int depth);
    Object(const Object&) = delete;
    Object& operator=(const Object&) = delete;
    virtual ~Object();

    [[nodiscard]] int depth() const noexcept { return depth_; }

private:
    Memory* memory_;
    std::size_t bytes_;
    int depth_;
};

class String;
class List;
class Dict;
class View;
class RangeObject;
class Iterator;
class Namespace;
class Callable;

class Value {
public:
    Value() noexcept = default;  // None
    explicit Value(bool value) noexcept : kind_(Kind::boolean) { scalar_.boolean = value; }
    explicit Value(std::int64_t value) noexcept : kind_(Kind::integer) { scalar_.integer = value; }
    explicit Value(double value) noexcept : kind_(Kind::real) { scalar_.real = value; }
    Value(Kind kind, std::shared_ptr<const Object> object) noexcept : kind_(kind), object_(std::move(object)) {}

    [[nodiscard]] Kind kind() const noexcept { return kind_; }
    [[nodiscard]] bool is(Kind kind) const noexcept { return kind_ == kind; }
    [[nodiscard]] bool is_sequence() const noexcept { return kind_ == Kind::list || kind_ == Kind::tuple; }
    // True, False and integers: what Python computes with as int.
    [[nodiscard]] bool is_integral() const noexcept { return kind_ == Kind::integer || kind_ == Kind::boolean; }
    [[nodiscard]] bool is_number() const noexcept { return is_integral() || kind_ == Kind::real; }

    // Each only for its own kind.
    [[nodiscard]] bool boolean() const noexcept { return scalar_.boolean; }
    [[nodiscard]] std::int64_t integer() const noexcept { return kind_ == Kind::boolean ? scalar_.boolean : scalar_.integer; }
    [[nodiscard]] double real() const noexcept { return kind_ == Kind::real ? scalar_.real : static_cast<double>(integer()); }
    [[nodiscard]] const String& string() const noexcept;  // also an undefined value's message
    [[nodiscard]] const List& list() const noexcept;      // list and tuple
    [[nodiscard]] const Dict& dict() const noexcept;
    [[nodiscard]] const View& view() const noexcept;
    [[nodiscard]] const RangeObject& range() const noexcept;
    [[nodiscard]] const Iterator& iterator() const noexcept;
    [[nodiscard]] Namespace& name_space() const noexcept;
    [[nodiscard]] const Callable& callable() const noexcept;

    [[nodiscard]] const Object* object() const noexcept { return object_.get(); }
    [[nodiscard]] const std::shared_ptr<const Object>& shared() const noexcept { return object_; }
    [[nodiscard]] int depth() const noexcept { return object_ ? object_->depth() : 0; }
    [[nodiscard]] bool is_identical(const Value& other) const noexcept;  // Python's `is`

private:
    Kind kind_ = Kind::none;
    union {
        bool boolean;
        std::int64_t integer;
        double real;
    } scalar_{.integer = 0};
    std::shared_ptr<const Object> object_;
};

// Valid UTF-8. markup: escaped text (the filters safe and escape make it), which escapes what is joined to it.
class String final : public Object {
public:
    String(Memory* memory, std::string text, bool markup);
    [[nodiscard]] const std::string& text() const noexcept { return text_; }
    [[nodiscard]] std::size_t length() const noexcept { return length_; }  // in code points
    [[nodiscard]] bool is_ascii() const noexcept { return length_ == text_.size(); }
    [[nodiscard]] bool is_markup() const noexcept { return markup_; }

private:
    std::string text_;
    std::size_t length_;
    bool markup_;
};

class List final : public Object {
public:
    // is_group: a tuple of groupby, whose items are also the attributes grouper and list.
    List(Memory* memory, std::vector<Value> items, bool is_group = false);
    [[nodiscard]] const std::vector<Value>& items() const noexcept { return items_; }
    [[nodiscard]] bool is_group() const noexcept { return is_group_; }

private:
    std::vector<Value> items_;
    bool is_group_;
};

using Entry = std::pair<Value, Value>;

// Keys in the order of their first appearance. Made by Runtime::dict, which checks the keys.
class Dict final : public Object {
public:
    // `sorted` holds the positions of the entries in the order of compare_keys.
    Dict(Memory* memory, std::vector<Entry> entries, std::vector<std::uint32_t> sorted);
    [[nodiscard]] const std::vector<Entry>& entries() const noexcept { return entries_; }
    [[nodiscard]] const Value* find(std::string_view key) const noexcept;
    [[nodiscard]] const Value* find(const Value& key) const noexcept;  // key is hashable

private:
    std::vector<Entry> entries_;
    std::vector<std::uint32_t> sorted_;
};

// Numbers exactly, integers against reals too; unordered where one is NaN.
[[nodiscard]] std::partial_ordering compare_numbers(const Value& a, const Value& b) noexcept;

// An order of hashable values in which equal ones (1, 1.0 and True too) meet: <0, 0, >0.
[[nodiscard]] int compare_keys(const Value& a, const Value& b) noexcept;

class View final : public Object {
public:
    enum class Part : std::uint8_t { keys, values, items };
    View(Memory* memory, const Value& dict, Part part);
    [[nodiscard]] const Dict& dict() const noexcept { return dict_.dict(); }
    [[nodiscard]] Part part() const noexcept { return part_; }

private:
    Value dict_;
    Part part_;
};

class RangeObject final : public Object {
public:
    RangeObject(Memory* memory, std::int64_t start, std::int64_t stop, std::int64_t step, std::int64_t length);
    [[nodiscard]] std::int64_t start() const noexcept { return start_; }
    [[nodiscard]] std::int64_t stop() const noexcept { return stop_; }
    [[nodiscard]] std::int64_t step() const noexcept { return step_; }
    [[nodiscard]] std::int64_t length() const noexcept { return length_; }
    // Also one place before and behind, where it may wrap around.
    [[nodiscard]] std::int64_t at(std::int64_t index) const noexcept {
        return static_cast<std::int64_t>(static_cast<std::uint64_t>(start_) +
                                         static_cast<std::uint64_t>(index) * static_cast<std::uint64_t>(step_));
    }

private:
    std::int64_t start_, stop_, step_, length_;
};

class Iterator final : public Object {
public:
    Iterator(Memory* memory, std::vector<Value> items);
    // The next item, or nothing at the end.
    [[nodiscard]] std::optional<Value> next() const;
    // All that are left; afterwards it is empty.
    [[nodiscard]] std::vector<Value> take_rest() const;

private:
    mutable std::vector<Value> items_;
    mutable std::size_t next_ = 0;
};

class Namespace final : public Object {
public:
    explicit Namespace(Memory* memory);
    [[nodiscard]] const std::vector<std::pair<std::string, Value>>& entries() const noexcept { return entries_; }
    [[nodiscard]] const Value* find(std::string_view name) const noexcept;
    void set(std::string_view name, Value value);
    void clear() noexcept { entries_.clear(); }

private:
    std::vector<std::pair<std::string, Value>> entries_;
};

// Anything that can be called, and some that only have attributes.
class Callable : public Object, public std::enable_shared_from_this<Callable> {
public:
    using Object::Object;
    // This object as a value: for methods that hold it.
    [[nodiscard]] Value self() const { return {Kind::callable, shared_from_this()}; }
    [[nodiscard]] virtual Value call(Evaluator& evaluator, Arguments& arguments) const = 0;
    [[nodiscard]] virtual std::optional<Value> attribute(Evaluator& evaluator, std::string_view name) const;
    [[nodiscard]] virtual std::string description() const = 0;  // as it prints
};

// The name Python has for the type of a value: 'str', 'dict', 'NoneType', …
[[nodiscard]] std::string_view type_name(const Value& value) noexcept;

inline const String& Value::string() const noexcept { return static_cast<const String&>(*object_); }
inline const List& Value::list() const noexcept { return static_cast<const List&>(*object_); }
inline const Dict& Value::dict() const noexcept { return static_cast<const Dict&>(*object_); }
inline const View& Value::view() const noexcept { return static_cast<const View&>(*object_); }
inline const RangeObject& Value::range() const noexcept { return static_cast<const RangeObject&>(*object_); }
inline const Iterator& Value::iterator() const noexcept { return static_cast<const Iterator&>(*object_); }
inline const Callable& Value::callable() const noexcept { return static_cast<const Callable&>(*object_); }

}  // namespace headroom::text::jinja
