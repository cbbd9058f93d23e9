#include "core/model/experts.h"

#include <algorithm>
#include <utility>

#include "core/model/grow.h"

namespace headroom::model {
unsigned Experts::forms(const MixtureFeedForward& block) noexcept {
    return static_cast<unsigned>(cpu::form_for(block.gate.type)) | static_cast<unsigned>(cpu::form_for(block.up.type));
}

void Experts::compute(const MixtureFeedForward& block, const cpu::Activations& x, const std::int32_t* chosen,
                      std::span<const std::uint8_t> elsewhere, float* into) {
    const std::int64_t width = block.gate.cols;
    const std::int64_t choices = x.tokens() * block.used;
    grow(outputs_, choices * width);
    grow(group_tokens_, choices);
    grow(group_choices_, choices);
    output_rows_.resize(static_cast<std::size_t>(choices));
    group(block, choices, chosen, elsewhere);
    wanted_.clear();
    for (const Group& group : groups_) {
        // An expert's rows lie behind one another: only a single one may be written where it is wanted.
        const bool direct = into != nullptr && group.count == 1;
        float* y = direct ? into + group_choices_[static_cast<std::size_t>(group.first)] * width : outputs_.data() + group.first * width;
        wanted_.push_back({.gate = cpu::slice(block.gate, group.expert), .up = cpu::slice(block.up, group.expert),
                           .down = cpu::slice(block.down, group.expert),
                           .tokens = std::span(group_tokens_).subspan(static_cast<std::size_t>(group.first), static_cast<std::size_t>(group.count)),
                           .y = y, .y_stride = width});
    }
    mixture_.compute(pool_, wanted_, x);
    for (const Group& group : groups_) {
        if (into == nullptr || group.count == 1) continue;
        for (std::int64_t row = group.first; row < group.first + group.count; ++row) {
            std::copy_n(outputs_.data() + row * width, width, into + group_choices_[static_cast<std::size_t>(row)] * width);
        }
    }
}

// Sorts the choices by expert (a counting sort: within an expert the tokens ascend).
void Experts::group(const MixtureFeedForward& block, std::int64_t choices, const std::int32_t* chosen, std::span<const std::uint8_t> elsewhere) {
    const auto here = [&](std::int32_t expert) { return expert >= 0 && (elsewhere.empty() || elsewhere[static_cast<std::size_t>(expert)] == 0); };
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
        group_choices_[static_cast<std::size_t>(row)] = static_cast<std::int32_t>(i);
        output = outputs_.data() + row * block.gate.cols;
    }
}

}  // namespace headroom::model
