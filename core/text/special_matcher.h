#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/text/tokenizer.h"

namespace headroom::text {

// Finds tokens that are written out in a text: at each place the longest.
class SpecialMatcher {
public:
    SpecialMatcher() = default;
    // Texts longer than kLongest and empty ones are left out: nobody writes them, and they would make matching slow.
    explicit SpecialMatcher(std::vector<std::pair<std::string, TokenId>> tokens);

    struct Match {
        std::size_t begin = 0;
        std::size_t length = 0;
        TokenId id = 0;
    };
    // The longest token that text has at `at`.
    [[nodiscard]] std::optional<Match> match_at(std::string_view text, std::size_t at) const noexcept;
    // The first match at or behind `from`.
    [[nodiscard]] std::optional<Match> find(std::string_view text, std::size_t from) const noexcept;
    [[nodiscard]] bool empty() const noexcept { return tokens_.empty(); }

    static constexpr std::size_t kLongest = 256;

private:
    std::vector<std::pair<std::string, TokenId>> tokens_;  // in the order of their bytes
    std::array<bool, 256> starts_{};                       // bytes a token begins with
};

}  // namespace headroom::text
