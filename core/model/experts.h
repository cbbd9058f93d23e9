#pragma once

// A mixture's experts on the processor, for a batch of tokens whose choice is made.

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/thread_pool.h"
#include "core/compute/cpu/activations.h"
#include "core/compute/cpu/mixture.h"
#include "core/model/transformer.h"

namespace headroom::model {

// Owns the scratch memory, which grows to the largest batch seen. Used from one thread at a time.
class Experts {
public:
    explicit Experts(ThreadPool& pool) : pool_(pool) {}

    // The forms of the activations that compute() reads.
    [[nodiscard]] static unsigned forms(const MixtureFeedForward& block) noexcept;

    // down(silu(gate(x)) * up(x)) of every choice. x: [tokens, embedding], with its forms made. chosen: [tokens, used]. elsewhere:
    // [experts], or empty: choices of experts with a 1 there are left out. into: [tokens * used, embedding], or null: where the outputs are
    // wanted; rows of choices that are left out are not written. Allocates.
    void compute(const MixtureFeedForward& block, const cpu::Activations& x, const std::int32_t* chosen, std::span<const std::uint8_t> elsewhere = {},
                 float* into = nullptr);

    // Of the last compute() without `into`: where the output ([embedding]) of each choice (token * used + rank) is; null for those left out.
    [[nodiscard]] std::span<const float* const> outputs() const noexcept { return output_rows_; }

private:
    void group(const MixtureFeedForward& block, std::int64_t rows, const std::int32_t* chosen, std::span<const std::uint8_t> elsewhere);

    ThreadPool& pool_;
    cpu::Mixture mixture_;
    std::vector<float> outputs_;  // [choices, embedding], grouped by expert: group g's rows lie behind one another
    struct Group {
        std::int64_t expert = 0;
        std::int64_t first = 0;  // row
        std::int64_t count = 0;
    };
    std::vector<Group> groups_;
    std::vector<std::int64_t> expert_rows_;    // [experts]: scratch of the grouping
    std::vector<std::int32_t> group_tokens_;   // [choices]: the token of each grouped row
    std::vector<std::int32_t> group_choices_;  // [choices]: the choice of each grouped row
    std::vector<const float*> output_rows_;    // [choices]
    std::vector<cpu::ChosenExpert> wanted_;
};

}  // namespace headroom::model
