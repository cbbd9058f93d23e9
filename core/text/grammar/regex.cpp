#include "core/text/grammar/regex.h"

#include <optional>
#include <span>
#include <utility>

#include "core/base/quote.h"
#include "core/text/grammar/regex_parser.h"

namespace headroom::text {
namespace {

using Kind = RegexNode::Kind;

constexpr std::size_t kMostParts = 100'000;  // states before they are made deterministic

// Appends a tree to an automaton.
class Writer {
public:
    explicit Writer(Nfa& nfa) : nfa_(nfa) {}

    // Returns the state behind it. None: an anchor inside, or too large (see too_large()).
    std::optional<Nfa::StateId> write(const RegexNode& node, Nfa::StateId from) {
        if (too_large()) return std::nullopt;
        switch (node.kind) {
            case Kind::characters: {
                const Nfa::StateId to = nfa_.state();
                nfa_.characters(from, node.ranges, to);
                return to;
            }
            case Kind::sequence: return write_all(node.children, from);
            case Kind::choice: {
                const Nfa::StateId to = nfa_.state();
                for (const RegexNode& child : node.children) {
                    const auto end = write(child, from);
                    if (!end) return std::nullopt;
                    nfa_.jump(*end, to);
                }
                return to;
            }
            case Kind::repeat: return write_repeat(node, from);
            case Kind::begin:
            case Kind::end: break;
        }
        return std::nullopt;
    }

    std::optional<Nfa::StateId> write_all(std::span<const RegexNode> nodes, Nfa::StateId from) {
        std::optional<Nfa::StateId> at = from;
        for (const RegexNode& node : nodes) {
            at = write(node, *at);
            if (!at) break;
        }
        return at;
    }

    [[nodiscard]] bool too_large() const noexcept { return nfa_.size() > kMostParts; }

private:
    std::optional<Nfa::StateId> write_repeat(const RegexNode& node, Nfa::StateId from) {
        const RegexNode& body = node.children.front();
        // A state of its own: a loop must not lead into what stands before.
        Nfa::StateId at = nfa_.state();
        nfa_.jump(from, at);
        const auto once = [&]() {
            const auto end = write(body, at);
            if (!end) return false;
            at = *end;
            return true;
        };
        for (std::uint32_t i = 0; i < node.min; ++i) {
            if (!once()) return std::nullopt;
        }
        const Nfa::StateId end = nfa_.state();
        if (node.max == RegexNode::kWithoutEnd) {
            const Nfa::StateId loop = nfa_.state();
            nfa_.jump(at, loop);
            at = loop;
            if (!once()) return std::nullopt;
            nfa_.jump(at, loop);
            nfa_.jump(loop, end);
            return end;
        }
        for (std::uint32_t i = node.min; i < node.max; ++i) {
            nfa_.jump(at, end);
            if (!once()) return std::nullopt;
        }
        nfa_.jump(at, end);
        return end;
    }

    Nfa& nfa_;
};

}  // namespace

Result<Dfa> compile_pattern(std::string_view pattern, std::size_t most_states) {
    HR_TRY(const RegexNode tree, parse_regex(pattern));
    Nfa nfa;
    Writer writer(nfa);
    const auto any = std::span(&kAnyCharacter, 1);
    // What stands before and behind where the pattern is not bound to the ends.
    const Nfa::StateId before = nfa.state(), bound_end = nfa.state(), behind = nfa.state();
    nfa.jump(0, before);
    nfa.characters(before, any, before);
    nfa.characters(behind, any, behind);
    nfa.accept(bound_end);
    nfa.accept(behind);
    nfa.accept_all(behind);
    for (const RegexNode& branch : tree.children) {
        std::span<const RegexNode> nodes = branch.children;
        bool begins = false, ends = false;
        for (; !nodes.empty() && nodes.front().kind == Kind::begin; nodes = nodes.subspan(1)) begins = true;
        for (; !nodes.empty() && nodes.back().kind == Kind::end; nodes = nodes.first(nodes.size() - 1)) ends = true;
        const auto end = writer.write_all(nodes, begins ? 0 : before);
        if (!end && !writer.too_large()) {
            return fail(ErrorKind::unsupported, "the pattern {} has ^ or $ other than at the ends of its outermost alternatives, which is not supported",
                        quote(pattern));
        }
        if (end) nfa.jump(*end, ends ? bound_end : behind);
    }
    auto dfa = writer.too_large() ? std::nullopt : nfa.determinize(most_states);
    if (!dfa) {
        return fail(ErrorKind::invalid_argument, "the pattern {} needs more than {} states: make it simpler or its repetitions shorter", quote(pattern),
                    most_states);
    }
    return *std::move(dfa);
}

}  // namespace headroom::text
