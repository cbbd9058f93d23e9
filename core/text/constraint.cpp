#include "core/text/constraint.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/text/grammar/machine.h"
#include "core/text/grammar/rules.h"

namespace headroom::text {
namespace {

using ConfigId = Machine::ConfigId;

// Which tokens may follow, one bit each.
class TokenSet {
public:
    explicit TokenSet(int vocabulary) : words_((static_cast<std::size_t>(vocabulary) + 63) / 64) {}
    void add(TokenId id) noexcept { words_[static_cast<std::size_t>(id) / 64] |= std::uint64_t{1} << (static_cast<std::size_t>(id) % 64); }
    void add(const TokenSet& other) noexcept {
        for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
    }
    [[nodiscard]] std::span<const std::uint64_t> words() const noexcept { return words_; }

private:
    std::vector<std::uint64_t> words_;
};

// What is known of the tokens that may follow a frame whatever lies below it on the stack.
struct LocalMask {
    explicit LocalMask(int vocabulary) : allowed(vocabulary) {}
    TokenSet allowed;
    // Nodes of the trie at whose end the frame's rule may be over: what follows them depends on what lies below.
    std::vector<std::uint32_t> leaves;
    bool leaves_at_once = false;  // before any byte: everything depends on it
};

// A walk through the trie ends with what it has found where it has cost this much: only grammars made to take long come here.
constexpr std::size_t kMostWork = 3'000'000;

// Steps through the nodes first..end, which continue the text that led to `from`. visit(node, config) returns whether to go on below the node.
// `kept` stays a configuration of the machine, under another id maybe.
template <class Visit>
void walk_trie(Machine& machine, ConfigId& kept, ConfigId from, const TokenTrie& trie, std::size_t first, std::size_t end, const bool& found,
               Visit visit) {
    const auto nodes = trie.nodes();
    if (first == end) return;
    const std::size_t above = nodes[first].depth - std::size_t{1};
    std::vector<ConfigId> path{kept, from};
    const std::size_t begun = machine.work();
    for (std::size_t i = first; i < end;) {
        const TokenTrie::Node& node = nodes[i];
        path.resize(node.depth - above + 1);
        const ConfigId config = machine.step(path.back(), node.byte);
        if (config == Machine::kDead || !visit(i, config)) {
            i = node.end;
        } else {
            path.push_back(config);
            ++i;
        }
        if (machine.work() - begun > kMostWork && found) break;
        if (machine.is_large()) machine.forget_all_but(path);
    }
    kept = path.front();
}

}  // namespace

struct TokenGrammar::State {
    State(std::shared_ptr<const Grammar> of, std::shared_ptr<const TokenTrie> over)
        : grammar(std::move(of)), trie(std::move(over)), machine(grammar->rules()) {}

    std::shared_ptr<const LocalMask> mask_at(Frame frame) {
        frame = clip(frame);
        const std::uint64_t key = (std::uint64_t{frame.place} << 32) | frame.count;
        const std::scoped_lock lock(mutex);
        if (const auto known = masks.find(key); known != masks.end()) return known->second;
        auto mask = std::make_shared<LocalMask>(trie->vocabulary());
        const ConfigId start = machine.start_at(frame);
        mask->leaves_at_once = machine.escapes_in_calls(start);
        std::size_t covered = 0;  // up to this node all lies below a node of `leaves`
        bool found = false;
        if (!mask->leaves_at_once) {
            ConfigId none = Machine::kDead;
            walk_trie(machine, none, start, *trie, 0, trie->nodes().size(), found, [&](std::size_t i, ConfigId config) {
                for (const TokenId id : trie->tokens(i)) {
                    mask->allowed.add(id);
                    found = true;
                }
                const std::size_t end = trie->nodes()[i].end;
                if (machine.escapes(config) && i >= covered && end > i + 1) {
                    mask->leaves.push_back(static_cast<std::uint32_t>(i));
                    covered = end;
                }
                return machine.goes_on(config);
            });
        }
        if (machine.is_large()) machine.forget_all_but({});
        constexpr std::size_t kMostBytes = 32u << 20;
        if (masks.size() * mask->allowed.words().size_bytes() > kMostBytes) masks.clear();
        masks.emplace(key, mask);
        return mask;
    }

    // No token is longer than the longest: how many more bodies than that are to come makes no difference.
    [[nodiscard]] Frame clip(Frame frame) const {
        if ((frame.place & Frame::kRepeat) == 0) return frame;
        const Rule& rule = grammar->rules().rules[frame.place & ~Frame::kRepeat];
        const std::uint64_t most = trie->longest() + 1;
        const std::uint64_t count = frame.count;
        // Far from both ends: any such place is like the first.
        if (count + most < rule.min) return {frame.place, 0};
        if (count >= rule.min && (rule.max == kNone || count + most < rule.max)) return {frame.place, rule.min};
        return frame;
    }

