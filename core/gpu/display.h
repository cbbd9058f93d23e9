#pragma once

#include "core/gpu/device.h"
#include "core/gpu/search_path.h"

namespace headroom::gpu {

// Whether a screen hangs on the card, as the kernel's files say (Linux); where nobody tells, one is assumed.
[[nodiscard]] bool has_display(const DeviceInfo& device, const SearchPath& path);

}  // namespace headroom::gpu
