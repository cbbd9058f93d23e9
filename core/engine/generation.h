#pragma once

// One request to a scheduler, seen by whoever asked: what has come of it so far, its end, a way to cancel it.

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/engine/engine.h"

namespace headroom::engine {

// A bell that a thread waits for. Any thread may ring; one waits.
class Bell {
public:
    void ring();
    // Waits for a ring since the last wait, at most until `deadline` (none: for ever).
    void wait(std::optional<std::chrono::steady_clock::time_point> deadline = {});

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool rung_ = false;
};

// The scheduler writes, one thread reads; cancel() and stage() from any thread.
class Generation {
public:
    enum class Stage : std::uint8_t { queued, reading, answering, ended };
    struct News {
        std::string text;                   // valid UTF-8
        std::vector<TokenChoice> choices;   // where the request asks for them
        bool ended = false;                 // nothing more will come: outcome() says how it went
    };

    // bell: rung when the scheduler has to look at this request again.
    explicit Generation(std::shared_ptr<Bell> bell) : bell_(std::move(bell)) {}

    // What is new; waits for it, at most `timeout`: then the news are empty.
    [[nodiscard]] News wait(std::chrono::milliseconds timeout);
    // After the news that ended it. Without the text where a reader has had it in pieces.
    [[nodiscard]] const Result<GenerateResult>& outcome() const noexcept { return *outcome_; }
    // The request ends at once, wherever it stands; its outcome is FinishReason::cancelled.
    void cancel() noexcept;

    [[nodiscard]] Stage stage() const;
    [[nodiscard]] GenerateStats stats() const;  // so far

    // For the scheduler. A reader that takes nothing holds up only itself: its request pauses while more than kLimit bytes wait.
    static constexpr std::size_t kLimit = 64 * 1024;
    [[nodiscard]] bool is_full() const;
    [[nodiscard]] std::stop_token stop_token() const noexcept { return stop_.get_token(); }
    void set_stage(Stage stage, const GenerateStats& stats);
    void push(std::string text, std::vector<TokenChoice> choices, const GenerateStats& stats);
    void end(Result<GenerateResult> outcome);

private:
    std::shared_ptr<Bell> bell_;
    std::stop_source stop_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    Stage stage_ = Stage::queued;
    GenerateStats stats_;
    std::string text_;
    std::vector<TokenChoice> choices_;
    std::optional<Result<GenerateResult>> outcome_;
};

}  // namespace headroom::engine
