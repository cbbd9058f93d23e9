#include "core/text/grammar/machine.h"

#include <algorithm>
#include <utility>

namespace headroom::text {
namespace {

std::size_t mix(std::size_t hash, std::uint64_t value) noexcept {
    std::uint64_t z = hash ^ (value + 0x9E3779B97F4A7C15u + (hash << 6) + (hash >> 2));
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    return static_cast<std::size_t>(z ^ (z >> 27));
}

}  // namespace

std::size_t Machine::NodeHash::operator()(const Node& node) const noexcept {
    return mix(mix(node.below, node.frame.place), node.frame.count);
}

Machine::Machine(const Grammar::Rules& rules) : rules_(rules) { clear(); }

void Machine::clear() {
    nodes_.assign(2, Node{{kNone, 0}, 0});
    seen_.assign(2, 0);
    search_ = 0;
    node_ids_.clear();
    configs_.assign(1, Config{});
    config_ids_.clear();
    next_.assign(rules_.classes, kDead);
    size_ = 0;
}

Machine::NodeId Machine::intern(const Node& node) {
    const auto [entry, is_new] = node_ids_.try_emplace(node, static_cast<NodeId>(nodes_.size()));
    if (is_new) {
        nodes_.push_back(node);
        seen_.push_back(0);
    }
    return entry->second;
}

// A frame is reached: where its rule may end here, so is the one below it, and so on.
void Machine::arrive(Node node, Arrivals& out) {
    while (true) {
        ++work_;
        bool may_end = false, may_go_on = false;
        const Frame frame = node.frame;
        if ((frame.place & Frame::kRepeat) != 0) {
            const Rule& rule = rules_.rules[frame.place & ~Frame::kRepeat];
            may_end = frame.count >= rule.min;
            may_go_on = frame.count < rule.max;
        } else {
            may_end = rules_.accepts[frame.place] != 0;
            may_go_on = !rules_.is_last(frame.place);
        }
        if (may_go_on && out.stacks.size() < kMostVisits) {
            const NodeId id = intern(node);
            if (seen_[id] == search_) return;
            seen_[id] = search_;
            out.stacks.push_back(id);
        }
        if (!may_end) return;
        if (node.below == kBottom) {
            out.accepts = true;
            return;
        }
        if (node.below == kUnknown) {
            out.escapes = true;
            return;
        }
        node = nodes_[node.below];
    }
}

Machine::ConfigId Machine::start() {
    ++search_;
    Arrivals arrivals;
    const Rule& root = rules_.rules[rules_.root];
    const Frame frame = root.repeats() ? Frame{rules_.root | Frame::kRepeat, 0} : Frame{root.start, 0};
    arrive({frame, kBottom}, arrivals);
    return config_of(std::move(arrivals));
}

Machine::ConfigId Machine::start_at(Frame frame) {
    ++search_;
    Arrivals arrivals;
    arrive({frame, kUnknown}, arrivals);
    return config_of(std::move(arrivals));
}

Machine::ConfigId Machine::walk(ConfigId from, std::string_view bytes) {
    for (const char byte : bytes) {
        if (from == kDead) break;
        from = step(from, static_cast<std::uint8_t>(byte));
    }
    return from;
}

Machine::ConfigId Machine::find_step(ConfigId from, std::uint8_t byte) {
    ++search_;
    Arrivals arrivals;
    for (const Move& move : configs_[from].moves) {
        if (byte >= move.first && byte <= move.last) arrive(move.to, arrivals);
    }
    const ConfigId to = config_of(std::move(arrivals));
    next_[std::size_t{from} * rules_.classes + rules_.class_of[byte]] = to;
    return to;
}

Machine::ConfigId Machine::config_of(Arrivals arrivals) {
    if (arrivals.stacks.empty() && !arrivals.accepts && !arrivals.escapes) return kDead;
    if (arrivals.stacks.size() > kMostStacks) arrivals.stacks.resize(kMostStacks);
    std::ranges::sort(arrivals.stacks);
    std::size_t hash = (arrivals.accepts ? 1u : 0u) + (arrivals.escapes ? 2u : 0u);
    for (const NodeId id : arrivals.stacks) hash = mix(hash, id);
    const auto [first, last] = config_ids_.equal_range(hash);
    for (auto entry = first; entry != last; ++entry) {
        const Config& known = configs_[entry->second];
        if (known.hash == hash && known.stacks == arrivals.stacks) return entry->second;
    }
    Config config{.stacks = std::move(arrivals.stacks), .moves = {}, .accepts = arrivals.accepts, .escapes = arrivals.escapes,
                  .escapes_in_calls = false, .hash = hash};
    find_moves(config);
    size_ += rules_.classes + config.stacks.size() + 6 * config.moves.size() + 32;
    work_ += 10;
    const auto id = static_cast<ConfigId>(configs_.size());
    configs_.push_back(std::move(config));
    config_ids_.emplace(hash, id);
    next_.insert(next_.end(), rules_.classes, kNone);
    return id;
}

// What can be read from the stacks: through the rules that they call, and those that these call.
void Machine::find_moves(Config& config) {
    ++search_;
    Arrivals reached{.stacks = config.stacks, .accepts = config.accepts, .escapes = false};
    for (const NodeId id : reached.stacks) seen_[id] = search_;
    const auto enter = [&](RuleId id, NodeId below) {
        const Rule& rule = rules_.rules[id];
        arrive({rule.repeats() ? Frame{id | Frame::kRepeat, 0} : Frame{rule.start, 0}, below}, reached);
    };
    for (std::size_t i = 0; i < reached.stacks.size(); ++i) {
        const Node node = nodes_[reached.stacks[i]];
        if ((node.frame.place & Frame::kRepeat) != 0) {
            const Rule& rule = rules_.rules[node.frame.place & ~Frame::kRepeat];
            // Without an end only the least number matters.
            const std::uint32_t count = rule.max == kNone ? std::min(node.frame.count + 1, rule.min) : node.frame.count + 1;
            enter(rule.body, intern({{node.frame.place, count}, node.below}));
            continue;
        }
        for (const ByteEdge& edge : rules_.bytes_from(node.frame.place)) {
            config.moves.push_back({edge.first, edge.last, {{edge.target, 0}, node.below}});
        }
        for (const CallEdge& edge : rules_.calls_from(node.frame.place)) {
            const Node target{{edge.target, 0}, node.below};
            if (edge.rule == kNone) {
                arrive(target, reached);
            } else {
                // Nothing comes behind the last call of a rule: the stack need not grow.
                const bool last = rules_.accepts[edge.target] != 0 && rules_.is_last(edge.target);
                enter(edge.rule, last ? node.below : intern(target));
            }
        }
    }
    config.accepts = reached.accepts;
    config.escapes_in_calls = reached.escapes;
    config.escapes = config.escapes || reached.escapes;
}

std::vector<Frame> Machine::tops(ConfigId config) const {
    std::vector<Frame> frames;
    for (const NodeId id : configs_[config].stacks) {
        if (std::ranges::find(frames, nodes_[id].frame) == frames.end()) frames.push_back(nodes_[id].frame);
    }
    return frames;
}

std::string Machine::shortest_ending(ConfigId config) const {
    if (configs_[config].accepts) return {};
    const auto bodies_left = [&](Frame frame) {
        const Rule& rule = rules_.rules[frame.place & ~Frame::kRepeat];
        return frame.count < rule.min ? rule.min - frame.count : 0;
    };
    const auto cost_of = [&](Frame frame) -> std::uint64_t {
        if ((frame.place & Frame::kRepeat) == 0) return rules_.state_cost[frame.place];
        const std::uint32_t left = bodies_left(frame);
        return left == 0 ? 0 : std::uint64_t{left} * rules_.rule_cost[rules_.rules[frame.place & ~Frame::kRepeat].body];
    };
    NodeId best = kBottom;
    std::uint64_t best_cost = ~std::uint64_t{0};
    for (const NodeId id : configs_[config].stacks) {
        std::uint64_t cost = 0;
        for (NodeId at = id; at > kUnknown; at = nodes_[at].below) cost += cost_of(nodes_[at].frame);
        if (cost < best_cost) {
            best = id;
            best_cost = cost;
        }
    }
    std::string out;
    for (NodeId at = best; at > kUnknown; at = nodes_[at].below) {
        const Frame frame = nodes_[at].frame;
        if ((frame.place & Frame::kRepeat) == 0) {
            append_shortest(rules_, frame.place, out);
        } else {
            const RuleId body = rules_.rules[frame.place & ~Frame::kRepeat].body;
            for (std::uint32_t left = bodies_left(frame); left > 0; --left) append_shortest_rule(rules_, body, out);
        }
    }
    return out;
}

std::vector<Machine::ConfigId> Machine::split(ConfigId config) {
    std::vector<ConfigId> single;
    for (const NodeId id : std::vector<NodeId>(configs_[config].stacks)) single.push_back(config_of({.stacks = {id}}));
    return single;
}

void Machine::forget_all_but(std::span<ConfigId> kept) {
    // The nodes of their stacks, those below first: a node is always made after the one below it.
    std::vector<NodeId> wanted;
    std::vector<std::uint8_t> is_wanted(nodes_.size(), 0);
    std::vector<Arrivals> stacks;
    for (const ConfigId config : kept) {
        const Config& old = configs_[config];
        stacks.push_back({.stacks = old.stacks, .accepts = old.accepts, .escapes = old.escapes});
        for (const NodeId id : old.stacks) {
            for (NodeId at = id; at > kUnknown && is_wanted[at] == 0; at = nodes_[at].below) {
                is_wanted[at] = 1;
                wanted.push_back(at);
            }
        }
    }
    std::ranges::sort(wanted);
    const std::vector<Node> old_nodes = std::move(nodes_);
    clear();
    std::unordered_map<NodeId, NodeId> now{{kBottom, kBottom}, {kUnknown, kUnknown}};
    for (const NodeId old : wanted) now[old] = intern({old_nodes[old].frame, now[old_nodes[old].below]});
    for (std::size_t i = 0; i < kept.size(); ++i) {
        for (NodeId& id : stacks[i].stacks) id = now[id];
        kept[i] = config_of(std::move(stacks[i]));
    }
}

}  // namespace headroom::text
