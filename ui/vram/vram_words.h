#pragma once

#include <QString>

#include <optional>

#include "core/engine/vram.h"

namespace headroom::ui {

// "RTX 4070": who owns a card knows its maker.
[[nodiscard]] QString brief_name(const engine::VramDevice& device);
// What a change of VRAM did, for the line below the bar: "Gave back 4.0 GiB in 31 ms · 2,890 of 6,144 experts on the card".
[[nodiscard]] QString words_of(const engine::VramReport& report);

// What the model would hold, were so much kept free, other programs staying as they are.
[[nodiscard]] std::uint64_t own_at(const engine::VramDevice& device, std::uint64_t reserve_bytes);
// Decode speed with so much held, between the points that were measured; nothing outside of them.
[[nodiscard]] std::optional<double> speed_at(const engine::VramDevice& device, std::uint64_t own_bytes);
// "8.0 GiB free · about 64 tok/s".
[[nodiscard]] QString expectation(const engine::VramDevice& device, std::uint64_t reserve_bytes);

}  // namespace headroom::ui
