#pragma once

// Whoever computes a transformer: the processor alone, or GPUs with its help. The engine's sessions know only this.

#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>

#include "core/base/error.h"
#include "core/base/thread_pool.h"

namespace headroom::model {

// The keys and values of one session, wherever they lie. Used by one thread at a time, and only with the runner that made it, which must
// outlive it.
class Sequence {
public:
    virtual ~Sequence() = default;
    // Positions whose keys and values are complete in every layer.
    [[nodiscard]] virtual std::int64_t length() const noexcept = 0;
    // Forgets what lies behind `positions` (<= length()) and gives memory that holds none of the rest back.
    virtual void truncate(std::int64_t positions) noexcept = 0;
    [[nodiscard]] virtual std::uint64_t allocated_bytes() const noexcept = 0;
};

// A piece of one session's text. Its tokens stand at the positions sequence.length() … of that session.
struct Piece {
    Sequence& sequence;
    std::span<const std::int32_t> tokens;  // 1 to Runner::max_tokens() ids of the vocabulary
    std::span<const std::int32_t> rows;    // of tokens, ascending: those whose logits are wanted
};

// A token that may come next.
struct Likely {
    std::int32_t token;
    float logit;
};

// What is known of the next token: all logits, or the likeliest tokens alone.
struct Outlook {
    std::span<float> logits;            // [vocabulary], may be changed in place; empty where …
    std::span<const Likely> likeliest;  // … these are known: descending, the lower id first among equals; what is no number is -infinity
};

// One thread at a time; not always the same one.
class Runner {
public:
    virtual ~Runner() = default;

    [[nodiscard]] virtual Result<std::unique_ptr<Sequence>> create_sequence() = 0;
    // A new one with the first `positions` (<= length()) of another: copied, each then goes on by itself. Errors: out_of_memory, device.
    [[nodiscard]] virtual Result<std::unique_ptr<Sequence>> copy_sequence(Sequence& from, std::int64_t positions) = 0;
    // The most tokens of one piece.
    [[nodiscard]] virtual std::int64_t max_tokens() const noexcept = 0;

    // logits: [vocabulary], may be changed in place; valid during the call. row: index into Piece::tokens.
    using LogitsSink = FunctionRef<void(std::int32_t row, std::span<float> logits)>;
    // Reads the piece, appends to its sequence and hands out the wanted logits. Errors: invalid_argument (an id outside the vocabulary),
    // cancelled (noticed within a few layers' work), out_of_memory, device; then the sequence's length is what it was.
    [[nodiscard]] virtual Result<> run(const Piece& piece, LogitsSink sink, std::stop_token stop = {}) = 0;

    // Reads pieces of several sequences, all different, without logits: what their keys and values are then has the bits that run() would give
    // each. Errors: as run(); then every sequence's length is what it was.
    [[nodiscard]] virtual Result<> read_together(std::span<const Piece> pieces, std::stop_token stop = {}) = 0;

    // One token of each of several sequences, all different, in one step. The logits of each are handed out with its number in `steps`;
    // their bits are those that run() would give. Errors: as run(); then every sequence's length is what it was.
    struct Step {
        Sequence& sequence;
        std::int32_t token;
    };
    [[nodiscard]] virtual Result<> run_together(std::span<const Step> steps, LogitsSink sink, std::stop_token stop = {}) = 0;

    // The same, with the likeliest next token of each instead of its logits (the lowest id among equals): where that is chosen on a device,
    // logits need not come from there.
    using ChoiceSink = FunctionRef<void(std::int32_t row, std::int32_t token)>;
    [[nodiscard]] virtual Result<> choose_together(std::span<const Step> steps, ChoiceSink sink, std::stop_token stop = {}) = 0;

    // The same, with an outlook for each: where a device picks out the likeliest tokens, at least `count` of them, and the other logits need not
    // come from there; elsewhere, and with a count of 0, all logits. Valid during the call.
    using OutlookSink = FunctionRef<void(std::int32_t row, const Outlook& outlook)>;
    [[nodiscard]] virtual Result<> look_together(std::span<const Step> steps, std::int32_t count, OutlookSink sink, std::stop_token stop = {}) = 0;

    // Greedy decoding, where the choice need not wait for the host: reads `token`, chooses the likeliest next one (the lowest id among
    // equals), hands it to `next`, reads that, and so on, until `next` says false or `most` tokens were handed out. The last token handed
    // out has not been read. `next` must not wait for a change of what lies on a device: such a change waits for the step. Errors: as run(); what was handed out before stays valid, and the sequence holds what was read.
    [[nodiscard]] virtual Result<> decode_greedily(Sequence& sequence, std::int32_t token, std::int64_t most,
                                                   FunctionRef<bool(std::int32_t token)> next, std::stop_token stop = {}) = 0;
};

}  // namespace headroom::model
