#pragma once

// Which GPUs a model is loaded to.

#include <memory>
#include <stop_token>
#include <vector>

#include "core/engine/engine.h"
#include "core/engine/vram_control.h"
#include "core/gpu/driver.h"
#include "core/model/gpu/gpu_runner.h"

namespace headroom::engine {

struct ChosenDevices {
    std::vector<std::unique_ptr<gpu::Driver>> drivers;
    std::vector<model::GpuTarget> targets;  // point into drivers; empty: the processor alone
    std::vector<VramTarget> watched;        // of each target, without the functions
};

// options.device: "cpu", "auto" (the default device of the machine first, then the other cards of its driver; an integrated GPU is left alone:
// it has the processor's own RAM), or a device's id ("cuda:0"). Reserve and cap are those of the options, else what was kept for the card, else
// the default. A device that was never tested is tested now, in a child process (seconds), if there is a data folder. Errors: not_found (with the
// ids that are there), invalid_argument. With "auto" a machine without a GPU is no error.
[[nodiscard]] Result<ChosenDevices> choose_devices(const LoadOptions& options, const std::stop_token& stop);

}  // namespace headroom::engine
