#pragma once

// A vocabulary by the bytes that its tokens write: what a grammar is laid over.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/text/tokenizer.h"

namespace headroom::text {

// Stands before and behind the written text of a control token, so that "[TOOL_CALLS]" as one token and the same characters as running
// text are different to a grammar. The byte is in no UTF-8 text; tokens with it in their own bytes are left out.
inline constexpr unsigned char kControlMark = 0xFF;

// Built once for a model, immutable; safe from any thread. The tokens that end an answer are not in it, nor those without any text.
class TokenTrie {
public:
    // Takes some 0.2 s and 10 MB for 150,000 tokens.
    [[nodiscard]] static std::shared_ptr<const TokenTrie> build(const Tokenizer& tokenizer);

    // The nodes in the order of their texts, each before those that continue it; the root, which is the empty text, is none.
    struct Node {
        std::uint32_t end = 0;          // behind the last node that continues this one
        std::uint32_t first_token = 0;  // into tokens()
        std::uint16_t depth = 0;        // bytes of its text, at least 1
        std::uint8_t byte = 0;          // the last of them
    };
    [[nodiscard]] std::span<const Node> nodes() const noexcept { return nodes_; }
    // The ids whose text is exactly node i's.
    [[nodiscard]] std::span<const TokenId> tokens(std::size_t i) const noexcept {
        const std::size_t first = nodes_[i].first_token;
        const std::size_t last = i + 1 < nodes_.size() ? nodes_[i + 1].first_token : tokens_.size();
        return std::span(tokens_).subspan(first, last - first);
    }
    // The text of node i.
    [[nodiscard]] std::string_view text(std::size_t i) const noexcept { return bytes(tokens_[nodes_[i].first_token]).substr(0, nodes_[i].depth); }
    // What a token writes, with kControlMark around a control token; empty for those that are not in the trie.
    [[nodiscard]] std::string_view bytes(TokenId id) const noexcept;
    [[nodiscard]] int vocabulary() const noexcept { return static_cast<int>(starts_.size()) - 1; }
    [[nodiscard]] std::span<const TokenId> ends() const noexcept { return ends_; }  // after which an answer is over
    [[nodiscard]] std::size_t longest() const noexcept { return longest_; }         // bytes

private:
    TokenTrie() = default;

    std::vector<Node> nodes_;
    std::vector<TokenId> tokens_;     // in the nodes' order
    std::vector<char> texts_;         // one behind the other, by id
    std::vector<std::uint32_t> starts_;  // [vocabulary + 1]
    std::vector<TokenId> ends_;
    std::size_t longest_ = 0;
};

}  // namespace headroom::text
