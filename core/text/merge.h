#pragma once

// Byte-pair encoding's inner loop, for both kinds of tokenizer: neighbours are joined, the best pair first, until none is left.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <queue>
#include <string_view>
#include <vector>

#include "core/text/tokenizer.h"

namespace headroom::text {

struct Symbol {
    std::uint32_t begin = 0;   // in the text, bytes
    std::uint32_t length = 0;  // 0: joined to the one on its left
    TokenId id = -1;           // -1: not in the vocabulary
    std::int32_t previous = -1;
    std::int32_t next = -1;
};

// What becomes of a pair. Lower keys go first; of equal ones the leftmost.
struct Merge {
    double key = 0;  // a rank, or a score turned round
    TokenId id = 0;
};

// symbols: in order, `previous` and `next` not yet set. lookup(left, right) -> std::optional<Merge>; it must depend on the two
// symbols only. Joins in place; what is left is the chain over `next` from symbols[0]. Time n log n: a heap of candidates, of which
// those that a join has made stale are recognised when they come up.
template <class Lookup>
void merge_symbols(std::vector<Symbol>& symbols, Lookup&& lookup) {
    struct Candidate {
        double key;
        std::int32_t left, right;
        std::uint32_t left_length, right_length;  // at the time: symbols only grow, so equal lengths mean nothing has changed
        TokenId id;
        bool operator<(const Candidate& other) const noexcept {  // std::priority_queue gives out the largest
            return key != other.key ? key > other.key : left > other.left;
        }
    };
    const auto count = static_cast<std::int32_t>(symbols.size());
    for (std::int32_t i = 0; i < count; ++i) {
        symbols[static_cast<std::size_t>(i)].previous = i - 1;
        symbols[static_cast<std::size_t>(i)].next = i + 1 < count ? i + 1 : -1;
    }
    std::vector<Candidate> storage;
    storage.reserve(symbols.size());
    std::priority_queue<Candidate> queue(std::less<Candidate>{}, std::move(storage));
    const auto consider = [&](std::int32_t left, std::int32_t right) {
        if (left < 0 || right < 0) return;
        const Symbol& a = symbols[static_cast<std::size_t>(left)];
        const Symbol& b = symbols[static_cast<std::size_t>(right)];
        if (const std::optional<Merge> merge = lookup(a, b)) queue.push({merge->key, left, right, a.length, b.length, merge->id});
    };
    for (std::int32_t i = 0; i + 1 < count; ++i) consider(i, i + 1);
    while (!queue.empty()) {
        const Candidate best = queue.top();
        queue.pop();
        Symbol& left = symbols[static_cast<std::size_t>(best.left)];
        Symbol& right = symbols[static_cast<std::size_t>(best.right)];
        if (left.length != best.left_length || right.length != best.right_length) continue;
        left.length += right.length;
        left.id = best.id;
        left.next = right.next;
        right.length = 0;
        if (right.next >= 0) symbols[static_cast<std::size_t>(right.next)].previous = best.left;
        consider(left.previous, best.left);
        consider(best.left, left.next);
    }
}

}  // namespace headroom::text
