#pragma once

// Which GPUs a model is loaded to.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/gpu/driver.h"
#include "core/gpu/search_path.h"
#include "core/model/gpu/gpu_runner.h"

namespace headroom::engine {

// VRAM that other programs are left where nobody said how much: enough for a desktop with a browser.
inline constexpr std::uint64_t kDefaultReserve = std::uint64_t{1} << 30;

struct ChosenDevices {
    std::vector<std::unique_ptr<gpu::Driver>> drivers;
    std::vector<model::GpuTarget> targets;  // point into drivers; empty: the processor alone
};

// wanted: "cpu", "auto" (the default device of the machine first, then the other cards of its driver; an integrated GPU is left alone: it
// has the processor's own RAM), or a device's id ("cuda:0"). reserve_bytes: for each device. Errors: not_found (with the ids that are
// there), invalid_argument. With "auto" a machine without a GPU is no error.
[[nodiscard]] Result<ChosenDevices> choose_devices(std::string_view wanted, std::optional<std::uint64_t> reserve_bytes, const gpu::SearchPath& path);

}  // namespace headroom::engine
