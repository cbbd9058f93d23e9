#include <algorithm>
#include <chrono>
#include <new>
#include <optional>
#include <utility>

#include "core/engine/engine.h"
#include "core/engine/model_state.h"
#include "core/text/stream.h"

namespace headroom::engine {
namespace {

// Greedy decoding keeps its turn for so many tokens: long enough that the device is never idle in between, short enough for other sessions.
constexpr std::size_t kGreedySteps = 32;

// Whether the likeliest token is taken as it is: no penalty and no bias changes the logits first.
bool is_plain_greedy(const SamplingOptions& options) {
    return options.temperature == 0 && options.repeat_penalty == 1 && options.presence_penalty == 0 && options.frequency_penalty == 0 &&
           options.logit_bias.empty();
}

class Stopwatch {
public:
    [[nodiscard]] double seconds() const {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    }

private:
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// The text of an answer as its tokens come: whole characters, up to a stop sequence.
class AnswerText {
public:
    explicit AnswerText(const std::vector<std::string>& stops) : matcher_(stops) {}

    // Returns what is new. stopped() tells whether a stop sequence has ended the text.
    std::string push(std::string_view bytes) { return take(utf8_.push(bytes)); }
    // The end: what was held back.
    std::string finish() {
        if (stopped_) return {};
        std::string text = take(utf8_.finish());
        if (!stopped_) {
            const std::string rest = matcher_.finish();
            text += rest;
            all_ += rest;
        }
        return text;
    }
    [[nodiscard]] bool stopped() const noexcept { return stopped_; }
    [[nodiscard]] std::string take_all() noexcept { return std::move(all_); }

private:
    std::string take(const std::string& text) {
        text::StopMatcher::Out out = matcher_.push(text);
        stopped_ = out.stopped;
        all_ += out.text;
        return std::move(out.text);
    }

    text::Utf8Stream utf8_;
    text::StopMatcher matcher_;
    std::string all_;
    bool stopped_ = false;
};

std::unexpected<Error> no_memory() {
    return fail(ErrorKind::out_of_memory, "There is not enough memory to go on; close other programs or set a smaller context");
}

}  // namespace

std::string_view to_string(FinishReason reason) noexcept {
    switch (reason) {
        case FinishReason::stop: return "stop";
        case FinishReason::length: return "length";
        case FinishReason::cancelled: return "cancelled";
    }
    return "stop";
}

struct Session::State {
    State(std::shared_ptr<Model> of, std::unique_ptr<model::Sequence> empty) : model(std::move(of)), sequence(std::move(empty)) {}

    [[nodiscard]] std::size_t context() const noexcept { return static_cast<std::size_t>(model->info().context); }

    Result<> check_tokens(std::span<const TokenId> ids) const {
        if (ids.empty()) return fail(ErrorKind::invalid_argument, "The prompt is empty: there is nothing to answer");
        for (const TokenId id : ids) {
            if (id < 0 || id >= model->info().vocabulary) {
                return fail(ErrorKind::invalid_argument, "The token id {} is outside the model's vocabulary of {} tokens", id,
                            model->info().vocabulary);
            }
        }
        if (ids.size() > context()) {
            return fail(ErrorKind::context_full,
                        "The prompt has {} tokens, the context holds {}: shorten it, or set a larger context", ids.size(), context());
        }
        return {};
    }

    // Drops everything behind the first `count` tokens.
    void keep(std::size_t count) noexcept {
        tokens.resize(std::min(tokens.size(), count));
        sequence->truncate(static_cast<std::int64_t>(tokens.size()));
    }

    [[nodiscard]] std::size_t max_tokens() const noexcept { return static_cast<std::size_t>(model->state_->runner->max_tokens()); }

    // One step of at most max_tokens(), when the turn comes.
    Result<> step(std::span<const TokenId> ids, std::span<const std::int32_t> rows, model::Runner::LogitsSink sink,
                  const std::stop_token& stop) {
        tokens.reserve(tokens.size() + ids.size());
        const TurnLock::Turn turn(model->state_->turns, stop);
        if (!turn) return fail(ErrorKind::cancelled, "The computation was cancelled");
        if (auto read = model->state_->runner->run({.sequence = *sequence, .tokens = ids, .rows = rows}, sink, stop); !read) {
            sequence->truncate(static_cast<std::int64_t>(tokens.size()));  // what failed may have been the sink
            return read;
        }
        tokens.insert(tokens.end(), ids.begin(), ids.end());
        return {};
    }

    // Reads the ids; the logits behind the last one are in `logits` then.
    Result<> read(std::span<const TokenId> ids, const std::function<void(int done, int total)>& report, const std::stop_token& stop) {
        const auto total = static_cast<int>(ids.size());
        const std::size_t most = max_tokens();
        const auto keep_logits = [&](std::int32_t, std::span<float> row) { logits.assign(row.begin(), row.end()); };
        for (std::size_t begin = 0; begin < ids.size(); begin += most) {
            const auto part = ids.subspan(begin, std::min(most, ids.size() - begin));
            const auto last = static_cast<std::int32_t>(part.size() - 1);
            const bool wanted = begin + part.size() == ids.size();
            HR_CHECK(step(part, std::span(&last, wanted ? 1 : 0), keep_logits, stop));
            if (report) report(static_cast<int>(begin + part.size()), total);
        }
        return {};
    }

