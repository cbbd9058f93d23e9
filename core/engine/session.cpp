#include <algorithm>
#include <chrono>
#include <new>
#include <optional>
#include <utility>

#include "core/engine/session_state.h"

namespace headroom::engine {
namespace {

// Tells how fast an answer is being made, every so many tokens: for the curve of speed over VRAM.
class SpeedMeter {
public:
    explicit SpeedMeter(const std::shared_ptr<VramControl>& vram) : vram_(vram) {}

    void at(std::size_t tokens) {
        if (!vram_ || tokens - from_ < kTokens) return;
        const auto now = std::chrono::steady_clock::now();
        if (from_ > 0) vram_->note_speed(static_cast<double>(tokens - from_) / std::chrono::duration<double>(now - since_).count());
        from_ = tokens;
        since_ = now;
    }

private:
    static constexpr std::size_t kTokens = 32;

    const std::shared_ptr<VramControl>& vram_;
    std::size_t from_ = 0;  // the first tokens come with the prompt and with what is made once
    std::chrono::steady_clock::time_point since_{};
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
    HR_CHECK(check(*state_->model, request));
    AnswerBuilder answer(*state_->model, request);
    const auto show = [&] {
        if (const std::string text = answer.take_text(); !text.empty() && callbacks.on_text) callbacks.on_text(text, answer.stats());
        for (const TokenChoice& choice : answer.take_choices()) {
            if (callbacks.on_choice) callbacks.on_choice(choice);
        }
    };
    const auto finish = [&](FinishReason reason) {
        GenerateResult result = answer.finish(reason);
        show();
        return result;
    };

    // What the session and the prompt have in common stays, but for one token, whose logits are needed.
    const std::size_t reused = state_->keep_common(request.prompt);
    answer.start_prompt(reused);
    const auto was_read = state_->read(std::span(request.prompt).subspan(reused), callbacks.on_prompt, stop);
    if (!was_read && was_read.error().kind == ErrorKind::cancelled) return finish(FinishReason::cancelled);
    HR_CHECK(was_read);

    const auto add = [&](TokenId id) {
        const bool goes_on = answer.add(id);
        show();
        return goes_on;
    };
    SpeedMeter speed(state_->model->state_->vram);
    while (!answer.ended()) {
        speed.at(answer.tokens().size());
        Result<> went_on;
        if (answer.is_plain_greedy() && !answer.tokens().empty()) {
            went_on = state_->decode(answer, std::min(answer.room(), kGreedySteps), add, stop);
        } else {
            const bool goes_on = answer.choose(state_->outlook());
            show();
            if (answer.error()) return std::unexpected(*answer.error());
            if (goes_on && !answer.is_plain_greedy()) went_on = state_->look(answer.history().back(), answer.needed(), stop);
        }
        if (!went_on && went_on.error().kind == ErrorKind::cancelled) return finish(FinishReason::cancelled);
        HR_CHECK(went_on);
    }
    return finish(*answer.ended());
} catch (const std::bad_alloc&) {
    return no_memory();
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
        HR_CHECK(check_tokens(*state.model, std::span(&step.token, 1)));
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

Result<> Session::look_together(std::span<const Step> steps, std::size_t count,
                                const std::function<void(std::size_t, const model::Outlook&)>& on_outlook, std::stop_token stop) {
    return all_together(steps, stop, [&](model::Runner& runner, std::span<const model::Runner::Step> together) {
        return runner.look_together(together, static_cast<std::int32_t>(std::min<std::size_t>(count, INT32_MAX)),
                                    [&](std::int32_t i, const model::Outlook& outlook) { on_outlook(static_cast<std::size_t>(i), outlook); }, stop);
    });
}

Result<> Session::evaluate(std::span<const TokenId> tokens, std::span<const int> positions,
                           const std::function<void(int position, std::span<const float> logits)>& on_logits,
                           std::stop_token stop) try {
    HR_CHECK(check_tokens(*state_->model, tokens));
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