    std::shared_ptr<const Grammar> grammar;
    std::shared_ptr<const TokenTrie> trie;
    std::mutex mutex;
    Machine machine;
    std::unordered_map<std::uint64_t, std::shared_ptr<const LocalMask>> masks;
};

TokenGrammar::TokenGrammar(std::shared_ptr<const Grammar> grammar, std::shared_ptr<const TokenTrie> trie)
    : state_(std::make_unique<State>(std::move(grammar), std::move(trie))) {}
TokenGrammar::~TokenGrammar() = default;

struct Constraint::State {
    explicit State(std::shared_ptr<const TokenGrammar> of)
        : grammar(std::move(of)), shared(*grammar->state_), machine(shared.grammar->rules()), at(machine.start()) {}

    void add_allowed(TokenSet& allowed) {
        const TokenTrie& trie = *shared.trie;
        const auto nodes = trie.nodes();
        std::vector<std::uint32_t> leaves;
        bool whole = false;
        for (const Frame frame : machine.tops(at)) {
            const auto mask = shared.mask_at(frame);
            allowed.add(mask->allowed);
            leaves.insert(leaves.end(), mask->leaves.begin(), mask->leaves.end());
            whole = whole || mask->leaves_at_once;
        }
        bool found = std::ranges::any_of(allowed.words(), [](std::uint64_t word) { return word != 0; });
        const auto look = [&](std::string_view prefix, std::size_t first, std::size_t end) {
            walk_trie(machine, at, machine.walk(at, prefix), trie, first, end, found, [&](std::size_t i, ConfigId config) {
                for (const TokenId id : trie.tokens(i)) {
                    allowed.add(id);
                    found = true;
                }
                return machine.goes_on(config);
            });
        };
        if (whole) return look({}, 0, nodes.size());
        std::ranges::sort(leaves);
        std::size_t covered = 0;
        for (const std::uint32_t i : leaves) {
            if (i < covered) continue;
            covered = nodes[i].end;
            look(trie.text(i), i + std::size_t{1}, covered);
        }
    }

    // A token's bytes; kDead if they may not follow.
    ConfigId walk(std::string_view bytes) {
        ConfigId to = machine.walk(at, bytes);
        if (to != Machine::kDead || bytes.empty()) return to;
        // Of very many stacks not all are followed: those that the mask was made of are, each by itself.
        for (const ConfigId one : machine.split(at)) {
            to = machine.walk(one, bytes);
            if (to != Machine::kDead) break;
        }
        return to;
    }

    std::shared_ptr<const TokenGrammar> grammar;
    TokenGrammar::State& shared;
    Machine machine;
    ConfigId at;
    bool ended = false;  // by an end token
};

Constraint::Constraint(std::shared_ptr<const TokenGrammar> grammar) : state_(std::make_unique<State>(std::move(grammar))) {}
Constraint::~Constraint() = default;
Constraint::Constraint(Constraint&&) noexcept = default;
Constraint& Constraint::operator=(Constraint&&) noexcept = default;

bool Constraint::mask(std::span<float> logits) {
    constexpr float kNever = -std::numeric_limits<float>::infinity();
    const TokenTrie& trie = *state_->shared.trie;
    TokenSet allowed(trie.vocabulary());
    if (!state_->ended) state_->add_allowed(allowed);
    if (may_end()) {
        for (const TokenId id : trie.ends()) allowed.add(id);
    }
    bool any = false;
    std::size_t id = 0;
    for (const std::uint64_t word : allowed.words()) {
        const std::size_t end = std::min(id + 64, logits.size());
        any = any || word != 0;
        if (word == 0) {
            std::fill(logits.begin() + static_cast<std::ptrdiff_t>(id), logits.begin() + static_cast<std::ptrdiff_t>(end), kNever);
            id = end;
        } else if (word == ~std::uint64_t{0}) {
            id = end;
        } else {
            for (std::size_t bit = 0; id < end; ++id, ++bit) {
                if ((word >> bit & 1) == 0) logits[id] = kNever;
            }
        }
    }
    for (; id < logits.size(); ++id) logits[id] = kNever;
    return any;
}

bool Constraint::accept(TokenId id) {
    if (state_->ended) return false;
    const TokenTrie& trie = *state_->shared.trie;
    if (std::ranges::find(trie.ends(), id) != trie.ends().end()) {
        state_->ended = may_end();
        return state_->ended;
    }
    const std::string_view bytes = trie.bytes(id);
    return !bytes.empty() && accept_text(bytes);
}

bool Constraint::accept_text(std::string_view text) {
    const ConfigId to = state_->walk(text);
    if (to == Machine::kDead) return false;
    state_->at = to;
    if (state_->machine.is_large()) state_->machine.forget_all_but(std::span(&state_->at, 1));
    return true;
}

bool Constraint::may_end() const { return state_->ended || state_->machine.accepts(state_->at); }

bool Constraint::finished() const { return state_->ended || (may_end() && !state_->machine.goes_on(state_->at)); }

std::string Constraint::shortest_ending() const { return may_end() ? std::string() : state_->machine.shortest_ending(state_->at); }

}  // namespace headroom::text
