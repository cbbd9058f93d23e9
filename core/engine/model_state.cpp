#include "core/engine/model_state.h"

#include <numeric>
#include <span>

#include "core/base/system.h"
#include "core/engine/choose_devices.h"
#include "core/gpu/memory_counter.h"
#include "core/model/gpu/gpu_runner.h"

namespace headroom::engine {
namespace {

// The driver's counter of a card; where there is none, the runtime's figure while a context is there, and the last one after that.
std::function<Result<std::uint64_t>()> free_reader(const model::GpuTarget& target, const gpu::SearchPath& path, std::function<residency::Usage()> usage) {
    std::shared_ptr<gpu::MemoryCounter> counter = gpu::MemoryCounter::open(target.device, path);
    if (counter) {
        return [counter]() -> Result<std::uint64_t> {
            HR_TRY(const gpu::MemoryReading reading, counter->read());
            // Where the system says what this process may have, memory beyond it is no VRAM.
            if (reading.budget && reading.own) return std::min(reading.free, *reading.budget > *reading.own ? *reading.budget - *reading.own : 0);
            return reading.free;
        };
    }
    return [driver = target.driver, index = target.device.index, usage = std::move(usage), last = std::uint64_t{0}]() mutable -> Result<std::uint64_t> {
        if (usage().parked) return last;
        HR_CHECK(driver->make_current(index));
        HR_TRY(const gpu::MemoryInfo info, driver->memory_info());
        last = info.free;
        return last;
    };
}

void attach(VramTarget& target, model::GpuRunner& runner, std::size_t device, const model::GpuTarget& placed, const gpu::SearchPath& path) {
    target.usage = [&runner, device] { return runner.usage(device); };
    target.resize = [&runner, device](std::uint64_t budget, const std::stop_token& superseded) { return runner.resize(device, budget, superseded); };
    target.read_free = free_reader(placed, path, target.usage);
}

}  // namespace

Result<> Model::State::use_devices(const LoadOptions& options, const std::function<void(std::uint64_t)>& copied, const std::stop_token& stop) {
    HR_TRY(ChosenDevices chosen, choose_devices(options, stop));
    const auto make_pool = [&](bool beside_gpu) {
        pool = std::make_unique<ThreadPool>(options.threads > 0 ? options.threads : beside_gpu ? threads_beside_gpu() : physical_cores());
    };
    make_pool(!chosen.targets.empty());
    if (chosen.targets.empty()) return {};
    const std::span<const model::GpuTarget> targets = chosen.targets;
    const auto place = [&](std::size_t count) {
        return model::GpuRunner::create({.transformer = transformer, .pool = *pool, .targets = targets.first(count), .context = info.context,
                                         .progress = copied, .stop = stop});
    };
    // More devices than the model needs would only hand its rows around: the first one alone, if everything fits there.
    auto placed = place(1);
    if (targets.size() > 1 && !(placed && (*placed)->placement().complete())) {
        placed = fail(ErrorKind::internal, "The first device is too small");  // gives its memory back
        placed = place(targets.size());
    }
    if (!placed) {
        if (placed.error().kind == ErrorKind::cancelled) return std::unexpected(placed.error());
        info.warnings.push_back(fmt::format("The model runs on the processor: {}", placed.error().message));
        make_pool(false);
        return {};
    }
    const model::Placement& placement = (*placed)->placement();
    info.experts_total = placement.experts_total;
    for (const model::DevicePart& part : placement.parts) {
        const gpu::DeviceInfo& device = targets[part.device].device;
        info.devices.push_back({.id = device.id, .name = device.name, .layers = static_cast<int>(part.last - part.first),
                                .experts = std::accumulate(part.experts.begin(), part.experts.end(), std::int64_t{0}), .bytes = part.bytes});
    }
    std::vector<VramTarget> watched;
    for (const model::DevicePart& part : placement.parts) {
        VramTarget& target = chosen.watched[part.device];
        attach(target, **placed, part.device, targets[part.device], options.drivers);
        watched.push_back(std::move(target));
    }
    drivers = std::move(chosen.drivers);
    runner = std::move(*placed);
    vram = std::make_shared<VramControl>(std::move(watched), VramWishes(options.data_folder));
    vram->start();
    return {};
}

}  // namespace headroom::engine