    // Goes on greedily from the last token of `history`, which has not been read, by at most `most` tokens.
    Result<> decode(const std::vector<TokenId>& history, std::size_t most, FunctionRef<bool(TokenId id)> add, const std::stop_token& stop) {
        tokens.reserve(tokens.size() + most);
        const TurnLock::Turn turn(model->state_->turns, stop);
        if (!turn) return fail(ErrorKind::cancelled, "The computation was cancelled");
        const std::size_t first = history.size() - 1;
        const auto before = static_cast<std::size_t>(sequence->length());
        auto done = model->state_->runner->decode_greedily(*sequence, history.back(), static_cast<std::int64_t>(most), add, stop);
        const auto read = static_cast<std::size_t>(sequence->length()) - before;
        tokens.insert(tokens.end(), history.begin() + static_cast<std::ptrdiff_t>(first), history.begin() + static_cast<std::ptrdiff_t>(first + read));
        return done;
    }

    Result<GenerateResult> generate(const GenerateRequest& request, const GenerateCallbacks& callbacks, const std::stop_token& stop);

    std::shared_ptr<Model> model;
    std::unique_ptr<model::Sequence> sequence;
    std::vector<TokenId> tokens;  // those in the sequence
    std::vector<float> logits;    // [vocabulary]
};

Session::Session(std::unique_ptr<State> state) : state_(std::move(state)) {}
Session::~Session() = default;

Result<std::unique_ptr<Session>> Session::create(std::shared_ptr<Model> model) try {
    HR_TRY(auto sequence, model->state_->runner->create_sequence());
    return std::unique_ptr<Session>(new Session(std::make_unique<State>(std::move(model), std::move(sequence))));
} catch (const std::bad_alloc&) {
    return no_memory();
}

std::span<const TokenId> Session::tokens() const noexcept { return state_->tokens; }
std::uint64_t Session::kv_bytes() const noexcept { return state_->sequence->allocated_bytes(); }
void Session::clear() noexcept { state_->keep(0); }

Result<GenerateResult> Session::generate(const GenerateRequest& request, const GenerateCallbacks& callbacks, std::stop_token stop) try {
    return state_->generate(request, callbacks, stop);
} catch (const std::bad_alloc&) {
    return no_memory();
}

Result<GenerateResult> Session::State::generate(const GenerateRequest& request, const GenerateCallbacks& callbacks,
                                                const std::stop_token& stop) {
    const text::Tokenizer& tokenizer = model->tokenizer();
    const std::vector<TokenId>& prompt = request.prompt;
    HR_CHECK(check(request.sampling));
    for (const auto& [id, bias] : request.sampling.logit_bias) HR_CHECK(check_tokens(std::span(&id, 1)));
    HR_CHECK(check_tokens(prompt));
    if (request.grammar && request.ignore_end) {
        return fail(ErrorKind::invalid_argument, "An answer that is held to a grammar ends where the grammar ends: end tokens cannot be ignored");
    }
    const std::size_t room = context() - prompt.size();
    const std::size_t most = request.max_tokens < 0 ? room : std::min(room, static_cast<std::size_t>(request.max_tokens));

    GenerateResult result;
    GenerateStats& stats = result.stats;
    AnswerText answer(request.stops);
    const auto show = [&](const std::string& text) {
        if (!text.empty() && callbacks.on_text) callbacks.on_text(text, stats);
    };
    const auto finish = [&](FinishReason reason) {
        result.finish = reason;
        show(answer.finish());
        result.text = answer.take_all();
        return std::move(result);
    };

    // What the session and the prompt have in common stays, but for one token, whose logits are needed.
    const auto common = std::ranges::mismatch(tokens, prompt).in2 - prompt.begin();
    const std::size_t reused = std::min(static_cast<std::size_t>(common), prompt.size() - 1);
    keep(reused);
    stats.prompt_tokens = static_cast<int>(prompt.size());
    stats.reused_tokens = static_cast<int>(reused);
    const Stopwatch prompt_time;
    const auto was_read = read(std::span(prompt).subspan(reused), callbacks.on_prompt, stop);
    stats.prompt_seconds = prompt_time.seconds();
    if (!was_read && was_read.error().kind == ErrorKind::cancelled) return finish(FinishReason::cancelled);
    HR_CHECK(was_read);

    Sampler sampler(request.sampling);
    std::optional<text::Constraint> constraint;
    if (request.grammar) constraint.emplace(request.grammar);
    std::vector<TokenId> history = prompt;
    const Stopwatch answer_time;
    std::optional<FinishReason> ended;
    // One more token of the answer. Returns whether it goes on.
    const auto add = [&](TokenId id) {
        history.push_back(id);
        result.tokens.push_back(id);
        stats.completion_tokens = static_cast<int>(result.tokens.size());
        stats.completion_seconds = answer_time.seconds();
        if (tokenizer.ends_generation(id) && !request.ignore_end) {
            ended = FinishReason::stop;
            return false;
        }
        const bool special = request.show_special || std::ranges::find(request.shown, id) != request.shown.end();
        show(answer.push(tokenizer.piece(id, special)));
        if (answer.stopped() || (constraint && constraint->finished())) ended = FinishReason::stop;
        if (!ended && result.tokens.size() == most) ended = FinishReason::length;
        return !ended;
    };
    const bool greedy = is_plain_greedy(request.sampling) && !constraint;
    while (!ended && result.tokens.size() < most) {
        if (greedy && !result.tokens.empty()) {
            const auto went_on = decode(history, std::min(most - result.tokens.size(), kGreedySteps), add, stop);
            if (!went_on && went_on.error().kind == ErrorKind::cancelled) return finish(FinishReason::cancelled);
            HR_CHECK(went_on);
            continue;
        }
        if (constraint && !constraint->mask(logits)) {
            if (constraint->may_end()) return finish(FinishReason::stop);
            return fail(ErrorKind::unsupported, "The vocabulary of this model cannot write what the answer's schema asks for next");
        }
        const TokenId id = sampler.sample(logits, history);
        if (constraint && !constraint->accept(id)) {
            return fail(ErrorKind::invalid_argument, "The logit bias rules out every token with which the answer could go on by its schema");
        }
        if (!add(id) || greedy) continue;
        const auto went_on = read(std::span(&id, 1), {}, stop);
        if (!went_on && went_on.error().kind == ErrorKind::cancelled) return finish(FinishReason::cancelled);
        HR_CHECK(went_on);
    }
    return finish(ended.value_or(FinishReason::length));
}

// Both ways to step together: run(runner, steps) computes.
template <class Run>
Result<> Session::all_together(std::span<const Step> steps, const std::stop_token& stop, Run run) try {
    if (steps.empty()) return {};
    Model::State& model = *steps.front().session->state_->model->state_;
    std::vector<model::Runner::Step> together;
    for (const Step& step : steps) {
        State& state = *step.session->state_;
        if (state.model->state_.get() != &model) return fail(ErrorKind::invalid_argument, "Sessions of different models cannot step together");
        HR_CHECK(state.check_tokens(std::span(&step.token, 1)));
        if (state.tokens.size() + 1 > state.context()) {
            return fail(ErrorKind::context_full, "A conversation has filled its context of {} tokens", state.context());
        }
        state.tokens.reserve(state.tokens.size() + 1);
        together.push_back({.sequence = *state.sequence, .token = step.token});
    }
    const TurnLock::Turn turn(model.turns, stop);
    if (!turn) return fail(ErrorKind::cancelled, "The computation was cancelled");
    HR_CHECK(run(*model.runner, together));
    for (const Step& step : steps) step.session->state_->tokens.push_back(step.token);
    return {};
} catch (const std::bad_alloc&) {
    return no_memory();
}

Result<> Session::step_together(std::span<const Step> steps, const std::function<void(std::size_t, std::span<float>)>& on_logits,
                                std::stop_token stop) {
    return all_together(steps, stop, [&](model::Runner& runner, std::span<const model::Runner::Step> together) {
        return runner.run_together(together, [&](std::int32_t i, std::span<float> logits) { on_logits(static_cast<std::size_t>(i), logits); }, stop);
    });
}

Result<> Session::choose_together(std::span<const Step> steps, const std::function<void(std::size_t, TokenId)>& on_choice, std::stop_token stop) {
    return all_together(steps, stop, [&](model::Runner& runner, std::span<const model::Runner::Step> together) {
        return runner.choose_together(together, [&](std::int32_t i, std::int32_t token) { on_choice(static_cast<std::size_t>(i), token); }, stop);
    });
}

Result<> Session::evaluate(std::span<const TokenId> tokens, std::span<const int> positions,
                           const std::function<void(int position, std::span<const float> logits)>& on_logits,
                           std::stop_token stop) try {
    HR_CHECK(state_->check_tokens(tokens));
    for (std::size_t i = 0; i < positions.size(); ++i) {
        if (positions[i] < 0 || static_cast<std::size_t>(positions[i]) >= tokens.size() || (i > 0 && positions[i] <= positions[i - 1])) {
            return fail(ErrorKind::invalid_argument, "The position {} is not behind the one before it or not below {}, the number of tokens",
                        positions[i], tokens.size());
        }
    }
    clear();
    std::vector<std::int32_t> rows;
    const std::size_t most = state_->max_tokens();
    auto next = positions.begin();
    for (std::size_t begin = 0; begin < tokens.size(); begin += most) {
        const auto part = tokens.subspan(begin, std::min(most, tokens.size() - begin));
        rows.clear();
        for (; next != positions.end() && static_cast<std::size_t>(*next) < begin + part.size(); ++next) {
            rows.push_back(*next - static_cast<int>(begin));
        }
        const auto hand_out = [&](std::int32_t row, std::span<float> logits) { on_logits(static_cast<int>(begin) + row, logits); };
        HR_CHECK(state_->step(part, rows, hand_out, stop));
    }
    return {};
} catch (const std::bad_alloc&) {
    return no_memory();
}

}  // namespace headroom::engine
