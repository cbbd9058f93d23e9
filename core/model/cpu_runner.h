#pragma once

#include "core/model/forward.h"
#include "core/model/runner.h"

namespace headroom::model {

// Everything on the processor.
class CpuRunner final : public Runner {
public:
    // The transformer and the pool must outlive it.
    CpuRunner(const Transformer& transformer, ThreadPool& pool) : transformer_(transformer), forward_(transformer, pool) {}

    [[nodiscard]] Result<std::unique_ptr<Sequence>> create_sequence() override;
    [[nodiscard]] Result<std::unique_ptr<Sequence>> copy_sequence(Sequence& from, std::int64_t positions) override;
    [[nodiscard]] std::int64_t max_tokens() const noexcept override { return Forward::kMaxTokens; }
    [[nodiscard]] Result<> run(const Piece& piece, LogitsSink sink, std::stop_token stop) override;
    [[nodiscard]] Result<> read_together(std::span<const Piece> pieces, std::stop_token stop) override;
    [[nodiscard]] Result<> run_together(std::span<const Step> steps, LogitsSink sink, std::stop_token stop) override;
    [[nodiscard]] Result<> choose_together(std::span<const Step> steps, ChoiceSink sink, std::stop_token stop) override;
    [[nodiscard]] Result<> look_together(std::span<const Step> steps, std::int32_t count, OutlookSink sink, std::stop_token stop) override;
    // Reads the piece like run(), but hands out the hidden states of its rows behind the last norm, [embedding] each: for embeddings.
    [[nodiscard]] Result<> run_hidden(const Piece& piece, FunctionRef<void(std::int32_t row, std::span<const float> hidden)> sink,
                                      std::stop_token stop);
    [[nodiscard]] Result<> decode_greedily(Sequence& sequence, std::int32_t token, std::int64_t most, FunctionRef<bool(std::int32_t)> next,
                                           std::stop_token stop) override;

private:
    const Transformer& transformer_;
    Forward forward_;
};

}  // namespace headroom::model
