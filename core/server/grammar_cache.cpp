#include "core/server/grammar_cache.h"

#include <algorithm>
#include <utility>

namespace headroom::server {

Result<std::shared_ptr<const text::TokenGrammar>> GrammarCache::get(const std::shared_ptr<const text::TokenTrie>& trie, const std::string& key, Make make) {
    {
        const std::scoped_lock lock(mutex_);
        const auto found = std::ranges::find_if(entries_, [&](const Entry& entry) { return entry.trie == trie && entry.key == key; });
        if (found != entries_.end()) {
            std::rotate(entries_.begin(), found, found + 1);
            return entries_.front().grammar;
        }
    }
    HR_TRY(std::shared_ptr<const text::Grammar> grammar, make());
    if (!grammar) return nullptr;
    auto made = std::make_shared<const text::TokenGrammar>(std::move(grammar), trie);
    const std::scoped_lock lock(mutex_);
    entries_.push_front({.trie = trie, .key = key, .grammar = made});
    if (entries_.size() > kKept) entries_.pop_back();
    return made;
}

}  // namespace headroom::server
