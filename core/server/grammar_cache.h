#pragma once

// Grammars over a vocabulary, kept for requests with the same schema: what was found out about their first masks is worth keeping.

#include <deque>
#include <memory>
#include <mutex>
#include <string>

#include "core/base/error.h"
#include "core/base/thread_pool.h"
#include "core/text/constraint.h"

namespace headroom::server {

// Any thread.
class GrammarCache {
public:
    // The grammar that `key` stands for with this vocabulary; made where it is not kept. Null where `make` gives null. Errors: make's.
    using Make = FunctionRef<Result<std::shared_ptr<const text::Grammar>>()>;
    [[nodiscard]] Result<std::shared_ptr<const text::TokenGrammar>> get(const std::shared_ptr<const text::TokenTrie>& trie, const std::string& key, Make make);

private:
    static constexpr std::size_t kKept = 16;
    struct Entry {
        std::shared_ptr<const text::TokenTrie> trie;
        std::string key;
        std::shared_ptr<const text::TokenGrammar> grammar;
    };
    std::mutex mutex_;
    std::deque<Entry> entries_;  // the last used first
};

}  // namespace headroom::server
