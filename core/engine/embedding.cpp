#include <cmath>
#include <new>
#include <vector>

#include "core/engine/answer_builder.h"
#include "core/engine/model_state.h"
#include "core/model/cpu_runner.h"

namespace headroom::engine {
namespace {

// The numbers that files give their pooling (gguf: <architecture>.pooling_type).
constexpr std::uint64_t kMean = 1, kLast = 3;

Result<Pooling> pooling_of(const gguf::File& file, const std::string& family) {
    HR_TRY(const auto kind, file.get_unsigned(family + ".pooling_type"));
    if (!kind || *kind == 0 || *kind == kMean) return Pooling::mean;
    if (*kind == kLast) return Pooling::last;
    return fail(ErrorKind::unsupported, "{}: the model pools its embeddings in a way that is not supported (kind {})", file.name(), *kind);
}

}  // namespace

Result<std::vector<float>> Model::embed(std::span<const TokenId> tokens, std::optional<Pooling> wanted, std::stop_token stop) try {
    HR_CHECK(check_tokens(*this, tokens));
    Pooling pooling = wanted.value_or(Pooling::mean);
    if (!wanted) {
        HR_TRY(pooling, pooling_of(state_->file, state_->info.family));
    }
    const auto width = static_cast<std::size_t>(state_->transformer.hyperparameters.embedding);
    std::vector<double> sum(width);
    std::vector<std::int32_t> rows;
    std::unique_ptr<model::Sequence> sequence;
    constexpr auto most = static_cast<std::size_t>(model::Forward::kMaxTokens);
    for (std::size_t begin = 0; begin < tokens.size(); begin += most) {
        const auto piece = tokens.subspan(begin, std::min(most, tokens.size() - begin));
        const bool last = begin + piece.size() == tokens.size();
        rows.clear();
        for (std::size_t t = 0; t < piece.size(); ++t) {
            if (pooling == Pooling::mean || (last && t + 1 == piece.size())) rows.push_back(static_cast<std::int32_t>(t));
        }
        const auto add = [&](std::int32_t, std::span<const float> hidden) {
            for (std::size_t i = 0; i < width; ++i) sum[i] += static_cast<double>(hidden[i]);
        };
        const TurnLock::Turn turn(state_->turns, stop);
        if (!turn) return fail(ErrorKind::cancelled, "The computation was cancelled");
        if (!state_->embedder) state_->embedder = std::make_unique<model::CpuRunner>(state_->transformer, *state_->pool);
        if (!sequence) {
            HR_TRY(sequence, state_->embedder->create_sequence());
        }
        HR_CHECK(state_->embedder->run_hidden({.sequence = *sequence, .tokens = piece, .rows = rows}, add, stop));
    }
    double squares = 0;
    for (const double value : sum) squares += value * value;
    const double length = squares > 0 ? std::sqrt(squares) : 1;
    std::vector<float> result(width);
    for (std::size_t i = 0; i < width; ++i) result[i] = static_cast<float>(sum[i] / length);
    return result;
} catch (const std::bad_alloc&) {
    return fail(ErrorKind::out_of_memory, "There is not enough memory for an embedding");
}

}  // namespace headroom::engine
