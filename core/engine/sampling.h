#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "core/base/error.h"
#include "core/model/runner.h"
#include "core/text/tokenizer.h"

namespace headroom::engine {

using text::TokenId;

// The order of the steps: logit bias, repetition/presence/frequency penalties, temperature, top-k, top-p, min-p, draw.
struct SamplingOptions {
    float temperature = 0.7f;       // 0: greedy (arg max, lowest id on ties)
    int top_k = 40;                 // 0: off
    float top_p = 0.95f;            // 1: off
    float min_p = 0.0f;             // 0: off; relative to the most likely token
    float repeat_penalty = 1.0f;    // 1: off; logits of tokens seen are divided (positive) or multiplied (negative) by it
    float presence_penalty = 0.0f;  // subtracted once for a token seen
    float frequency_penalty = 0.0f; // subtracted for each time seen
    int penalty_window = 64;        // tokens looked back on for the three penalties (prompt included); -1: all
    std::map<TokenId, float> logit_bias{};  // added to logits; -100 and less: never
    std::optional<std::uint64_t> seed{};    // none: drawn at random
};

// invalid_argument naming the first option out of range.
[[nodiscard]] Result<> check(const SamplingOptions& options);

// Draws tokens. The same options, seed and logits give the same tokens on every system.
class Sampler {
public:
    explicit Sampler(const SamplingOptions& options);
    // logits: [vocabulary], changed in place. history: prompt and answer so far.
    [[nodiscard]] TokenId sample(std::span<float> logits, std::span<const TokenId> history);
    // How many of the likeliest tokens are enough for the same draw: top-k, and those that penalties and bias may move behind others. 0: all
    // logits are needed (without top-k, or where something makes tokens likelier).
    [[nodiscard]] std::size_t needed(std::span<const TokenId> history) const noexcept;
    // likeliest: at least needed(history) of them, as model::Outlook has them, or all.
    [[nodiscard]] TokenId sample(std::span<const model::Likely> likeliest, std::span<const TokenId> history);
    [[nodiscard]] std::uint64_t seed() const noexcept;  // the one in use

private:
    struct Candidate {
        TokenId id;
        float logit;
    };
    [[nodiscard]] bool penalizes() const noexcept;
    [[nodiscard]] std::span<const TokenId> penalized(std::span<const TokenId> history) const noexcept;
    [[nodiscard]] float penalize(float logit, std::ptrdiff_t times) const noexcept;
    // The candidates are all that can be drawn, and more perhaps: the likeliest of them are taken.
    [[nodiscard]] TokenId draw_from_few();
    // best: the likeliest candidate, with the logit `largest`. total: the sum of their probabilities, of which top-p is a share.
    [[nodiscard]] TokenId draw(TokenId best, float largest, double total);

    SamplingOptions options_;
    std::uint64_t seed_ = 0;
    std::uint64_t state_ = 0;  // of a counter-based generator written here: std::'s distributions differ between libraries
    std::vector<Candidate> candidates_;
    std::size_t sorted_ = 0;   // so many of them stand in order
    std::vector<TokenId> seen_;
};

}  // namespace headroom::engine
