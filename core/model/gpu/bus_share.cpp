#include "core/model/gpu/bus_share.h"

#include <algorithm>

#include "kernels/arguments.h"

namespace headroom::model {
namespace {

// Until something is known: of eight experts one, which costs little even on a slow bus.
constexpr double kFirst = 1.0 / 8;
constexpr double kMost = 0.9;
// How much a layer counts. A thread or a bus that was held up once makes one layer longer by far: what is long counts less.
constexpr double kOfProcessor = 1.0 / 16, kOfDevice = 1.0 / 4, kLongest = 2;
// A device that is always the first to end is likely to be quicker than was thought; one that reads nothing is tried again after some hundred layers.
constexpr double kSooner = 1.0 / 256, kForgotten = 1.0 / 1024;

std::uint32_t whole(double share) { return static_cast<std::uint32_t>(share * kernels::kWholeShare); }

void take(double& mean, double seconds, double weight) {
    if (mean == 0) mean = seconds;
    else mean += (std::min(seconds, kLongest * mean) - mean) * weight;
}

}  // namespace

BusShare::BusShare(std::optional<double> fixed) : fixed_(fixed), share_(whole(std::clamp(fixed.value_or(kFirst), 0.0, 1.0))) {}

void BusShare::observe(const Observed& layer) {
    by_processor_.fetch_add(static_cast<std::uint64_t>(layer.by_processor), std::memory_order_relaxed);
    by_device_.fetch_add(static_cast<std::uint64_t>(layer.by_device), std::memory_order_relaxed);
    if (fixed_) return;
    if (layer.by_processor > 0) take(processor_, layer.processor_s / static_cast<double>(layer.by_processor), kOfProcessor);
    if (layer.by_device == 0) {
        device_ -= device_ * kForgotten;
    } else if (layer.device_s) {
        take(device_, *layer.device_s / static_cast<double>(layer.by_device), kOfDevice);
    } else {
        const double most = layer.processor_s / static_cast<double>(layer.by_device);
        device_ = device_ == 0 ? most : std::min(device_ - device_ * kSooner, most);
    }
    if (processor_ == 0 || device_ == 0) return;
    // With k of m missing experts the device ends after k d, the processor after (m - k) p. One more is worth it while (k + 1) d < (m - k) p, so the best k is
    // (m + 1) p / (p + d), rounded down.
    share_.store(whole(std::min(kMost, processor_ / (processor_ + device_))), std::memory_order_relaxed);
}

}  // namespace headroom::model
