#pragma once

#include <cstdint>
#include <deque>

#include "core/engine/vram.h"

namespace headroom::ui {

// A card at one moment: VRAM by owner, in bytes, and how fast the model answered.
struct VramSample {
    std::int64_t second = 0;          // of a clock that never goes back
    std::uint64_t total = 0, others = 0, kv = 0, weights = 0, scratch = 0;
    double tokens_per_second = 0;     // 0: it did not answer
};

// The last ten minutes of a card, a sample a second. A second without one is a gap.
class VramHistory {
public:
    static constexpr std::int64_t kSeconds = 600;

    // Nothing where there is a sample of this second, or of a later one.
    void add(std::int64_t second, const engine::VramDevice& device, double tokens_per_second);

    [[nodiscard]] const std::deque<VramSample>& samples() const noexcept { return samples_; }  // ascending

private:
    std::deque<VramSample> samples_;
};

}  // namespace headroom::ui
