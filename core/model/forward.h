#pragma once

// The forward pass on the CPU: tokens in, logits out.

#include <cstdint>
#include <initializer_list>
#include <span>
#include <stop_token>
#include <vector>

#include "core/base/error.h"
#include "core/base/thread_pool.h"
#include "core/compute/cpu/activations.h"
#include "core/compute/cpu/ops.h"
#include "core/model/experts.h"
#include "core/model/kv_cache.h"
#include "core/model/transformer.h"

namespace headroom::model {

// A piece of one session's text. Its tokens stand at the positions cache.length() … of that session.
struct Batch {
    KvCache& cache;
    std::span<const std::int32_t> tokens;  // 1 to Forward::kMaxTokens ids of the vocabulary
    std::span<const std::int32_t> rows;    // of tokens, ascending: those whose logits are wanted
};

// Runs one transformer; owns the scratch memory of a batch, which grows to the largest batch seen. Used from one thread at a time.
// Every operator works row by row except attention, which reads the batch's own cache: a batch made of several sessions' tokens has
// a loop there and nowhere else. A layer's weights are named only by its Layer: another device's operators can take over per layer.
class Forward {
public:
    static constexpr std::int64_t kMaxTokens = 256;
    // Logits are computed for so many rows at a time.
    static constexpr std::int64_t kMaxLogitRows = 16;

    // The transformer and the pool must outlive it.
    Forward(const Transformer& transformer, ThreadPool& pool);

    // logits: [vocabulary], may be changed in place; valid during the call. row: index into Batch::tokens.
    using LogitsSink = FunctionRef<void(std::int32_t row, std::span<float> logits)>;

    // Reads the batch, appends to its cache and hands out the wanted logits. Errors: cancelled (checked twice in every layer),
    // out_of_memory; then the cache's length is what it was.
    [[nodiscard]] Result<> run(const Batch& batch, LogitsSink sink, std::stop_token stop = {});

    // One token of each of several sessions, all different. The logits of each are handed out with its number; their bits are those that
    // run() would give. Errors: as run's; then no cache's length has changed.
    struct Step {
        KvCache& cache;
        std::int32_t token;
    };
    [[nodiscard]] Result<> run_together(std::span<const Step> steps, LogitsSink sink, std::stop_token stop = {});

    // The hidden states of the wanted rows behind the last norm, from which the logits would be made: [rows, embedding]. Errors: as run's.
    [[nodiscard]] Result<> run_hidden(const Batch& batch, FunctionRef<void(std::int32_t row, std::span<const float> hidden)> sink,
                                      std::stop_token stop = {});

    // Some layers in a row: [first, last) of the model. The cache has those alone, as its layers 0, 1, …
    struct Run {
        std::int64_t first = 0;
        std::int64_t last = 0;
    };
    // x: the residual stream in front of them, [tokens, embedding]; not read where the run begins with the model's first layer. Where it ends
    // with the last one the wanted logits are handed out. Returns the residual stream behind the run, valid until the next call. The cache
    // holds what was stored, but its length is set by the caller, when the other layers have read the batch too. Errors as run's.
    [[nodiscard]] Result<std::span<const float>> run_layers(const Run& layers, const Batch& batch, std::span<const float> x, LogitsSink sink,
                                                            std::stop_token stop = {});

    // Scratch memory for batches of kMaxTokens (or of the context, where that is shorter), from the shapes.
    [[nodiscard]] static std::uint64_t scratch_bytes(const Transformer& transformer, std::int64_t context) noexcept;

private:
    // The rows of x_ that belong to one session.
    struct Part {
        KvCache& cache;
        std::int64_t first = 0;
        std::int64_t tokens = 0;
    };
    // Runs layers on the tokens, which are those of the parts in order; x_ holds the residual stream then. x: in front of the layers, or empty:
    // the tokens' embeddings. Does not change the caches' lengths.
    [[nodiscard]] Result<> read(std::span<const std::int32_t> tokens, std::span<const Part> parts, std::size_t logit_rows, const Run& layers,
                                std::span<const float> x, const std::stop_token& stop);
    [[nodiscard]] Run all_layers() const noexcept { return {.first = 0, .last = static_cast<std::int64_t>(transformer_.layers.size())}; }
    void allocate(std::int64_t tokens, std::size_t logit_rows);
    void attention(const Attention& block, std::int64_t layer, std::span<const Part> parts, std::int64_t tokens);
    void feed_forward(const DenseFeedForward& block, std::int64_t tokens);
    void feed_forward(const MixtureFeedForward& block, std::int64_t tokens);
    // Rows of x_, normed for the output, into normed_ from its beginning.
    void norm_rows(std::span<const std::int32_t> rows);
    void logits(std::span<const std::int32_t> rows, LogitsSink sink);
    // Products of the same rows x: [tokens, columns]; each result is [tokens, linear->weight.rows].
    struct Target {
        const Linear* linear;
        float* y;
    };
    void multiply(const float* x, std::int64_t tokens, std::initializer_list<Target> targets);

    const Transformer& transformer_;
    ThreadPool& pool_;
    cpu::Activations activations_;

    // [tokens, …] each, for the batch.
    std::vector<float> x_;        // [tokens, embedding]: the residual stream
    std::vector<float> normed_;   // [tokens, embedding]: normed, then a block's output
    std::vector<float> q_;        // [tokens, heads * head_dim]
    std::vector<float> k_;        // [tokens, kv_heads * head_dim]
    std::vector<float> v_;        // [tokens, kv_heads * head_dim_v]
    std::vector<float> heads_;    // [tokens, heads * head_dim_v]: attention's result
    std::vector<float> gate_;     // [tokens, feed_forward]
    std::vector<float> up_;       // the same
    std::vector<float> cosine_;   // [tokens, rope.half()]
    std::vector<float> sine_;
    std::vector<float> logits_;   // [kMaxLogitRows or fewer, vocabulary]

    // The mixture's choice.
    Experts experts_;
    std::vector<float> scores_;          // [tokens, experts]
    std::vector<std::int32_t> chosen_;   // [tokens, used]
    std::vector<float> shares_;          // [tokens, used]
};

}  // namespace headroom::model
