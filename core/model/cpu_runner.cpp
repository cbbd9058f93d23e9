#include "core/model/cpu_runner.h"

#include <algorithm>
#include <new>
#include <vector>

namespace headroom::model {
namespace {

class CpuSequence final : public Sequence {
public:
    explicit CpuSequence(const KvShape& shape) : cache(shape) {}
    [[nodiscard]] std::int64_t length() const noexcept override { return cache.length(); }
    void truncate(std::int64_t positions) noexcept override { cache.truncate(positions); }
    [[nodiscard]] std::uint64_t allocated_bytes() const noexcept override { return cache.allocated_bytes(); }

    KvCache cache;
};

}  // namespace

Result<std::unique_ptr<Sequence>> CpuRunner::create_sequence() try {
    return std::make_unique<CpuSequence>(transformer_.kv_shape());
} catch (const std::bad_alloc&) {
    return fail(ErrorKind::out_of_memory, "There is not enough memory for another conversation");
}

Result<std::unique_ptr<Sequence>> CpuRunner::copy_sequence(Sequence& from, std::int64_t positions) {
    HR_TRY(auto to, create_sequence());
    HR_CHECK(static_cast<CpuSequence&>(*to).cache.copy(static_cast<CpuSequence&>(from).cache, positions));
    return to;
}

Result<> CpuRunner::run(const Piece& piece, LogitsSink sink, std::stop_token stop) {
    return forward_.run({.cache = static_cast<CpuSequence&>(piece.sequence).cache, .tokens = piece.tokens, .rows = piece.rows}, sink, stop);
}

// One after the other: what several share here is the time that their weights take from memory, and prompts are bound by the arithmetic.
Result<> CpuRunner::read_together(std::span<const Piece> pieces, std::stop_token stop) {
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        auto read = run({.sequence = pieces[i].sequence, .tokens = pieces[i].tokens, .rows = {}}, [](std::int32_t, std::span<float>) {}, stop);
        if (read) continue;
        for (const Piece& before : pieces.first(i)) before.sequence.truncate(before.sequence.length() - static_cast<std::int64_t>(before.tokens.size()));
        return read;
    }
    return {};
}

Result<> CpuRunner::run_together(std::span<const Step> steps, LogitsSink sink, std::stop_token stop) try {
    std::vector<Forward::Step> some;
    for (std::size_t done = 0; done < steps.size(); done += some.size()) {
        some.clear();
        const auto left = std::min(steps.size() - done, static_cast<std::size_t>(Forward::kMaxTokens));
        for (const Step& step : steps.subspan(done, left)) some.push_back({.cache = static_cast<CpuSequence&>(step.sequence).cache, .token = step.token});
        const auto hand_out = [&](std::int32_t i, std::span<float> logits) { sink(static_cast<std::int32_t>(done) + i, logits); };
        if (auto read = forward_.run_together(some, hand_out, stop); !read) {
            for (const Step& before : steps.first(done)) before.sequence.truncate(before.sequence.length() - 1);
            return read;
        }
    }
    return {};
} catch (const std::bad_alloc&) {
    return fail(ErrorKind::out_of_memory, "There is not enough memory to compute");
}

Result<> CpuRunner::run_hidden(const Piece& piece, FunctionRef<void(std::int32_t, std::span<const float>)> sink, std::stop_token stop) {
    return forward_.run_hidden({.cache = static_cast<CpuSequence&>(piece.sequence).cache, .tokens = piece.tokens, .rows = piece.rows}, sink, stop);
}

Result<> CpuRunner::choose_together(std::span<const Step> steps, ChoiceSink sink, std::stop_token stop) {
    const auto choose = [&](std::int32_t row, std::span<float> logits) {
        sink(row, static_cast<std::int32_t>(cpu::argmax(logits.data(), static_cast<std::int64_t>(logits.size()))));
    };
    return run_together(steps, choose, stop);
}

Result<> CpuRunner::look_together(std::span<const Step> steps, std::int32_t, OutlookSink sink, std::stop_token stop) {
    return run_together(steps, [&](std::int32_t row, std::span<float> logits) { sink(row, {.logits = logits, .likeliest = {}}); }, stop);
}

Result<> CpuRunner::decode_greedily(Sequence& sequence, std::int32_t token, std::int64_t most, FunctionRef<bool(std::int32_t)> next,
                                    std::stop_token stop) {
    for (std::int64_t i = 0; i < most; ++i) {
        constexpr std::int32_t row = 0;
        const auto choose = [&](std::int32_t, std::span<float> logits) {
            token = static_cast<std::int32_t>(cpu::argmax(logits.data(), static_cast<std::int64_t>(logits.size())));
        };
        const std::int32_t read = token;
        HR_CHECK(run({.sequence = sequence, .tokens = std::span(&read, 1), .rows = std::span(&row, 1)}, choose, stop));
        if (!next(token)) break;
    }
    return {};
}

}  // namespace headroom::model
