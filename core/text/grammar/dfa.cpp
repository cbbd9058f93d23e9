#include "core/text/grammar/dfa.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "core/base/utf8.h"

namespace headroom::text {
namespace {

// The work that one automaton may take: states of the other kind looked at.
constexpr std::size_t kMostWork = 4'000'000;

// The bytes of first..last, where both have the same length and the ranges below are whole: UTF-8 in ranges of bytes, one for each place.
struct ByteRanges {
    std::array<std::uint8_t, 4> first{}, last{};
    std::size_t length = 0;
};

void split_utf8(char32_t first, char32_t last, std::vector<ByteRanges>& out) {
    if (first > last) return;
    // Where the length changes, and the surrogates.
    static constexpr std::array<char32_t, 4> kEnds{0x7F, 0x7FF, 0xFFFF, 0x10FFFF};
    for (const char32_t end : kEnds) {
        if (first <= end && last > end) {
            split_utf8(first, end, out);
            split_utf8(end + 1, last, out);
            return;
        }
    }
    if (first <= 0xDFFF && last >= 0xD800) {
        if (first < 0xD800) split_utf8(first, 0xD7FF, out);
        if (last > 0xDFFF) split_utf8(0xE000, last, out);
        return;
    }
    // Where a leading byte changes, the bytes behind it must run over all their values.
    for (const int bits : {6, 12, 18}) {
        const char32_t low = (char32_t{1} << bits) - 1;
        if (first > 0x7F && (first & ~low) != (last & ~low)) {
            if ((first & low) != 0) {
                split_utf8(first, first | low, out);
                split_utf8((first | low) + 1, last, out);
                return;
            }
            if ((last & low) != low) {
                split_utf8(first, (last & ~low) - 1, out);
                split_utf8(last & ~low, last, out);
                return;
            }
        }
    }
    std::string from, to;
    append_utf8(from, first);
    append_utf8(to, last);
    ByteRanges ranges;
    ranges.length = from.size();
    for (std::size_t i = 0; i < from.size(); ++i) {
        ranges.first[i] = static_cast<std::uint8_t>(from[i]);
        ranges.last[i] = static_cast<std::uint8_t>(to[i]);
    }
    out.push_back(ranges);
}

}  // namespace

bool Dfa::matches(std::string_view text) const noexcept {
    if (states.empty()) return false;
    std::uint32_t at = 0;
    for (const char c : text) {
        const auto byte = static_cast<std::uint8_t>(c);
        const auto edge = std::ranges::find_if(states[at].edges, [&](const Edge& e) { return byte >= e.first && byte <= e.last; });
        if (edge == states[at].edges.end()) return false;
        at = edge->target;
    }
    return states[at].accepts;
}

Nfa::StateId Nfa::state() {
    states_.emplace_back();
    return static_cast<StateId>(states_.size() - 1);
}

void Nfa::characters(StateId from, std::span<const CodeRange> ranges, StateId to) {
    std::vector<ByteRanges> sequences;
    for (const CodeRange& range : ranges) split_utf8(range.first, range.last, sequences);
    for (const ByteRanges& sequence : sequences) {
        StateId at = from;
        for (std::size_t i = 0; i < sequence.length; ++i) {
            const StateId next = i + 1 == sequence.length ? to : state();
            bytes(at, sequence.first[i], sequence.last[i], next);
            at = next;
        }
    }
}

std::optional<Dfa> Nfa::determinize(std::size_t most) const {
    std::size_t work = 0;
    // The states that are reached without a byte, ascending.
    std::vector<std::uint32_t> mark(states_.size(), 0);
    std::uint32_t search = 0;
    const auto close = [&](std::vector<StateId> set) {
        ++search;
        for (const StateId id : set) mark[id] = search;
        for (std::size_t i = 0; i < set.size(); ++i) {
            for (const StateId to : states_[set[i]].jumps) {
                if (mark[to] == search) continue;
                mark[to] = search;
                set.push_back(to);
            }
        }
        if (all_ && mark[*all_] == search) set = {*all_};
        std::ranges::sort(set);
        work += set.size();
        return set;
    };
    std::map<std::vector<StateId>, std::uint32_t> ids;
    std::vector<const std::vector<StateId>*> sets;
    Dfa dfa;
    const auto id_of = [&](std::vector<StateId> set) {
        const auto [entry, is_new] = ids.try_emplace(std::move(set), static_cast<std::uint32_t>(dfa.states.size()));
        if (is_new) {
            sets.push_back(&entry->first);
            dfa.states.push_back({.edges = {}, .accepts = std::ranges::any_of(entry->first, [&](StateId id) { return states_[id].accepts; })});
        }
        return entry->second;
    };
    id_of(close({0}));
    std::vector<Dfa::Edge> edges;
    std::vector<StateId> reached;
    for (std::uint32_t i = 0; i < dfa.states.size(); ++i) {
        edges.clear();
        std::set<int> begins;
        for (const StateId id : *sets[i]) {
            for (const Dfa::Edge& edge : states_[id].edges) {
                edges.push_back(edge);
                begins.insert(edge.first);
                begins.insert(edge.last + 1);
            }
        }
        work += edges.size() * begins.size() / 4;
        for (auto begin = begins.begin(); begin != begins.end() && std::next(begin) != begins.end(); ++begin) {
            reached.clear();
            for (const Dfa::Edge& edge : edges) {
                if (edge.first <= *begin && edge.last >= *begin) reached.push_back(edge.target);
            }
            if (reached.empty()) continue;
            std::ranges::sort(reached);
            const auto repeated = std::ranges::unique(reached);
            reached.erase(repeated.begin(), repeated.end());
            const std::uint32_t target = id_of(close(reached));
            auto& out = dfa.states[i].edges;
            const int last = *std::next(begin) - 1;
            if (!out.empty() && out.back().target == target && out.back().last + 1 == *begin) {
                out.back().last = static_cast<std::uint8_t>(last);
            } else {
                out.push_back({static_cast<std::uint8_t>(*begin), static_cast<std::uint8_t>(last), target});
            }
        }
        if (dfa.states.size() > most || work > kMostWork) return std::nullopt;
    }
    return dfa;
}

std::optional<Dfa> intersect(const Dfa& a, const Dfa& b, std::size_t most) {
    Dfa both;
    if (a.states.empty() || b.states.empty()) return both;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> ids;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
    const auto id_of = [&](std::uint32_t in_a, std::uint32_t in_b) {
        const auto [entry, is_new] = ids.try_emplace({in_a, in_b}, static_cast<std::uint32_t>(pairs.size()));
        if (is_new) {
            pairs.emplace_back(in_a, in_b);
            both.states.push_back({.edges = {}, .accepts = a.states[in_a].accepts && b.states[in_b].accepts});
        }
        return entry->second;
    };
    id_of(0, 0);
    for (std::size_t i = 0; i < pairs.size(); ++i) {
        if (pairs.size() > most) return std::nullopt;
        const auto [in_a, in_b] = pairs[i];
        for (const Dfa::Edge& x : a.states[in_a].edges) {
            for (const Dfa::Edge& y : b.states[in_b].edges) {
                const auto first = std::max(x.first, y.first), last = std::min(x.last, y.last);
                if (first > last) continue;
                const std::uint32_t target = id_of(x.target, y.target);
                both.states[i].edges.push_back({first, last, target});
            }
        }
    }
    return both;
}

Dfa length_dfa(std::uint32_t min, std::optional<std::uint32_t> max) {
    Nfa nfa;
    Nfa::StateId at = 0;
    const auto character = [&](Nfa::StateId from, Nfa::StateId to) { nfa.characters(from, std::span(&kAnyCharacter, 1), to); };
    for (std::uint32_t i = 0; i < max.value_or(min); ++i) {
        if (i >= min) nfa.accept(at);
        const Nfa::StateId next = nfa.state();
        character(at, next);
        at = next;
    }
    nfa.accept(at);
    if (!max) character(at, at);
    return *nfa.determinize(std::numeric_limits<std::size_t>::max());
}

Dfa all_but(std::span<const std::string> texts) {
    // The texts as a tree; beside it a state that accepts everything. A text that leaves the tree inside a character must still be
    // UTF-8: the tree is laid over the automaton of all texts.
    Dfa tree;
    tree.states.push_back({.edges = {}, .accepts = true});
    constexpr std::uint32_t kOther = 1;
    tree.states.push_back({.edges = {{0, 255, kOther}}, .accepts = true});
    std::map<std::pair<std::uint32_t, std::uint8_t>, std::uint32_t> next_of;
    for (const std::string& text : texts) {
        std::uint32_t at = 0;
        for (const char c : text) {
            const auto [entry, is_new] = next_of.try_emplace({at, static_cast<std::uint8_t>(c)}, static_cast<std::uint32_t>(tree.states.size()));
            if (is_new) tree.states.push_back({.edges = {}, .accepts = true});
            at = entry->second;
        }
        tree.states[at].accepts = false;
    }
    // Between the bytes that stay in the tree lie those that leave it.
    std::vector<int> behind(tree.states.size(), 0);
    for (const auto& [from, target] : next_of) {  // by state, bytes ascending
        const auto& [state, byte] = from;
        auto& edges = tree.states[state].edges;
        if (behind[state] < byte) edges.push_back({static_cast<std::uint8_t>(behind[state]), static_cast<std::uint8_t>(byte - 1), kOther});
        edges.push_back({byte, byte, target});
        behind[state] = byte + 1;
    }
    for (std::uint32_t state = 0; state < tree.states.size(); ++state) {
        if (state != kOther && behind[state] < 256) tree.states[state].edges.push_back({static_cast<std::uint8_t>(behind[state]), 255, kOther});
    }
    return *intersect(tree, length_dfa(0, std::nullopt), std::numeric_limits<std::size_t>::max());
}

}  // namespace headroom::text
