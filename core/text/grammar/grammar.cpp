#include "core/text/grammar.h"

#include <utility>

#include "core/text/grammar/machine.h"
#include "core/text/grammar/rules.h"

namespace headroom::text {

Grammar::Grammar(std::unique_ptr<const Rules> rules) noexcept : rules_(std::move(rules)) {}
Grammar::~Grammar() = default;

bool Grammar::matches(std::string_view text) const {
    Machine machine(*rules_);
    Machine::ConfigId at = machine.start();
    for (const char byte : text) {
        at = machine.step(at, static_cast<std::uint8_t>(byte));
        if (at == Machine::kDead) return false;
        if (machine.is_large()) machine.forget_all_but(std::span(&at, 1));
    }
    return at != Machine::kDead && machine.accepts(at);
}

void append_shortest(const Grammar::Rules& rules, StateId state, std::string& out) {
    while (rules.accepts[state] == 0) {
        const std::uint32_t cost = rules.state_cost[state];
        StateId next = kNone;
        for (const ByteEdge& edge : rules.bytes_from(state)) {
            if (rules.state_cost[edge.target] + 1 != cost) continue;
            out.push_back(static_cast<char>(edge.first));
            next = edge.target;
            break;
        }
        if (next == kNone) {
            for (const CallEdge& edge : rules.calls_from(state)) {
                const std::uint32_t called = edge.rule == kNone ? 0 : rules.rule_cost[edge.rule];
                if (rules.state_cost[edge.target] + called != cost) continue;
                if (called > 0) append_shortest_rule(rules, edge.rule, out);
                next = edge.target;
                break;
            }
        }
        if (next == kNone) return;  // cannot be: the costs are those of the edges
        state = next;
    }
}

void append_shortest_rule(const Grammar::Rules& rules, RuleId id, std::string& out) {
    const Rule& rule = rules.rules[id];
    if (!rule.repeats()) return append_shortest(rules, rule.start, out);
    for (std::uint32_t i = 0; i < rule.min; ++i) append_shortest_rule(rules, rule.body, out);
}

}  // namespace headroom::text
