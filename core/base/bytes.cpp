#include "core/base/bytes.h"

#include <array>

#include <fmt/format.h>

namespace headroom {

std::string format_bytes(std::uint64_t bytes) {
    if (bytes < KiB) return fmt::format("{} B", bytes);
    static constexpr std::array units{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = static_cast<double>(bytes) / static_cast<double>(KiB);
    std::size_t unit = 0;
    // 1023.95 would print as "1024.0": it belongs to the next unit.
    while (value >= 1023.95 && unit + 1 < units.size()) {
        value /= static_cast<double>(KiB);
        ++unit;
    }
    return fmt::format("{:.1f} {}", value, units[unit]);
}

}  // namespace headroom
