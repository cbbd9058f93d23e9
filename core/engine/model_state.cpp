#include "core/engine/model_state.h"

#include <numeric>
#include <span>

#include "core/engine/choose_devices.h"
#include "core/model/gpu/gpu_runner.h"

namespace headroom::engine {

Result<> Model::State::use_devices(const LoadOptions& options, const std::function<void(std::uint64_t)>& copied, const std::stop_token& stop) {
    HR_TRY(ChosenDevices chosen, choose_devices(options.device, options.reserve_bytes, options.drivers));
    if (chosen.targets.empty()) return {};
    const std::span<const model::GpuTarget> targets = chosen.targets;
    const auto place = [&](std::size_t count) {
        return model::GpuRunner::create({.transformer = transformer, .pool = pool, .targets = targets.first(count), .context = info.context,
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
        return {};
    }
    const model::Placement& placement = (*placed)->placement();
    info.experts_total = placement.experts_total;
    for (const model::DevicePart& part : placement.parts) {
        const gpu::DeviceInfo& device = targets[part.device].device;
        info.devices.push_back({.id = device.id, .name = device.name, .layers = static_cast<int>(part.last - part.first),
                                .experts = std::accumulate(part.experts.begin(), part.experts.end(), std::int64_t{0}), .bytes = part.bytes});
    }
    drivers = std::move(chosen.drivers);
    runner = std::move(*placed);
    return {};
}

}  // namespace headroom::engine
