#pragma once

// What an answer must look like, byte by byte: a compiled grammar, without regard to any vocabulary.

#include <memory>
#include <string_view>

namespace headroom::text {

// Rules of bytes that call each other (a pushdown automaton). Immutable, without a way into a place that cannot be finished; safe from
// any thread. Made by json_schema.h and answer_grammar.h.
class Grammar {
public:
    // Whether the whole text is one that the grammar makes. A control token stands in it between two kControlMark.
    [[nodiscard]] bool matches(std::string_view text) const;

    struct Rules;  // core/text/grammar/rules.h
    explicit Grammar(std::unique_ptr<const Rules> rules) noexcept;
    ~Grammar();
    Grammar(const Grammar&) = delete;
    Grammar& operator=(const Grammar&) = delete;
    [[nodiscard]] const Rules& rules() const noexcept { return *rules_; }

private:
    std::unique_ptr<const Rules> rules_;
};

}  // namespace headroom::text
