#pragma once

// One answer as it is made: chooses tokens from logits, turns them into text, notices where it ends. A session's generate() and the
// scheduler both make their answers with it, so that they say the same.

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/engine/engine.h"
#include "core/text/stream.h"

namespace headroom::engine {

// invalid_argument (sampling, an empty prompt, ids outside the vocabulary), context_full.
[[nodiscard]] Result<> check(const Model& model, const GenerateRequest& request);
[[nodiscard]] Result<> check_tokens(const Model& model, std::span<const TokenId> ids);

// Used from one thread at a time.
class AnswerBuilder {
public:
    // The model must outlive it; the request has been checked.
    AnswerBuilder(const Model& model, GenerateRequest request);

    // Prompt and answer so far.
    [[nodiscard]] std::span<const TokenId> history() const noexcept { return history_; }
    [[nodiscard]] std::size_t prompt_size() const noexcept { return prompt_size_; }
    [[nodiscard]] std::span<const TokenId> tokens() const noexcept { return std::span(history_).subspan(prompt_size_); }
    // How many more tokens the answer may have.
    [[nodiscard]] std::size_t room() const noexcept { return most_ - tokens().size(); }
    // Whether the likeliest token is always taken as it is, and nobody wants to know more about it: the device may choose.
    [[nodiscard]] bool is_plain_greedy() const noexcept { return plain_greedy_; }

    // Chooses the next token and adds it. logits: [vocabulary], changed in place. Returns whether the answer goes on.
    bool choose(std::span<float> logits);
    // How many of the likeliest tokens choose() can do with; 0: it needs all logits.
    [[nodiscard]] std::size_t needed() const noexcept;
    // outlook: at least the needed() likeliest tokens, or all logits.
    bool choose(const model::Outlook& outlook);
    // Adds a token that was chosen elsewhere (is_plain_greedy()). Returns whether the answer goes on.
    bool add(TokenId id);

    // Why the answer is over; nothing while it goes on.
    [[nodiscard]] std::optional<FinishReason> ended() const noexcept { return ended_; }
    // Why it cannot go on: the grammar and the vocabulary, or the logit bias, exclude each other.
    [[nodiscard]] const std::optional<Error>& error() const noexcept { return error_; }
    // Text that has come since the last call: valid UTF-8. Joined, with what finish() leaves to take, it is the answer.
    [[nodiscard]] std::string take_text() { return std::exchange(new_text_, {}); }
    // The choices since the last call, where the request asks for them.
    [[nodiscard]] std::vector<TokenChoice> take_choices() { return std::exchange(new_choices_, {}); }

    // The prompt is about to be read, so much of it was found in the session.
    void start_prompt(std::size_t reused) noexcept;
    // More of it was found while it was being read.
    void reuse(std::size_t tokens) noexcept { stats_.reused_tokens += static_cast<int>(tokens); }
    [[nodiscard]] const GenerateStats& stats() const noexcept { return stats_; }
    // No more tokens. What was held back can be taken. Called once.
    [[nodiscard]] GenerateResult finish(FinishReason reason);

private:
    void push_text(const std::string& text);
    TokenChoice describe(std::span<const float> logits, TokenId id) const;

    const Model& model_;
    GenerateRequest request_;
    Sampler sampler_;
    std::optional<text::Constraint> constraint_;
    bool plain_greedy_;
    std::size_t prompt_size_;
    std::size_t most_;
    std::vector<TokenId> history_;
    std::vector<float> plain_logits_;  // before penalties, where the choices' probabilities are wanted
    text::Utf8Stream utf8_;
    text::StopMatcher matcher_;
    bool stopped_ = false;             // by a stop sequence
    std::string text_;
    std::string new_text_;
    std::vector<TokenChoice> new_choices_;
    std::optional<FinishReason> ended_;
    std::optional<Error> error_;
    GenerateStats stats_;
    using Clock = std::chrono::steady_clock;
    Clock::time_point prompt_start_ = Clock::now();
    Clock::time_point answer_start_ = prompt_start_;
};

}  // namespace headroom::engine
