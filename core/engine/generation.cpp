#include "core/engine/generation.h"

#include <utility>

namespace headroom::engine {
namespace {

// What a choice takes in an answer's stream, about: its numbers and names.
constexpr std::size_t kChoiceBytes = 64;

}  // namespace

void Bell::ring() {
    {
        const std::scoped_lock lock(mutex_);
        rung_ = true;
    }
    changed_.notify_one();
}

void Bell::wait(std::optional<std::chrono::steady_clock::time_point> deadline) {
    std::unique_lock lock(mutex_);
    const auto rung = [&] { return rung_; };
    if (deadline) {
        changed_.wait_until(lock, *deadline, rung);
    } else {
        changed_.wait(lock, rung);
    }
    rung_ = false;
}

Generation::News Generation::wait(std::chrono::milliseconds timeout) {
    News news;
    bool was_full = false;
    {
        std::unique_lock lock(mutex_);
        changed_.wait_for(lock, timeout, [&] { return outcome_ || !text_.empty() || !choices_.empty(); });
        was_full = text_.size() + choices_.size() * kChoiceBytes > kLimit;
        news = {.text = std::exchange(text_, {}), .choices = std::exchange(choices_, {}), .ended = outcome_.has_value()};
    }
    if (was_full) bell_->ring();
    return news;
}

void Generation::cancel() noexcept {
    stop_.request_stop();
    bell_->ring();
}

Generation::Stage Generation::stage() const {
    const std::scoped_lock lock(mutex_);
    return stage_;
}

GenerateStats Generation::stats() const {
    const std::scoped_lock lock(mutex_);
    return stats_;
}

bool Generation::is_full() const {
    const std::scoped_lock lock(mutex_);
    return text_.size() + choices_.size() * kChoiceBytes > kLimit;
}

void Generation::set_stage(Stage stage, const GenerateStats& stats) {
    const std::scoped_lock lock(mutex_);
    stage_ = stage;
    stats_ = stats;
}

void Generation::push(std::string text, std::vector<TokenChoice> choices, const GenerateStats& stats) {
    {
        const std::scoped_lock lock(mutex_);
        stage_ = Stage::answering;
        stats_ = stats;
        if (text.empty() && choices.empty()) return;
        text_ += text;
        for (TokenChoice& choice : choices) choices_.push_back(std::move(choice));
    }
    changed_.notify_one();
}

void Generation::end(Result<GenerateResult> outcome) {
    {
        const std::scoped_lock lock(mutex_);
        stage_ = Stage::ended;
        if (outcome) stats_ = outcome->stats;
        outcome_ = std::move(outcome);
    }
    changed_.notify_one();
}

}  // namespace headroom::engine
