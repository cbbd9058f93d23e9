#pragma once

// What one rendering may use, and the making of values under that limit.

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/text/jinja/failure.h"
#include "core/text/jinja/value.h"
#include "core/text/template_limits.h"

namespace headroom::text::jinja {

class Runtime {
public:
    Runtime(const TemplateLimits& limits, std::chrono::local_seconds now);

    [[nodiscard]] const TemplateLimits& limits() const noexcept { return limits_; }
    [[nodiscard]] std::chrono::local_seconds now() const noexcept { return now_; }

    // Work done: nodes evaluated, items visited. Fails where the limit is passed.
    void step(std::uint64_t count = 1) {
        if (count > steps_left_) out_of_steps();
        steps_left_ -= count;
    }
    // Work on that many bytes of text, each looked at.
    void step_bytes(std::size_t bytes) { step(bytes / 32 + 1); }
    // The copying of that many bytes.
    void step_copy(std::size_t bytes) { step(bytes / 256); }
    // Fails where a text of that many bytes is too large.
    void check_size(std::uint64_t bytes) const {
        if (bytes > limits_.output_bytes) too_long();
    }
    // Fails where a list of that many items is too large, before it is made.
    void check_items(std::uint64_t items);

    [[nodiscard]] Value string(std::string text, bool markup = false);
    [[nodiscard]] Value character(std::string_view text);  // one code point, cheap for ASCII
    [[nodiscard]] Value list(std::vector<Value> items);
    [[nodiscard]] Value tuple(std::vector<Value> items);
    [[nodiscard]] Value group(Value key, Value items);  // groupby's pair
    // A later entry of the same key gives its value to the first one. Fails for keys that cannot be (lists, dicts).
    [[nodiscard]] Value dict(std::vector<Entry> entries);
    [[nodiscard]] Value view(const Value& dict, View::Part part);
    [[nodiscard]] Value range(std::int64_t start, std::int64_t stop, std::int64_t step);
    [[nodiscard]] Value iterator(std::vector<Value> items);
    [[nodiscard]] Value name_space();
    // message: why it is undefined, as a sentence.
    [[nodiscard]] Value undefined(std::string message);

    template <class T, class... Args>
    [[nodiscard]] Value callable(Args&&... args) {
        return checked(Kind::callable, std::make_shared<const T>(&memory_, std::forward<Args>(args)...));
    }

    // Fails where a value cannot be a key of a dict, and counts the work of comparing it.
    void check_key(const Value& key);

    [[nodiscard]] Memory& memory() noexcept { return memory_; }

protected:
    ~Runtime();

private:
    [[noreturn]] void out_of_steps() const;
    [[noreturn]] void too_long() const;
    [[nodiscard]] Value checked(Kind kind, std::shared_ptr<const Object> object) const;

    TemplateLimits limits_;
    std::chrono::local_seconds now_;
    std::uint64_t steps_left_;
    Memory memory_;
    std::vector<std::shared_ptr<Namespace>> name_spaces_;  // emptied at the end: they may hold themselves
    std::vector<Value> characters_;
    Value empty_;
};

// A text being made, within the limits.
class Text {
public:
    explicit Text(Runtime& runtime) noexcept : runtime_(runtime) {}
    ~Text() { runtime_.memory().give_back(text_.size()); }
    Text(const Text&) = delete;
    Text& operator=(const Text&) = delete;
    Text& operator+=(std::string_view part) {
        make_room(part.size());
        text_ += part;
        return *this;
    }
    Text& operator+=(char c) { return *this += std::string_view(&c, 1); }
    void repeat(std::string_view part, std::uint64_t times);
    [[nodiscard]] std::size_t size() const noexcept { return text_.size(); }
    [[nodiscard]] const std::string& view() const noexcept { return text_; }
    [[nodiscard]] std::string take() noexcept {
        runtime_.memory().give_back(text_.size());
        return std::exchange(text_, {});
    }

private:
    // Counts that many bytes more, before they are there.
    void make_room(std::uint64_t bytes) {
        runtime_.check_size(text_.size() + bytes);
        runtime_.step_copy(bytes);
        runtime_.memory().take(bytes);
    }

    Runtime& runtime_;
    std::string text_;
};

}  // namespace headroom::text::jinja
