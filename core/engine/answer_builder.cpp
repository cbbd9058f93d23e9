#include "core/engine/answer_builder.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace headroom::engine {
namespace {

// No penalty, no bias, no grammar changes the logits first.
bool takes_the_likeliest(const GenerateRequest& request) {
    const SamplingOptions& options = request.sampling;
    return options.temperature == 0 && options.repeat_penalty == 1 && options.presence_penalty == 0 && options.frequency_penalty == 0 &&
           options.logit_bias.empty() && !request.grammar && !request.likeliest;
}

}  // namespace

Result<> check_tokens(const Model& model, std::span<const TokenId> ids) {
    if (ids.empty()) return fail(ErrorKind::invalid_argument, "The prompt is empty: there is nothing to answer");
    for (const TokenId id : ids) {
        if (id < 0 || id >= model.info().vocabulary) {
            return fail(ErrorKind::invalid_argument, "The token id {} is outside the model's vocabulary of {} tokens", id,
                        model.info().vocabulary);
        }
    }
    if (ids.size() > static_cast<std::size_t>(model.info().context)) {
        return fail(ErrorKind::context_full, "The prompt has {} tokens, the context holds {}: shorten it, or set a larger context", ids.size(),
                    model.info().context);
    }
    return {};
}

Result<> check(const Model& model, const GenerateRequest& request) {
    HR_CHECK(check(request.sampling));
    for (const auto& [id, bias] : request.sampling.logit_bias) HR_CHECK(check_tokens(model, std::span(&id, 1)));
    if (request.grammar && request.ignore_end) {
        return fail(ErrorKind::invalid_argument, "An answer that is held to a grammar ends where the grammar ends: end tokens cannot be ignored");
    }
    if (request.grammar && !text::Constraint(request.grammar).accept_text(request.begun)) {
        return fail(ErrorKind::invalid_argument, "The beginning of the answer does not fit what it is held to: no answer goes on from there");
    }
    return check_tokens(model, request.prompt);
}

AnswerBuilder::AnswerBuilder(const Model& model, GenerateRequest request)
    : model_(model),
      request_(std::move(request)),
      sampler_(request_.sampling),
      plain_greedy_(takes_the_likeliest(request_)),
      prompt_size_(request_.prompt.size()),
      history_(std::move(request_.prompt)),
      matcher_(request_.stops) {
    const std::size_t room = static_cast<std::size_t>(model.info().context) - prompt_size_;
    most_ = request_.max_tokens < 0 ? room : std::min(room, static_cast<std::size_t>(request_.max_tokens));
    if (most_ == 0) ended_ = FinishReason::length;
    if (request_.grammar) {
        constraint_.emplace(request_.grammar);
        (void)constraint_->accept_text(request_.begun);  // it has been checked
        if (constraint_->finished()) ended_ = FinishReason::stop;
    }
    stats_.prompt_tokens = static_cast<int>(prompt_size_);
}

void AnswerBuilder::start_prompt(std::size_t reused) noexcept {
    prompt_start_ = Clock::now();
    stats_.reused_tokens = static_cast<int>(reused);
}

bool AnswerBuilder::choose(std::span<float> logits) {
    if (request_.likeliest) plain_logits_.assign(logits.begin(), logits.end());
    const auto give_up = [this](ErrorKind kind, std::string message) {
        error_ = Error{kind, std::move(message)};
        return false;
    };
    if (constraint_ && !constraint_->mask(logits)) {
        if (!constraint_->may_end()) {
            return give_up(ErrorKind::unsupported, "The vocabulary of this model cannot write what the answer's schema asks for next");
        }
        ended_ = FinishReason::stop;
        return false;
    }
    const TokenId id = sampler_.sample(logits, history_);
    if (constraint_ && !constraint_->accept(id)) {
        return give_up(ErrorKind::invalid_argument, "The logit bias rules out every token with which the answer could go on by its schema");
    }
    if (request_.likeliest && (request_.ignore_end || !model_.tokenizer().ends_generation(id))) new_choices_.push_back(describe(plain_logits_, id));
    (void)add(id);
    if (constraint_ && constraint_->finished()) ended_ = FinishReason::stop;  // also where the last token that was allowed has completed it
    return !ended_;
}

