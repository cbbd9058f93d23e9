#pragma once

// Holds a generation to a grammar: which tokens may follow, and what is so far.

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/text/grammar.h"
#include "core/text/token_trie.h"

namespace headroom::text {

// A grammar over a vocabulary, with what has been found out about them. Shared by all generations with this grammar, also from
// several threads at once. Worth keeping for requests with the same schema: the first masks take longer than the later ones.
class TokenGrammar {
public:
    TokenGrammar(std::shared_ptr<const Grammar> grammar, std::shared_ptr<const TokenTrie> trie);
    ~TokenGrammar();
    TokenGrammar(const TokenGrammar&) = delete;
    TokenGrammar& operator=(const TokenGrammar&) = delete;

private:
    friend class Constraint;
    struct State;
    std::unique_ptr<State> state_;
};

// One generation. Used from one thread at a time. For each token: mask() on its logits, sample, accept(); over when finished().
class Constraint {
public:
    explicit Constraint(std::shared_ptr<const TokenGrammar> grammar);
    ~Constraint();
    Constraint(Constraint&&) noexcept;
    Constraint& operator=(Constraint&&) noexcept;

    // Sets the logits of all tokens that may not follow to -infinity. logits: [vocabulary or more; what is beyond is never]. An end
    // token may follow where may_end(). Returns whether any token is left: none is where the vocabulary cannot write what must
    // come, and at the end with a vocabulary that has no end token.
    [[nodiscard]] bool mask(std::span<float> logits);
    // The token that was drawn. False, and nothing changes, if it may not follow. An end token is accepted where may_end().
    [[nodiscard]] bool accept(TokenId id);
    // Text that stands at the answer's beginning already. False, and nothing changes, if no text of the grammar goes on from there.
    [[nodiscard]] bool accept_text(std::string_view text);
    // Whether the answer is complete as it is.
    [[nodiscard]] bool may_end() const;
    // Complete, and nothing but an end token may follow: no further step is needed.
    [[nodiscard]] bool finished() const;
    // The shortest bytes that complete the answer, empty where may_end().
    [[nodiscard]] std::string shortest_ending() const;

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace headroom::text
