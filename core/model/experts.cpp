#include "core/model/experts.h"

#include <numeric>
#include <utility>

#include "core/model/grow.h"

namespace headroom::model {
unsigned Experts::forms(const MixtureFeedForward& block) noexcept {
    return static_cast<unsigned>(cpu::form_for(block.gate.type)) | static_cast<unsigned>(cpu::form_for(block.up.type));
}

void Experts::compute(const MixtureFeedForward& block, const cpu::Activations& x, const std::int32_t* chosen,
                      std::span<const std::uint8_t> elsewhere) {
    const std::int64_t width = block.gate.cols;
    const std::int64_t hidden = block.gate.rows;
    const std::int64_t choices = x.tokens() * block.used;
    grow(gate_, choices * hidden);
    grow(up_, choices * hidden);
    grow(outputs_, choices * width);
    grow(group_tokens_, choices);
    output_rows_.resize(static_cast<std::size_t>(choices));
    if (const std::size_t before = row_numbers_.size(); before < static_cast<std::size_t>(choices)) {
        row_numbers_.resize(static_cast<std::size_t>(choices));
        std::iota(row_numbers_.begin(), row_numbers_.end(), 0);
    }
    group(block, choices, chosen, elsewhere);
    if (groups_.empty()) return;

    const auto of_group = [](const std::vector<std::int32_t>& numbers, const Group& group) {
        return std::span(numbers).subspan(static_cast<std::size_t>(group.first), static_cast<std::size_t>(group.count));
    };
    products_.clear();
    for (const Group& group : groups_) {
        products_.push_back({cpu::slice(block.gate, group.expert), of_group(group_tokens_, group), gate_.data() + group.first * hidden, hidden});
        products_.push_back({cpu::slice(block.up, group.expert), of_group(group_tokens_, group), up_.data() + group.first * hidden, hidden});
    }
    cpu::matmul_experts(pool_, products_, x);
    const std::int64_t rows = groups_.back().first + groups_.back().count;
    cpu::swiglu(pool_, gate_.data(), up_.data(), rows, hidden, hidden, gate_.data());

    activations_.assign(gate_.data(), rows, hidden, hidden);
    activations_.require(pool_, cpu::form_for(block.down.type));
    products_.clear();
    for (const Group& group : groups_) {
        products_.push_back({cpu::slice(block.down, group.expert), of_group(row_numbers_, group), outputs_.data() + group.first * width, width});
    }
    cpu::matmul_experts(pool_, products_, activations_);
}

// Sorts the choices by expert (a counting sort: within an expert the tokens ascend).
void Experts::group(const MixtureFeedForward& block, std::int64_t choices, const std::int32_t* chosen, std::span<const std::uint8_t> elsewhere) {
    const auto here = [&](std::int32_t expert) { return elsewhere.empty() || elsewhere[static_cast<std::size_t>(expert)] == 0; };
    expert_rows_.assign(static_cast<std::size_t>(block.experts), 0);
    for (std::int64_t i = 0; i < choices; ++i) {
        if (here(chosen[i])) ++expert_rows_[static_cast<std::size_t>(chosen[i])];
    }
    groups_.clear();
    std::int64_t first = 0;
    for (std::int64_t expert = 0; expert < block.experts; ++expert) {
        std::int64_t& count = expert_rows_[static_cast<std::size_t>(expert)];
        if (count > 0) groups_.push_back({.expert = expert, .first = first, .count = count});
        first += std::exchange(count, first);  // from here on: the expert's next free row
    }
    for (std::int64_t i = 0; i < choices; ++i) {
        const float*& output = output_rows_[static_cast<std::size_t>(i)];
        output = nullptr;
        if (!here(chosen[i])) continue;
        const std::int64_t row = expert_rows_[static_cast<std::size_t>(chosen[i])]++;
        group_tokens_[static_cast<std::size_t>(row)] = static_cast<std::int32_t>(i / block.used);
        output = outputs_.data() + row * block.gate.cols;
    }
}

}  // namespace headroom::model
