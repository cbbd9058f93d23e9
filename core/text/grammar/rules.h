#pragma once

// A compiled grammar: finite automata over bytes (rules) that call each other.

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "core/text/grammar.h"

namespace headroom::text {

using StateId = std::uint32_t;
using RuleId = std::uint32_t;
inline constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

// From a state with any byte of first..last to target.
struct ByteEdge {
    std::uint8_t first = 0;
    std::uint8_t last = 0;
    StateId target = 0;
};

// From a state with what the rule makes (kNone: with nothing) to target.
struct CallEdge {
    RuleId rule = kNone;
    StateId target = 0;
};

// An automaton that begins at `start`, or, where `body` is set, min to max times what the rule `body` makes.
struct Rule {
    StateId start = kNone;
    RuleId body = kNone;
    std::uint32_t min = 0;
    std::uint32_t max = kNone;  // kNone: without end
    [[nodiscard]] bool repeats() const noexcept { return body != kNone; }
};

struct Grammar::Rules {
    std::vector<Rule> rules;
    RuleId root = 0;
    // By state, [states + 1]: where its edges begin in the lists below.
    std::vector<std::uint32_t> first_byte_edge, first_call;
    std::vector<ByteEdge> byte_edges;
    std::vector<CallEdge> calls;
    std::vector<std::uint8_t> accepts;      // by state: whether the rule may end here
    std::vector<std::uint32_t> state_cost;  // by state: the fewest bytes to the rule's end
    std::vector<std::uint32_t> rule_cost;   // by rule: the fewest bytes it makes
    // Bytes that no edge tells apart are one class.
    std::array<std::uint8_t, 256> class_of{};
    std::size_t classes = 0;

    [[nodiscard]] std::size_t states() const noexcept { return accepts.size(); }
    [[nodiscard]] std::span<const ByteEdge> bytes_from(StateId state) const noexcept {
        return std::span(byte_edges).subspan(first_byte_edge[state], first_byte_edge[state + 1] - first_byte_edge[state]);
    }
    [[nodiscard]] std::span<const CallEdge> calls_from(StateId state) const noexcept {
        return std::span(calls).subspan(first_call[state], first_call[state + 1] - first_call[state]);
    }
    [[nodiscard]] bool is_last(StateId state) const noexcept { return bytes_from(state).empty() && calls_from(state).empty(); }
};

// What cannot be finished within so many bytes is left out of a grammar.
inline constexpr std::uint32_t kMostCost = 1u << 20;

// Appends the shortest text from a state to its rule's end, and the shortest that a rule makes.
void append_shortest(const Grammar::Rules& rules, StateId state, std::string& out);
void append_shortest_rule(const Grammar::Rules& rules, RuleId rule, std::string& out);

}  // namespace headroom::text
