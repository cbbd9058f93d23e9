#include "ui/vram/vram_presets.h"

#include <QCoreApplication>

#include <algorithm>

#include "core/base/bytes.h"

namespace headroom::ui {
namespace {

QString tr(const char* text) { return QCoreApplication::translate("VramPreset", text); }

}  // namespace

QString name_of(VramPreset preset) {
    switch (preset) {
        case VramPreset::everything: return tr("Everything");
        case VramPreset::desktop: return tr("Desktop");
        case VramPreset::gaming: return tr("Gaming");
        case VramPreset::park: return tr("Park");
    }
    return {};
}

QString explanation_of(VramPreset preset) {
    switch (preset) {
        case VramPreset::everything: return tr("the model may take the whole card");
        case VramPreset::desktop: return tr("room for windows and films");
        case VramPreset::gaming: return tr("two thirds of the card for other programs");
        case VramPreset::park: return tr("the whole card for other programs");
    }
    return {};
}

std::optional<std::uint64_t> reserve_of(VramPreset preset, std::uint64_t total_bytes) {
    switch (preset) {
        case VramPreset::everything: return 0;
        case VramPreset::desktop: return std::nullopt;
        case VramPreset::gaming: return total_bytes / MiB * 2 / 3 * MiB;
        case VramPreset::park: return total_bytes;
    }
    return std::nullopt;
}

std::optional<VramPreset> preset_of(const engine::VramDevice& device) {
    const auto* const found = std::ranges::find_if(
        kVramPresets, [&](VramPreset preset) { return device.wish.reserve_bytes == reserve_of(preset, device.total_bytes); });
    return found == kVramPresets.end() ? std::nullopt : std::optional(*found);
}

}  // namespace headroom::ui
