#pragma once

#include <QString>

#include <array>
#include <optional>

#include "core/engine/vram.h"

namespace headroom::ui {

// Ways to share a card with other programs, by name.
enum class VramPreset {
    everything,  // nothing is kept free
    desktop,     // the default
    gaming,      // two thirds of the card are kept free
    park,        // all of it: the model stays in RAM
};
inline constexpr std::array kVramPresets{VramPreset::everything, VramPreset::desktop, VramPreset::gaming, VramPreset::park};

[[nodiscard]] QString name_of(VramPreset preset);
[[nodiscard]] QString explanation_of(VramPreset preset);  // a short sentence
// As engine::VramWish::reserve_bytes.
[[nodiscard]] std::optional<std::uint64_t> reserve_of(VramPreset preset, std::uint64_t total_bytes);
// The one that a device is set to, if any.
[[nodiscard]] std::optional<VramPreset> preset_of(const engine::VramDevice& device);

}  // namespace headroom::ui
