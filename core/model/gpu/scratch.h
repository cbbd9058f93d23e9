#pragma once

// The scratch memory of a device's part of the forward pass: one allocation, cut into arrays of fixed places.

#include <cstdint>

#include "core/compute/gpu/ops.h"
#include "core/gpu/resources.h"
#include "core/model/transformer.h"

namespace headroom::model {

struct ScratchPlan {
    std::int64_t tokens = 0;        // of the largest batch
    std::int64_t context = 0;       // positions of a session
    bool logits = false;            // the part computes them
};

// The most rows that decode attention takes at once, by the room of its partial results.
[[nodiscard]] std::int64_t attention_rows_limit(const Transformer& transformer, std::int64_t context) noexcept;
inline constexpr std::int64_t kLogitRows = 64;

struct Scratch {
    [[nodiscard]] static std::uint64_t bytes(const Transformer& transformer, const ScratchPlan& plan) noexcept;
    // The device is current. Errors: those of the driver.
    [[nodiscard]] static Result<Scratch> create(gpu::Driver& driver, const Transformer& transformer, const ScratchPlan& plan);

    gpu::Buffer memory;
    // [tokens, …] each.
    float* x = nullptr;             // [tokens, embedding]: the residual stream
    float* normed = nullptr;        // [tokens, embedding]
    float* q = nullptr;             // [tokens, heads * head_dim]
    float* k = nullptr;             // [tokens, kv_heads * head_dim]
    float* v = nullptr;             // [tokens, kv_heads * head_dim_v]
    float* heads = nullptr;         // [tokens, heads * head_dim_v]
    float* gate = nullptr;          // [tokens, feed_forward] or [tokens * used, expert_feed_forward]
    float* up = nullptr;
    float* outputs = nullptr;       // [tokens * used, embedding]
    float* scores = nullptr;        // [tokens, experts]
    std::int32_t* chosen = nullptr; // [tokens, used]
    std::int32_t* placed = nullptr; // [tokens, used]: HandOverArguments
    float* shares = nullptr;        // [tokens, used]
    std::int32_t* grouped = nullptr;  // [tokens * used]
    std::int32_t* offsets = nullptr;  // [experts + 1]
    std::uint8_t* listed = nullptr;   // kernels::few_experts' list
    // The quantized forms of the rows that the next products read; a row is at most the widest input of any product.
    kernels::Quantized groups_256{};
    kernels::Quantized groups_32{};
    float* partials = nullptr;      // of decode attention: words of ones before and after it
    std::int64_t partial_count = 0;
    // Of decode attention over many pages, of at most long_rows tokens: all bits set.
    float* parts_to_hand = nullptr;
    std::int64_t long_rows = 0, part_count = 0;
    std::int32_t* tickets = nullptr;  // zeros
    std::int64_t ticket_count = 0;
    float* logits = nullptr;        // [kLogitRows, vocabulary]
    std::int32_t* ids = nullptr;    // [kLogitRows]: the likeliest ones
    float* likeliest = nullptr;     // [rows, count] logits, then as many ids: of at most kLogitRows rows and kernels::kMostTop tokens

private:
    // Calls visit(pointer, count of elements) for every array: to add up their sizes, and to give them their places.
    template <class Visit>
    void arrays(const Transformer& transformer, const ScratchPlan& plan, Visit visit);
};

}  // namespace headroom::model
