#pragma once

// All GPUs of the machine, as far as their memory is concerned, whether or not a model lies on them.

#include <filesystem>
#include <vector>

#include "core/engine/vram.h"
#include "core/gpu/search_path.h"

namespace headroom::engine {

// CUDA's devices, then HIP's, without any model's share: verdict and reason as they were kept in data_folder (empty, or not tested yet: "off",
// and the reason says so), what is free by the driver's counter, the reserve and the cap that a model would find there. Tests nothing and makes
// no context; the first call may load the drivers (a second). One thread at a time.
[[nodiscard]] std::vector<VramDevice> machine_vram(const gpu::SearchPath& drivers, const std::filesystem::path& data_folder);

}  // namespace headroom::engine
