#pragma once

// Finite automata over the bytes of UTF-8 text, for patterns and numbers.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::text {

// Deterministic: the edges of a state do not overlap. Begins in state 0; without states it accepts nothing.
class Dfa {
public:
    struct Edge {
        std::uint8_t first = 0, last = 0;
        std::uint32_t target = 0;
    };
    struct State {
        std::vector<Edge> edges;  // ascending
        bool accepts = false;
    };
    std::vector<State> states;

    [[nodiscard]] bool matches(std::string_view text) const noexcept;
};

struct CodeRange {
    char32_t first = 0, last = 0;
};

// States with edges of bytes and of nothing; begins in state 0.
class Nfa {
public:
    using StateId = std::uint32_t;

    Nfa() : states_(1) {}
    [[nodiscard]] StateId state();
    void bytes(StateId from, std::uint8_t first, std::uint8_t last, StateId to) { states_[from].edges.push_back({first, last, to}); }
    void jump(StateId from, StateId to) { states_[from].jumps.push_back(to); }
    void accept(StateId state) { states_[state].accepts = true; }
    // Any one character of the ranges (within the Unicode scalar values; surrogates are left out), as UTF-8.
    void characters(StateId from, std::span<const CodeRange> ranges, StateId to);
    // Behind this state nothing matters any more: what leads here accepts with anything that follows, which a loop of its own reads.
    void accept_all(StateId state) { all_ = state; }
    [[nodiscard]] std::size_t size() const noexcept { return states_.size(); }

    // None where it would take more than `most` states, or too much time.
    [[nodiscard]] std::optional<Dfa> determinize(std::size_t most) const;

private:
    struct State {
        std::vector<Dfa::Edge> edges;
        std::vector<StateId> jumps;
        bool accepts = false;
    };
    std::vector<State> states_;
    std::optional<StateId> all_;
};

inline constexpr CodeRange kAnyCharacter{0, 0x10FFFF};

// What both accept; none where that takes more than `most` states.
[[nodiscard]] std::optional<Dfa> intersect(const Dfa& a, const Dfa& b, std::size_t most);
// Texts of min to max (none: without end) characters.
[[nodiscard]] Dfa length_dfa(std::uint32_t min, std::optional<std::uint32_t> max);
// Every text but these.
[[nodiscard]] Dfa all_but(std::span<const std::string> texts);

}  // namespace headroom::text
