#pragma once

// Runs a grammar over bytes.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/text/grammar/rules.h"

namespace headroom::text {

// Where a rule goes on: a state, or a repeating rule of which `count` bodies are done.
struct Frame {
    static constexpr std::uint32_t kRepeat = 0x8000'0000u;
    std::uint32_t place = 0;  // a state, or a rule with kRepeat
    std::uint32_t count = 0;
    bool operator==(const Frame&) const = default;
};

// All ways in which the bytes so far can be the beginning of a text are a set of stacks of frames, a configuration. Stacks share what they
// have in common; each configuration is made once and remembers where each byte leads, so that walking is a look into a table.
// Not for several threads at once.
class Machine {
public:
    using ConfigId = std::uint32_t;
    static constexpr ConfigId kDead = 0;  // no way

    explicit Machine(const Grammar::Rules& rules);

    [[nodiscard]] ConfigId start();
    // One frame on a stack of which nothing is known: escapes() tells where it would be left.
    [[nodiscard]] ConfigId start_at(Frame frame);
    [[nodiscard]] ConfigId step(ConfigId from, std::uint8_t byte) {
        const std::uint32_t known = next_[std::size_t{from} * rules_.classes + rules_.class_of[byte]];
        return known != kNone ? known : find_step(from, byte);
    }
    [[nodiscard]] ConfigId walk(ConfigId from, std::string_view bytes);

    [[nodiscard]] bool accepts(ConfigId config) const noexcept { return configs_[config].accepts; }  // the whole text is complete
    [[nodiscard]] bool escapes(ConfigId config) const noexcept { return configs_[config].escapes; }
    // The unknown is reached through a call of a rule that made nothing: what lies below is not among the stacks by itself.
    [[nodiscard]] bool escapes_in_calls(ConfigId config) const noexcept { return configs_[config].escapes_in_calls; }
    [[nodiscard]] bool goes_on(ConfigId config) const noexcept { return !configs_[config].moves.empty(); }
    // The frames on top of the stacks, each once.
    [[nodiscard]] std::vector<Frame> tops(ConfigId config) const;
    // Each stack as a configuration of its own.
    [[nodiscard]] std::vector<ConfigId> split(ConfigId config);
    // The shortest bytes to the end of the whole text.
    [[nodiscard]] std::string shortest_ending(ConfigId config) const;

    // More is remembered than is worth it: forget everything but these configurations, whose ids are changed to their new ones.
    [[nodiscard]] bool is_large() const noexcept { return size_ + 8 * nodes_.size() > kLarge; }
    void forget_all_but(std::span<ConfigId> kept);
    // Grows with the time that was spent on steps that were not known, a few per microsecond.
    [[nodiscard]] std::size_t work() const noexcept { return work_; }

private:
    using NodeId = std::uint32_t;
    static constexpr NodeId kBottom = 0, kUnknown = 1;  // below the whole text's rule; below a frame of start_at
    static constexpr std::size_t kLarge = 4'000'000;
    // More stacks than this are not followed. Each can be completed by itself: fewer texts are possible, never wrong ones.
    static constexpr std::size_t kMostStacks = 2048;
    static constexpr std::size_t kMostVisits = 20'000;

    struct Node {
        Frame frame;
        NodeId below = 0;
        bool operator==(const Node&) const = default;
    };
    struct NodeHash {
        std::size_t operator()(const Node& node) const noexcept;
    };
    struct Move {
        std::uint8_t first = 0, last = 0;
        Node to;
    };
    struct Config {
        std::vector<NodeId> stacks;  // ascending
        std::vector<Move> moves;
        bool accepts = false, escapes = false, escapes_in_calls = false;
        std::size_t hash = 0;  // of the stacks, and of the two as they were before any rule was called
    };
    struct Arrivals {
        std::vector<NodeId> stacks;
        bool accepts = false, escapes = false;
    };

    void clear();
    NodeId intern(const Node& node);
    void arrive(Node node, Arrivals& out);
    ConfigId find_step(ConfigId from, std::uint8_t byte);
    ConfigId config_of(Arrivals arrivals);
    void find_moves(Config& config);

    const Grammar::Rules& rules_;
    std::vector<Node> nodes_;
    std::unordered_map<Node, NodeId, NodeHash> node_ids_;
    std::vector<Config> configs_;
    std::unordered_multimap<std::size_t, ConfigId> config_ids_;  // by the hash of stacks and flags
    std::vector<ConfigId> next_;                                 // [configs][classes]; kNone: not known yet
    std::vector<std::uint32_t> seen_;                            // by node: the last search that met it
    std::uint32_t search_ = 0;
    std::size_t size_ = 0;  // of the configurations, in words
    std::size_t work_ = 0;
};

}  // namespace headroom::text
