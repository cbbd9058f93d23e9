#include "core/server/answers.h"

#include <algorithm>
#include <utility>

namespace headroom::server {

ApiResult<std::shared_ptr<Answers>> Answers::start(Call& call, engine::ModelInUse use, engine::GenerateRequest request, int count,
                                                   const std::optional<std::pair<text::AnswerFormat, text::AnswerParserOptions>>& parser) {
    const auto answers = std::make_shared<Answers>(std::move(use), call.logged);
    for (int i = 0; i < count; ++i) {
        engine::GenerateRequest one = request;
        if (one.sampling.seed) *one.sampling.seed += static_cast<std::uint64_t>(i);
        auto generation = answers->use_.scheduler().submit(std::move(one));
        if (!generation) return std::unexpected(to_api_error(generation.error()));
        if (!*generation) {
            return std::unexpected(ApiError{.status = 429, .message = "Too many requests are waiting already: try again later", .type = "rate_limit_error",
                                            .code = "queue_full", .retry_after = 2});
        }
        call.logged->add(*generation);
        Choice& choice = answers->choices_.emplace_back(Choice{.generation = std::move(*generation), .parser = std::nullopt});
        if (parser) {
            text::AnswerParserOptions options = parser->second;
            options.id_seed += static_cast<std::uint64_t>(i);
            choice.parser.emplace(parser->first, std::move(options));
        }
        ++answers->left_;
    }
    return answers;
}

Answers::~Answers() {
    for (const Choice& choice : choices_) {
        if (!choice.ended) choice.generation->cancel();
    }
}

AnswerNews Answers::next(std::chrono::milliseconds timeout) {
    // With several each gets a glance in turn; one alone is waited for.
    const auto patience = left_ > 1 ? std::chrono::milliseconds(2) : timeout;
    const auto until = std::chrono::steady_clock::now() + timeout;
    for (;;) {
        do {
            turn_ = (turn_ + 1) % choices_.size();
        } while (choices_[turn_].ended);
        Choice& choice = choices_[turn_];
        engine::Generation::News raw = choice.generation->wait(patience);
        AnswerNews news{.index = turn_, .part = {}, .choices = std::move(raw.choices), .ended = raw.ended};
        if (choice.parser) {
            news.part = choice.parser->push(raw.text);
        } else {
            news.part.content = std::move(raw.text);
        }
        if (raw.ended) {
            choice.ended = true;
            --left_;
            if (choice.parser) {
                text::AnswerPart rest = choice.parser->finish();
                news.part.reasoning += rest.reasoning;
                news.part.content += rest.content;
                for (text::ToolCall& call : rest.calls) news.part.calls.push_back(std::move(call));
                news.has_calls = choice.parser->has_calls();
            }
            const auto& outcome = choice.generation->outcome();
            if (outcome) {
                news.finish = outcome->finish;
            } else {
                news.error = to_api_error(outcome.error());
            }
        }
        if (!news.empty() || std::chrono::steady_clock::now() >= until) return news;
    }
}

AnswerUsage Answers::usage() const {
    AnswerUsage usage;
    for (const Choice& choice : choices_) {
        const engine::GenerateStats stats = choice.generation->stats();
        usage.prompt_tokens = stats.prompt_tokens;
        usage.cached_tokens = std::max(usage.cached_tokens, stats.reused_tokens);
        usage.completion_tokens += stats.completion_tokens;
        usage.prompt_seconds = std::max(usage.prompt_seconds, stats.prompt_seconds);
        usage.completion_seconds = std::max(usage.completion_seconds, stats.completion_seconds);
    }
    return usage;
}

}  // namespace headroom::server
