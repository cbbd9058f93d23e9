#pragma once

// The syntax of a regular expression as a tree.

#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/text/grammar/dfa.h"

namespace headroom::text {

struct RegexNode {
    enum class Kind : std::uint8_t { characters, sequence, choice, repeat, begin, end } kind = Kind::sequence;
    std::vector<CodeRange> ranges{};     // characters: any one of these
    std::vector<RegexNode> children{};   // of sequence and choice; the one of repeat
    std::uint32_t min = 0;
    std::uint32_t max = kWithoutEnd;
    static constexpr std::uint32_t kWithoutEnd = std::numeric_limits<std::uint32_t>::max();
};

// Errors as compile_pattern's.
[[nodiscard]] Result<RegexNode> parse_regex(std::string_view pattern);

}  // namespace headroom::text
