#include "tests/model/guide_reference.h"

#include <fstream>

#include <nlohmann/json.hpp>

namespace headroom::test {

std::vector<std::int32_t> GuidePrompt::fed() const {
    std::vector<std::int32_t> all = tokens;
    all.insert(all.end(), greedy.begin(), greedy.end() - 1);
    return all;
}

std::vector<int> GuidePrompt::greedy_positions() const {
    std::vector<int> all;
    for (std::size_t i = 0; i < greedy.size(); ++i) all.push_back(greedy_position(i));
    return all;
}

std::vector<GuidePrompt> read_guide_reference(const std::filesystem::path& file) {
    std::ifstream in(file);
    const auto json = nlohmann::json::parse(in);
    std::vector<GuidePrompt> prompts;
    for (const auto& entry : json.at("logits")) {
        GuidePrompt prompt;
        prompt.tokens = entry.at("tokens").get<std::vector<std::int32_t>>();
        prompt.greedy = entry.at("greedy").get<std::vector<std::int32_t>>();
        prompt.margins = entry.at("greedy_margins").get<std::vector<double>>();
        for (const auto& position : entry.at("positions")) {
            prompt.positions.push_back({.position = position.at("pos"), .ids = position.at("top_ids").get<std::vector<std::int32_t>>(),
                                        .logits = position.at("top_logits").get<std::vector<double>>(),
                                        .log_sum_exp = position.at("logsumexp")});
        }
        prompts.push_back(std::move(prompt));
    }
    return prompts;
}

}  // namespace headroom::test
