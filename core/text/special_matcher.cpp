#include "core/text/special_matcher.h"

#include <algorithm>

namespace headroom::text {

SpecialMatcher::SpecialMatcher(std::vector<std::pair<std::string, TokenId>> tokens) : tokens_(std::move(tokens)) {
    std::erase_if(tokens_, [](const auto& token) { return token.first.empty() || token.first.size() > kLongest; });
    std::ranges::sort(tokens_);
    // Of several with one text the lowest id stays.
    const auto same = std::ranges::unique(tokens_, {}, [](const auto& token) -> const std::string& { return token.first; });
    tokens_.erase(same.begin(), same.end());
    for (const auto& [text, id] : tokens_) starts_[static_cast<unsigned char>(text[0])] = true;
}

std::optional<SpecialMatcher::Match> SpecialMatcher::match_at(std::string_view text, std::size_t at) const noexcept {
    if (at >= text.size() || !starts_[static_cast<unsigned char>(text[at])]) return std::nullopt;
    // [first, last): the tokens that agree with the text so far. Sorted, they stay together, the shortest first.
    auto first = tokens_.begin();
    auto last = tokens_.end();
    std::optional<Match> best;
    for (std::size_t depth = 0; first != last; ++depth) {
        if (first->first.size() == depth) {
            best = Match{at, depth, first->second};
            if (++first == last) break;
        }
        if (at + depth == text.size()) break;
        const auto byte = static_cast<unsigned char>(text[at + depth]);
        const auto at_depth = [&](const auto& token) { return static_cast<unsigned char>(token.first[depth]); };
        first = std::partition_point(first, last, [&](const auto& token) { return at_depth(token) < byte; });
        last = std::partition_point(first, last, [&](const auto& token) { return at_depth(token) == byte; });
    }
    return best;
}

std::optional<SpecialMatcher::Match> SpecialMatcher::find(std::string_view text, std::size_t from) const noexcept {
    if (tokens_.empty()) return std::nullopt;
    for (std::size_t at = from; at < text.size(); ++at)
        if (const auto match = match_at(text, at)) return match;
    return std::nullopt;
}

}  // namespace headroom::text
