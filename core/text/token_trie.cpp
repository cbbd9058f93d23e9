#include "core/text/token_trie.h"

#include <algorithm>
#include <string>

namespace headroom::text {

std::shared_ptr<const TokenTrie> TokenTrie::build(const Tokenizer& tokenizer) {
    const std::shared_ptr<TokenTrie> trie(new TokenTrie);
    constexpr char kMark = static_cast<char>(kControlMark);
    for (TokenId id = 0; id < tokenizer.size(); ++id) {
        trie->starts_.push_back(static_cast<std::uint32_t>(trie->texts_.size()));
        if (tokenizer.ends_generation(id)) {
            trie->ends_.push_back(id);
            continue;
        }
        std::string text;
        if (tokenizer.is_control(id)) {
            const std::string written = tokenizer.piece(id, true);
            if (!written.empty() && written.find(kMark) == std::string::npos) text = kMark + written + kMark;
        } else {
            text = tokenizer.piece(id, false);
            if (text.find(kMark) != std::string::npos) text.clear();
        }
        constexpr std::size_t kLongest = 1000;  // of a node's depth; no vocabulary has such tokens for text
        if (text.empty() || text.size() > kLongest) continue;
        trie->texts_.insert(trie->texts_.end(), text.begin(), text.end());
        trie->longest_ = std::max(trie->longest_, text.size());
        trie->tokens_.push_back(id);
    }
    trie->starts_.push_back(static_cast<std::uint32_t>(trie->texts_.size()));
    std::ranges::stable_sort(trie->tokens_, {}, [&](TokenId id) { return trie->bytes(id); });

    // Each token adds the nodes that it does not share with the one before it.
    std::vector<std::uint32_t> path;  // the nodes of that one's text
    std::string_view before;
    const auto close = [&](std::size_t depth) {
        for (; path.size() > depth; path.pop_back()) trie->nodes_[path.back()].end = static_cast<std::uint32_t>(trie->nodes_.size());
    };
    for (std::size_t i = 0; i < trie->tokens_.size(); ++i) {
        const std::string_view text = trie->bytes(trie->tokens_[i]);
        close(static_cast<std::size_t>(std::ranges::mismatch(before, text).in1 - before.begin()));
        while (path.size() < text.size()) {
            const char byte = text[path.size()];
            path.push_back(static_cast<std::uint32_t>(trie->nodes_.size()));
            trie->nodes_.push_back({.end = 0,
                                    .first_token = static_cast<std::uint32_t>(i),
                                    .depth = static_cast<std::uint16_t>(path.size()),
                                    .byte = static_cast<std::uint8_t>(byte)});
        }
        before = text;
    }
    close(0);
    return trie;
}

std::string_view TokenTrie::bytes(TokenId id) const noexcept {
    if (id < 0 || id >= vocabulary()) return {};
    const auto i = static_cast<std::size_t>(id);
    return {texts_.data() + starts_[i], starts_[i + 1] - starts_[i]};
}

}  // namespace headroom::text
