#pragma once

// What Linux's amdgpu driver shows about a card in sysfs.

#include <memory>
#include <string>
#include <vector>

#include "core/gpu/memory_counter.h"

namespace headroom::gpu {

// "6.12.12" of /sys/module/amdgpu/version where AMD's own driver is installed, else the kernel's: "Linux 6.8.0"; empty elsewhere.
[[nodiscard]] std::string amdgpu_driver_version(const SearchPath& path);

// The PCI addresses of the cards it drives ("0000:03:00.0"), sorted.
[[nodiscard]] std::vector<std::string> amdgpu_buses(const SearchPath& path);

// Null where the card has no such files (another vendor's card, Windows, a container without /sys).
[[nodiscard]] std::unique_ptr<MemoryCounter> open_amdgpu_counter(const DeviceInfo& device, const SearchPath& path);

}  // namespace headroom::gpu
