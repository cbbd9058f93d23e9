#include "core/compute/cpu/mixture.h"

#include <algorithm>
#include <thread>

#include "core/compute/cpu/ops.h"
#include "core/compute/cpu/product.h"

namespace headroom::cpu {
namespace {

// Waits for a piece that another thread is in. That one may have lost its core to somebody who needs this one.
void await_zero(const std::atomic<std::int64_t>& left) {
    for (int spins = 0; left.load(std::memory_order_acquire) != 0; ++spins) {
        if (spins > 2000) std::this_thread::yield();
    }
}

}  // namespace

void Mixture::compute(ThreadPool& pool, std::span<const ChosenExpert> experts, const Activations& x) {
    if (experts.empty()) return;
    const std::int64_t hidden = experts[0].gate.rows;
    const std::int64_t width = experts[0].down.rows;
    std::int64_t rows = 0;
    first_.clear();
    for (const ChosenExpert& expert : experts) {
        first_.push_back(rows);
        rows += static_cast<std::int64_t>(expert.tokens.size());
    }
    if (const auto needed = static_cast<std::size_t>(rows * hidden); gate_.size() < needed) {
        gate_.resize(needed);
        up_.resize(needed);
    }
    for (auto i = static_cast<std::int32_t>(row_numbers_.size()); i < rows; ++i) row_numbers_.push_back(i);
    if (left_count_ < experts.size()) {
        left_ = std::make_unique<std::atomic<std::int64_t>[]>(experts.size());
        left_count_ = experts.size();
    }
    hidden_.assign(gate_.data(), rows, hidden, hidden);
    hidden_.reserve(static_cast<unsigned>(form_for(experts[0].down.type)));

    const auto count = static_cast<std::int64_t>(experts.size());
    const auto pieces_of = [&](std::int64_t all, std::int64_t share, std::int64_t& grain) {
        const std::int64_t tiles = (all + kTileRows - 1) / kTileRows;
        grain = std::max<std::int64_t>(1, tile_grain(count * tiles, pool.size()) / share) * kTileRows;
        return (all + grain - 1) / grain;
    };
    std::int64_t hidden_grain = 0, output_grain = 0;
    const std::int64_t hidden_pieces = pieces_of(hidden, 1, hidden_grain);
    const std::int64_t output_pieces = pieces_of(width, 2, output_grain);  // smaller ones: the section waits for the last
    for (std::size_t e = 0; e < experts.size(); ++e) left_[e].store(hidden_pieces + 1, std::memory_order_relaxed);

    pool.parallel_for(count * (hidden_pieces + output_pieces), 1, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t piece = begin; piece < end; ++piece) {
            if (piece < count * hidden_pieces) {
                const auto e = static_cast<std::size_t>(piece / hidden_pieces);
                const std::int64_t row = piece % hidden_pieces * hidden_grain;
                make_hidden(experts[e], e, row, std::min(hidden_grain, hidden - row), x);
                if (left_[e].fetch_sub(1, std::memory_order_acq_rel) != 2) continue;
                for (std::size_t i = 0; i < experts[e].tokens.size(); ++i) hidden_.make(first_[e] + static_cast<std::int64_t>(i));
                left_[e].store(0, std::memory_order_release);
            } else {
                const std::int64_t number = piece - count * hidden_pieces;
                const auto e = static_cast<std::size_t>(number / output_pieces);
                const std::int64_t row = number % output_pieces * output_grain;
                await_zero(left_[e]);
                make_output(experts[e], e, row, std::min(output_grain, width - row));
            }
        }
    });
}

void Mixture::make_hidden(const ChosenExpert& expert, std::size_t e, std::int64_t row, std::int64_t rows, const Activations& x) {
    const std::int64_t hidden = expert.gate.rows;
    const auto tokens = static_cast<std::int64_t>(expert.tokens.size());
    float* gate = gate_.data() + first_[e] * hidden;
    float* up = up_.data() + first_[e] * hidden;
    multiply({&expert.gate, row, rows, &x.storage(), expert.tokens.data(), tokens, gate, hidden});
    multiply({&expert.up, row, rows, &x.storage(), expert.tokens.data(), tokens, up, hidden});
    for (std::int64_t i = 0; i < tokens; ++i) swiglu(gate + i * hidden + row, up + i * hidden + row, rows, gate + i * hidden + row);
}

void Mixture::make_output(const ChosenExpert& expert, std::size_t e, std::int64_t row, std::int64_t rows) {
    multiply({&expert.down, row, rows, &hidden_.storage(), row_numbers_.data() + first_[e], static_cast<std::int64_t>(expert.tokens.size()), expert.y,
              expert.y_stride});
}

}  // namespace headroom::cpu
