#pragma once

#include <QBrush>
#include <QString>

#include "core/engine/vram.h"
#include "ui/theme/theme.h"

namespace headroom::ui {

// Whose VRAM it is, in the order in which it is drawn from the leading edge.
enum class VramOwner { others, kv, weights, scratch };
inline constexpr VramOwner kVramOwners[] = {VramOwner::others, VramOwner::kv, VramOwner::weights, VramOwner::scratch};

[[nodiscard]] ColorRole color_of(VramOwner owner);
[[nodiscard]] QString name_of(VramOwner owner);        // a word, for a label
[[nodiscard]] QString long_name_of(VramOwner owner);   // "Other programs"
[[nodiscard]] std::uint64_t bytes_of(const engine::VramDevice& device, VramOwner owner);
// Owners and what is free, with their colours as small squares, as rich text.
[[nodiscard]] QString legend_of(const Theme& theme, const engine::VramDevice& device);
// What is kept free for other programs.
[[nodiscard]] QBrush hatching(const Theme& theme, double device_pixel_ratio);

}  // namespace headroom::ui
