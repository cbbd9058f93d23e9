#pragma once

// How many of a layer's missing experts the device reads from the host's memory by itself, while the processor computes the others: so many that both
// end together, by what earlier layers took.

#include <atomic>
#include <cstdint>
#include <optional>

namespace headroom::model {

// Choices of experts that were missing on a device, by who computed them, in layers in which the processor had some.
struct MissingChoices {
    std::uint64_t by_processor = 0, by_device = 0;
};

class BusShare {
public:
    // fixed: a share that stays, 0 to 1, of HandOverArguments; null: what is observed decides.
    explicit BusShare(std::optional<double> fixed);

    // Of a layer.
    struct Observed {
        std::int64_t by_device = 0, by_processor = 0;  // missing experts
        double processor_s = 0;                        // from the device's question to the answer
        std::optional<double> device_s;                // from the question to the end of what the device computed; null: that was before the answer
    };
    // One thread.
    void observe(const Observed& layer);
    // For the steps to come, in kernels::kWholeShare-ths. Any thread.
    [[nodiscard]] std::uint32_t now() const noexcept { return share_.load(std::memory_order_relaxed); }

    // Any thread.
    [[nodiscard]] MissingChoices counted() const noexcept {
        return {.by_processor = by_processor_.load(std::memory_order_relaxed), .by_device = by_device_.load(std::memory_order_relaxed)};
    }

private:
    std::optional<double> fixed_;
    double processor_ = 0, device_ = 0;  // seconds for an expert; 0: not known yet
    std::atomic<std::uint32_t> share_;
    std::atomic<std::uint64_t> by_processor_{0}, by_device_{0};
};

}  // namespace headroom::model
