#pragma once

// Puts a grammar together.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "core/base/error.h"
#include "core/text/grammar/rules.h"

namespace headroom::text {

class Dfa;

// States and rules are numbers. A rule must not call itself before it has made a byte, and what a rule repeats must not be empty.
class GrammarBuilder {
public:
    explicit GrammarBuilder(std::size_t most_states) : most_states_(most_states) {}

    [[nodiscard]] StateId state(bool accepts = false);
    void accept(StateId state) { states_[state].accepts = true; }
    void bytes(StateId from, std::uint8_t first, std::uint8_t last, StateId to) { states_[from].bytes.push_back({first, last, to}); }
    void call(StateId from, RuleId rule, StateId to) { states_[from].calls.push_back({rule, to}); }
    void jump(StateId from, StateId to) { call(from, kNone, to); }
    // Any character that is not ASCII, as UTF-8.
    void beyond_ascii(StateId from, StateId to);
    // Exactly this text; returns the state behind it, a new one.
    [[nodiscard]] StateId literal(StateId from, std::string_view text);
    // The same, to a state that is there. The text must not be empty.
    void literal(StateId from, std::string_view text, StateId to);
    // Any of the texts, none of which may be empty.
    void literals(StateId from, std::span<const std::string> texts, StateId to);

    [[nodiscard]] RuleId declare();  // a rule that is defined later
    void define(RuleId rule, StateId start) { rules_[rule].start = start; }
    [[nodiscard]] RuleId rule(StateId start);
    // min to max (kNone: without end) times the body; nothing at all where min is the larger one. Shared where asked for again.
    [[nodiscard]] RuleId repeat(RuleId body, std::uint32_t min, std::uint32_t max);
    // A rule that makes what the automaton accepts, as it is, or as a JSON string in quotes (escapes only where JSON needs them).
    [[nodiscard]] RuleId embed(const Dfa& dfa);
    [[nodiscard]] RuleId embed_string(const Dfa& dfa);

    // There are more states than allowed: what was built since is not whole.
    [[nodiscard]] bool is_full() const noexcept { return states_.size() > most_states_; }

    // Leaves out what leads to no end. Errors: invalid_argument where there are too many states, and where the root makes no text at all
    // ("nothing can satisfy …").
    [[nodiscard]] Result<std::shared_ptr<const Grammar>> build(RuleId root);

private:
    struct State {
        std::vector<ByteEdge> bytes;
        std::vector<CallEdge> calls;
        bool accepts = false;
    };
    void find_costs(Grammar::Rules& out) const;

    std::size_t most_states_;
    std::vector<State> states_;
    std::vector<Rule> rules_;
    std::map<std::tuple<RuleId, std::uint32_t, std::uint32_t>, RuleId> repeats_;  // by body, min, max
};

}  // namespace headroom::text
