#pragma once

// What a session consists of, shared by session.cpp and the scheduler.

#include <algorithm>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <utility>
#include <vector>

#include "core/engine/answer_builder.h"
#include "core/engine/model_state.h"

namespace headroom::engine {

// Greedy decoding keeps its turn for so many tokens: long enough that the device is never idle in between, short enough for other sessions.
inline constexpr std::size_t kGreedySteps = 32;

struct Session::State {
    State(std::shared_ptr<Model> of, std::unique_ptr<model::Sequence> empty) : model(std::move(of)), sequence(std::move(empty)) {}

    [[nodiscard]] std::size_t context() const noexcept { return static_cast<std::size_t>(model->info().context); }

    // Drops everything behind the first `count` tokens.
    void keep(std::size_t count) noexcept {
        tokens.resize(std::min(tokens.size(), count));
        sequence->truncate(static_cast<std::int64_t>(tokens.size()));
    }

    // Of a prompt, how many tokens the session has read already, but at most all except one, whose logits are needed.
    [[nodiscard]] std::size_t common(std::span<const TokenId> prompt) const noexcept {
        const auto same = static_cast<std::size_t>(std::ranges::mismatch(tokens, prompt).in2 - prompt.begin());
        return std::min(same, prompt.size() - 1);
    }
    // Drops everything else; returns common(prompt).
    std::size_t keep_common(std::span<const TokenId> prompt) noexcept {
        const std::size_t count = common(prompt);
        keep(count);
        return count;
    }

    // Becomes a copy of the first `count` tokens of another session of the model. Error: out_of_memory, device; then it is what it was.
    Result<> copy(State& from, std::size_t count) {
        std::vector<TokenId> begin(from.tokens.begin(), from.tokens.begin() + static_cast<std::ptrdiff_t>(count));
        const TurnLock::Turn turn(model->state_->turns, {});
        HR_TRY(sequence, model->state_->runner->copy_sequence(*from.sequence, static_cast<std::int64_t>(count)));
        tokens = std::move(begin);
        return {};
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
        likeliest.clear();
        for (std::size_t begin = 0; begin < ids.size(); begin += most) {
            const auto part = ids.subspan(begin, std::min(most, ids.size() - begin));
            const auto last = static_cast<std::int32_t>(part.size() - 1);
            const bool wanted = begin + part.size() == ids.size();
            HR_CHECK(step(part, std::span(&last, wanted ? 1 : 0), keep_logits, stop));
            if (report) report(static_cast<int>(begin + part.size()), total);
        }
        return {};
    }

    // Reads one token; outlook() is what is known of the next then: at least the `needed` likeliest tokens, or all logits (needed 0: these).
    Result<> look(TokenId id, std::size_t needed, const std::stop_token& stop) {
        tokens.reserve(tokens.size() + 1);
        const TurnLock::Turn turn(model->state_->turns, stop);
        if (!turn) return fail(ErrorKind::cancelled, "The computation was cancelled");
        const model::Runner::Step step{.sequence = *sequence, .token = id};
        const auto keep = [&](std::int32_t, const model::Outlook& outlook) {
            logits.assign(outlook.logits.begin(), outlook.logits.end());
            likeliest.assign(outlook.likeliest.begin(), outlook.likeliest.end());
        };
        HR_CHECK(model->state_->runner->look_together(std::span(&step, 1), static_cast<std::int32_t>(std::min<std::size_t>(needed, INT32_MAX)), keep, stop));
        tokens.push_back(id);
        return {};
    }
    [[nodiscard]] model::Outlook outlook() noexcept { return {.logits = logits, .likeliest = likeliest}; }

    // Goes on greedily from the answer's last token, which has not been read, by at most `most` tokens; add: adds one to the answer and
    // returns whether it goes on.
    Result<> decode(const AnswerBuilder& answer, std::size_t most, FunctionRef<bool(TokenId id)> add, const std::stop_token& stop) {
        tokens.reserve(tokens.size() + most);
        const TurnLock::Turn turn(model->state_->turns, stop);
        if (!turn) return fail(ErrorKind::cancelled, "The computation was cancelled");
        const std::size_t first = answer.history().size() - 1;
        const auto before = static_cast<std::size_t>(sequence->length());
        auto done = model->state_->runner->decode_greedily(*sequence, answer.history().back(), static_cast<std::int64_t>(most), add, stop);
        const auto read = answer.history().subspan(first, static_cast<std::size_t>(sequence->length()) - before);
        tokens.insert(tokens.end(), read.begin(), read.end());
        return done;
    }

    std::shared_ptr<Model> model;
    std::unique_ptr<model::Sequence> sequence;
    std::vector<TokenId> tokens;  // those in the sequence
    // What outlook() says.
    std::vector<float> logits;    // [vocabulary]
    std::vector<model::Likely> likeliest;
};

}  // namespace headroom::engine
