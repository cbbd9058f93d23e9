#include "core/text/grammar/builder.h"

#include <algorithm>
#include <bitset>
#include <functional>
#include <map>
#include <queue>
#include <string>
#include <utility>

#include "core/text/grammar/dfa.h"

namespace headroom::text {

StateId GrammarBuilder::state(bool accepts) {
    if (is_full()) {  // the last state takes everything: build() refuses the grammar
        return static_cast<StateId>(states_.size() - 1);
    }
    states_.push_back({.bytes = {}, .calls = {}, .accepts = accepts});
    return static_cast<StateId>(states_.size() - 1);
}

// Unicode 15.0, table 3-7.
void GrammarBuilder::beyond_ascii(StateId from, StateId to) {
    const StateId one = state(), two = state(), three = state();  // more bytes
    bytes(one, 0x80, 0xBF, to);
    bytes(two, 0x80, 0xBF, one);
    bytes(three, 0x80, 0xBF, two);
    const auto lead = [&](std::uint8_t first, std::uint8_t last, std::uint8_t low, std::uint8_t high, StateId rest) {
        const StateId second = state();
        bytes(from, first, last, second);
        bytes(second, low, high, rest);
    };
    bytes(from, 0xC2, 0xDF, one);
    lead(0xE0, 0xE0, 0xA0, 0xBF, one);
    bytes(from, 0xE1, 0xEC, two);
    lead(0xED, 0xED, 0x80, 0x9F, one);
    bytes(from, 0xEE, 0xEF, two);
    lead(0xF0, 0xF0, 0x90, 0xBF, two);
    bytes(from, 0xF1, 0xF3, three);
    lead(0xF4, 0xF4, 0x80, 0x8F, two);
}

StateId GrammarBuilder::literal(StateId from, std::string_view text) {
    for (const char c : text) {
        const StateId next = state();
        bytes(from, static_cast<std::uint8_t>(c), static_cast<std::uint8_t>(c), next);
        from = next;
    }
    return from;
}

void GrammarBuilder::literal(StateId from, std::string_view text, StateId to) {
    from = literal(from, text.substr(0, text.size() - 1));
    bytes(from, static_cast<std::uint8_t>(text.back()), static_cast<std::uint8_t>(text.back()), to);
}

void GrammarBuilder::literals(StateId from, std::span<const std::string> texts, StateId to) {
    // One state for each beginning that several have in common.
    std::map<std::pair<StateId, char>, StateId> next_of;
    for (const std::string& text : texts) {
        StateId at = from;
        for (const char c : text) {
            const auto [entry, is_new] = next_of.try_emplace({at, c}, 0);
            if (is_new) {
                entry->second = state();
                bytes(at, static_cast<std::uint8_t>(c), static_cast<std::uint8_t>(c), entry->second);
            }
            at = entry->second;
        }
        jump(at, to);
    }
}

RuleId GrammarBuilder::declare() {
    rules_.emplace_back();
    return static_cast<RuleId>(rules_.size() - 1);
}

RuleId GrammarBuilder::rule(StateId start) {
    const RuleId id = declare();
    define(id, start);
    return id;
}

RuleId GrammarBuilder::repeat(RuleId body, std::uint32_t min, std::uint32_t max) {
    const auto [entry, is_new] = repeats_.try_emplace({body, min, max}, 0);
    if (is_new) {
        entry->second = declare();
        rules_[entry->second] = {.start = kNone, .body = body, .min = min, .max = max};
    }
    return entry->second;
}

RuleId GrammarBuilder::embed(const Dfa& dfa) {
    std::vector<StateId> ids;
    for (const Dfa::State& one : dfa.states) ids.push_back(state(one.accepts));
    for (std::size_t i = 0; i < ids.size(); ++i) {
        for (const Dfa::Edge& edge : dfa.states[i].edges) bytes(ids[i], edge.first, edge.last, ids[edge.target]);
    }
    return rule(ids.front());
}

RuleId GrammarBuilder::embed_string(const Dfa& dfa) {
    std::vector<StateId> ids;
    const StateId end = state(true);
    for (const Dfa::State& one : dfa.states) {
        ids.push_back(state());
        if (one.accepts) bytes(ids.back(), '"', '"', end);
    }
    const auto plain = [&](StateId from, int first, int last, StateId to) {
        if (first <= last) bytes(from, static_cast<std::uint8_t>(first), static_cast<std::uint8_t>(last), to);
    };
    for (std::size_t i = 0; i < ids.size(); ++i) {
        for (const Dfa::Edge& edge : dfa.states[i].edges) {
            const StateId to = ids[edge.target];
            for (int byte = edge.first; byte <= std::min<int>(edge.last, 0x1F); ++byte) {
                static constexpr std::string_view kNamed = "\b\f\n\r\t";
                const auto named = kNamed.find(static_cast<char>(byte));
                const std::string escape = named != std::string_view::npos ? std::string{'\\', "bfnrt"[named]} : fmt::format("\\u{:04x}", byte);
                literal(ids[i], escape, to);
            }
            if (edge.first <= '"' && edge.last >= '"') literal(ids[i], "\\\"", to);
            if (edge.first <= '\\' && edge.last >= '\\') literal(ids[i], "\\\\", to);
            plain(ids[i], std::max<int>(edge.first, 0x20), std::min<int>(edge.last, '"' - 1), to);
            plain(ids[i], std::max<int>(edge.first, '"' + 1), std::min<int>(edge.last, '\\' - 1), to);
            plain(ids[i], std::max<int>(edge.first, '\\' + 1), edge.last, to);
        }
    }
    const StateId start = state();
    bytes(start, '"', '"', ids.front());
    return rule(start);
}

// The fewest bytes to the end of each rule from each of its states: Knuth's generalization of Dijkstra's algorithm (1977).
void GrammarBuilder::find_costs(Grammar::Rules& out) const {
    struct Back {
        StateId from;
        RuleId rule;         // called on the way; kNone: none
        std::uint32_t cost;  // of the edge itself
    };
    std::vector<std::vector<Back>> into(states_.size());
    std::vector<std::vector<std::pair<StateId, StateId>>> callers(rules_.size());  // from, to
    std::vector<std::vector<RuleId>> starts(states_.size()), repeats(rules_.size());
    for (StateId from = 0; from < states_.size(); ++from) {
        for (const ByteEdge& edge : states_[from].bytes) into[edge.target].push_back({from, kNone, 1});
        for (const CallEdge& edge : states_[from].calls) {
            into[edge.target].push_back({from, edge.rule, 0});
            if (edge.rule != kNone) callers[edge.rule].emplace_back(from, edge.target);
        }
    }
    out.state_cost.assign(states_.size(), kNone);
    out.rule_cost.assign(rules_.size(), kNone);

    using Item = std::pair<std::uint32_t, std::uint32_t>;  // cost; state, or states + rule
    std::priority_queue<Item, std::vector<Item>, std::greater<>> queue;
    const auto states = static_cast<std::uint32_t>(states_.size());
    for (StateId id = 0; id < states; ++id) {
        if (states_[id].accepts) queue.emplace(0, id);
    }
    for (RuleId id = 0; id < rules_.size(); ++id) {
        const Rule& rule = rules_[id];
        if (rule.repeats()) {
            if (rule.min > rule.max) continue;  // never
            repeats[rule.body].push_back(id);
            if (rule.min == 0) queue.emplace(0, states + id);
        } else if (rule.start != kNone) {
            starts[rule.start].push_back(id);
        }
    }
    const auto reach = [&](std::uint64_t cost, std::uint32_t item) {
        if (cost <= kMostCost) queue.emplace(static_cast<std::uint32_t>(cost), item);
    };
    while (!queue.empty()) {
        const auto [cost, item] = queue.top();
        queue.pop();
        if (item < states) {
            if (out.state_cost[item] != kNone) continue;
            out.state_cost[item] = cost;
            for (const Back& back : into[item]) {
                if (back.rule == kNone) {
                    reach(std::uint64_t{cost} + back.cost, back.from);
                } else if (out.rule_cost[back.rule] != kNone) {
                    reach(std::uint64_t{cost} + out.rule_cost[back.rule], back.from);
                }
            }
            for (const RuleId rule : starts[item]) queue.emplace(cost, states + rule);
        } else {
            const RuleId rule = item - states;
            if (out.rule_cost[rule] != kNone) continue;
            out.rule_cost[rule] = cost;
            for (const auto& [from, to] : callers[rule]) {
                if (out.state_cost[to] != kNone) reach(std::uint64_t{cost} + out.state_cost[to], from);
            }
            for (const RuleId repeat : repeats[rule]) reach(std::uint64_t{cost} * rules_[repeat].min, states + repeat);
        }
    }
}

Result<std::shared_ptr<const Grammar>> GrammarBuilder::build(RuleId root) {
    if (is_full()) {
        return fail(ErrorKind::invalid_argument, "The grammar needs more than {} states: make the schema smaller", most_states_);
    }
    auto rules = std::make_unique<Grammar::Rules>();
    find_costs(*rules);
    if (rules->rule_cost[root] == kNone) {
        return fail(ErrorKind::invalid_argument, "Nothing of less than {} bytes can satisfy the schema: its keywords contradict each other, or it contains itself without end",
                    kMostCost);
    }
    rules->root = root;
    rules->rules = rules_;
    for (Rule& rule : rules->rules) {
        if (rule.repeats() && rules->rule_cost[rule.body] == kNone) rule.max = 0;
    }
    std::bitset<257> begins;  // of the classes of bytes
    begins.set(0);
    for (StateId id = 0; id < states_.size(); ++id) {
        rules->first_byte_edge.push_back(static_cast<std::uint32_t>(rules->byte_edges.size()));
        rules->first_call.push_back(static_cast<std::uint32_t>(rules->calls.size()));
        rules->accepts.push_back(states_[id].accepts);
        for (const ByteEdge& edge : states_[id].bytes) {
            if (rules->state_cost[edge.target] == kNone) continue;
            rules->byte_edges.push_back(edge);
            begins.set(edge.first);
            begins.set(std::size_t{edge.last} + 1);
        }
        for (const CallEdge& edge : states_[id].calls) {
            const bool leads_on = rules->state_cost[edge.target] != kNone && (edge.rule == kNone || rules->rule_cost[edge.rule] != kNone);
            if (leads_on) rules->calls.push_back(edge);
        }
    }
    rules->first_byte_edge.push_back(static_cast<std::uint32_t>(rules->byte_edges.size()));
    rules->first_call.push_back(static_cast<std::uint32_t>(rules->calls.size()));
    for (std::size_t byte = 0; byte < 256; ++byte) {
        if (begins[byte]) ++rules->classes;
        rules->class_of[byte] = static_cast<std::uint8_t>(rules->classes - 1);
    }
    return std::make_shared<const Grammar>(std::move(rules));
}

}  // namespace headroom::text