std::size_t AnswerBuilder::needed() const noexcept { return constraint_ || request_.likeliest ? 0 : sampler_.needed(history_); }

bool AnswerBuilder::choose(const model::Outlook& outlook) {
    return outlook.likeliest.empty() ? choose(outlook.logits) : add(sampler_.sample(outlook.likeliest, history_));
}

bool AnswerBuilder::add(TokenId id) {
    const auto now = Clock::now();
    if (tokens().empty()) {
        stats_.prompt_seconds = std::chrono::duration<double>(now - prompt_start_).count();
        answer_start_ = now;
    }
    history_.push_back(id);
    stats_.completion_tokens = static_cast<int>(tokens().size());
    stats_.completion_seconds = std::chrono::duration<double>(now - answer_start_).count();
    if (model_.tokenizer().ends_generation(id) && !request_.ignore_end) {
        ended_ = FinishReason::stop;
        return false;
    }
    const bool shown = request_.show_special || std::ranges::find(request_.shown, id) != request_.shown.end();
    push_text(utf8_.push(model_.tokenizer().piece(id, shown)));
    if (stopped_) ended_ = FinishReason::stop;
    if (!ended_ && tokens().size() == most_) ended_ = FinishReason::length;
    return !ended_;
}

void AnswerBuilder::push_text(const std::string& text) {
    const text::StopMatcher::Out out = matcher_.push(text);
    stopped_ = out.stopped;
    text_ += out.text;
    new_text_ += out.text;
}

GenerateResult AnswerBuilder::finish(FinishReason reason) {
    if (!stopped_) push_text(utf8_.finish());
    if (!stopped_) {
        const std::string rest = matcher_.finish();
        text_ += rest;
        new_text_ += rest;
    }
    if (tokens().empty()) stats_.prompt_seconds = std::chrono::duration<double>(Clock::now() - prompt_start_).count();
    return {.text = std::move(text_), .tokens = {tokens().begin(), tokens().end()}, .finish = reason, .stats = stats_};
}

TokenChoice AnswerBuilder::describe(std::span<const float> logits, TokenId id) const {
    std::vector<TokenId> best;
    const auto likelier = [&](TokenId a, TokenId b) {
        const float x = logits[static_cast<std::size_t>(a)], y = logits[static_cast<std::size_t>(b)];
        return x != y ? x > y : a < b;
    };
    const auto wanted = static_cast<std::size_t>(std::max(*request_.likeliest, 1));  // at least the likeliest: the sum is taken from it
    for (TokenId i = 0; i < static_cast<TokenId>(logits.size()); ++i) {
        if (std::isnan(logits[static_cast<std::size_t>(i)])) continue;
        if (best.size() == wanted && !likelier(i, best.back())) continue;
        if (best.size() == wanted) best.pop_back();
        best.insert(std::ranges::upper_bound(best, i, likelier), i);
    }
    const double largest = best.empty() ? 0 : static_cast<double>(logits[static_cast<std::size_t>(best.front())]);
    double sum = 0;
    for (const float logit : logits) {
        if (!std::isnan(logit)) sum += std::exp(static_cast<double>(logit) - largest);
    }
    const auto probability = [&](TokenId token) {
        const double logprob = static_cast<double>(logits[static_cast<std::size_t>(token)]) - largest - std::log(sum);
        // JSON has no infinity; this is as unlikely as nothing.
        return TokenProbability{.id = token, .bytes = model_.tokenizer().piece(token, true),
                                .logprob = std::isfinite(logprob) ? static_cast<float>(std::max(logprob, -9999.0)) : -9999.0F};
    };
    TokenChoice choice{.token = probability(id), .likeliest = {}};
    best.resize(std::min(best.size(), static_cast<std::size_t>(*request_.likeliest)));
    for (const TokenId token : best) choice.likeliest.push_back(probability(token));
    return choice;
}

}  // namespace headroom::engine
