#pragma once

// What shared/models/reference.json holds: logits and greedy ids of guide-f16.gguf, computed elsewhere in float32.

#include <cstdint>
#include <filesystem>
#include <vector>

namespace headroom::test {

struct GuidePrompt {
    struct Position {
        int position = 0;  // the logits behind tokens[0 … position]
        std::vector<std::int32_t> ids;  // the 16 largest, largest first
        std::vector<double> logits;
        double log_sum_exp = 0;
    };
    std::vector<std::int32_t> tokens;
    std::vector<Position> positions;
    std::vector<std::int32_t> greedy;  // 48 ids by arg max behind the tokens
    std::vector<double> margins;       // of each over the second best

    // The prompt with all greedy ids but the last: fed at once, the logits behind greedy_position(i) choose greedy[i].
    [[nodiscard]] std::vector<std::int32_t> fed() const;
    [[nodiscard]] int greedy_position(std::size_t i) const noexcept { return static_cast<int>(tokens.size() + i) - 1; }
    [[nodiscard]] std::vector<int> greedy_positions() const;
};

[[nodiscard]] std::vector<GuidePrompt> read_guide_reference(const std::filesystem::path& file);

// A step whose margin is smaller is a near tie that rounding may decide.
inline constexpr double kClearMargin = 0.05;

}  // namespace headroom::test
