#pragma once

// Answers under way: one or several to the same prompt, pulled from the scheduler in parts.

#include <chrono>
#include <memory>
#include <vector>

#include "core/engine/model_host.h"
#include "core/server/call.h"
#include "core/text/answer_parser.h"

namespace headroom::server {

// What is new of one of the answers.
struct AnswerNews {
    std::size_t index = 0;
    text::AnswerPart part;
    std::vector<engine::TokenChoice> choices;
    bool ended = false;                      // then finish, stats and error are set
    engine::FinishReason finish = engine::FinishReason::stop;
    bool has_calls = false;
    std::optional<ApiError> error{};
    [[nodiscard]] bool empty() const {
        return !ended && part.reasoning.empty() && part.content.empty() && part.calls.empty() && choices.empty();
    }
};

struct AnswerUsage {
    int prompt_tokens = 0;
    int cached_tokens = 0;
    int completion_tokens = 0;
    double prompt_seconds = 0;
    double completion_seconds = 0;
};

// Holds the model while it lives. Whoever lets go of it cancels what has not ended.
class Answers {
public:
    // count requests that differ in their seeds only. parser: how text is split into parts; none: all of it is content. Errors: those of
    // Scheduler::submit.
    [[nodiscard]] static ApiResult<std::shared_ptr<Answers>> start(Call& call, engine::ModelInUse use, engine::GenerateRequest request, int count,
                                                                   const std::optional<std::pair<text::AnswerFormat, text::AnswerParserOptions>>& parser);
    Answers(engine::ModelInUse use, std::shared_ptr<LoggedRequest> logged) : use_(std::move(use)), logged_(std::move(logged)) {}
    ~Answers();
    Answers(const Answers&) = delete;
    Answers& operator=(const Answers&) = delete;

    // Waits for what is new of any, at most `timeout`: then it is empty. Not to be called when all have ended.
    [[nodiscard]] AnswerNews next(std::chrono::milliseconds timeout);
    [[nodiscard]] bool all_ended() const noexcept { return left_ == 0; }
    [[nodiscard]] std::size_t size() const noexcept { return choices_.size(); }
    // Of all of them together; the prompt counts once.
    [[nodiscard]] AnswerUsage usage() const;
    [[nodiscard]] engine::ModelInUse& use() noexcept { return use_; }
    [[nodiscard]] LoggedRequest& logged() noexcept { return *logged_; }

    // Runs next() until the end: on_news for everything, on_quiet after each `quiet` without any. False: nobody wants it any more, or on_news
    // said so.
    template <class OnNews, class OnQuiet>
    bool run(Client& client, std::chrono::milliseconds quiet, OnNews on_news, OnQuiet on_quiet) {
        auto last = std::chrono::steady_clock::now();
        while (!all_ended()) {
            AnswerNews news = next(kGlance);
            const auto now = std::chrono::steady_clock::now();
            if (!news.empty()) {
                last = now;
                if (!on_news(news) || (news.ended && !news.error && news.finish == engine::FinishReason::cancelled)) return false;
            } else if (now - last >= quiet) {
                last = now;
                if (!on_quiet()) return false;
            }
            if (now - looked_ >= kGlance) {
                looked_ = now;
                if (client.gone() || logged_->is_cancelled()) return false;
            }
        }
        return true;
    }

private:
    static constexpr std::chrono::milliseconds kGlance{30};  // how soon a client that left is noticed
    struct Choice {
        std::shared_ptr<engine::Generation> generation;
        std::optional<text::AnswerParser> parser;
        bool ended = false;
    };
    engine::ModelInUse use_;
    std::shared_ptr<LoggedRequest> logged_;
    std::vector<Choice> choices_;
    std::size_t left_ = 0;
    std::size_t turn_ = 0;
    std::chrono::steady_clock::time_point looked_ = std::chrono::steady_clock::now();
};

}  // namespace headroom::server
