#include "ui/vram/vram_history.h"

namespace headroom::ui {

void VramHistory::add(std::int64_t second, const engine::VramDevice& device, double tokens_per_second) {
    if (!samples_.empty() && second <= samples_.back().second) return;
    samples_.push_back({.second = second, .total = device.total_bytes, .others = device.others_bytes(), .kv = device.kv_bytes,
                        .weights = device.weights_bytes, .scratch = device.scratch_bytes, .tokens_per_second = tokens_per_second});
    while (samples_.front().second <= second - kSeconds) samples_.pop_front();
}

}  // namespace headroom::ui
