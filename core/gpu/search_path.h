#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/base/dynamic_library.h"

namespace headroom::gpu {

// Where drivers and their counters are looked for. The default is the system; tests point it at a folder with simulated ones.
struct SearchPath {
    std::filesystem::path libraries;         // empty: the system's own folders; else this folder and nothing beside it
    std::filesystem::path sysfs = "/sys";    // where Linux shows the amdgpu driver's counters

    // The system, unless the environment variable HEADROOM_GPU_LIBRARIES names a folder: then that folder, and its subfolder `sys`.
    // It exists so that the finished programs can be tested where there is no GPU (docs/gpu.md).
    [[nodiscard]] static SearchPath from_environment();
};

// Opens the first of `names` that is there. `places`: further folders of the system to try each name in. Errors: not_found; the message
// lists what was looked for.
[[nodiscard]] Result<DynamicLibrary> open_first(const SearchPath& path, const std::vector<std::string>& names,
                                                const std::vector<std::filesystem::path>& places);

}  // namespace headroom::gpu
