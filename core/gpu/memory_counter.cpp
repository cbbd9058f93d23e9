#include "core/gpu/memory_counter.h"

#include <algorithm>

#include "core/gpu/amdgpu.h"
#include "core/gpu/nvml.h"
#include "core/gpu/video_memory.h"

namespace headroom::gpu {
namespace {

// NVML knows what all programs use; DXGI knows how much of the card Windows lets this process have.
class BudgetedCounter final : public MemoryCounter {
public:
    BudgetedCounter(std::unique_ptr<MemoryCounter> card, std::unique_ptr<MemoryCounter> budget)
        : card_(std::move(card)), budget_(std::move(budget)) {}
    std::string_view name() const noexcept override { return card_->name(); }

    Result<MemoryReading> read() override {
        HR_TRY(auto reading, card_->read());
        if (const auto budget = budget_->read()) {
            reading.own = budget->own;
            reading.budget = budget->budget;
            reading.free = std::min(reading.free, budget->free);
        }
        return reading;
    }

private:
    std::unique_ptr<MemoryCounter> card_, budget_;
};

}  // namespace

std::unique_ptr<MemoryCounter> MemoryCounter::open(const DeviceInfo& device, const SearchPath& path) {
    if (device.backend == Backend::hip) {
        if (auto counter = open_amdgpu_counter(device, path)) return counter;
    }
    auto card = open_nvml_counter(device, path);  // also where the HIP runtime drives an NVIDIA card
    // A folder of simulated drivers has simulated cards: the system's adapters are not those.
    auto budget = path.libraries.empty() ? open_video_memory_counter(device) : nullptr;
    if (card && budget) return std::make_unique<BudgetedCounter>(std::move(card), std::move(budget));
    return card ? std::move(card) : std::move(budget);
}

}  // namespace headroom::gpu
