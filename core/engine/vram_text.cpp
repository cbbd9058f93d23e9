// The words of reports.

#include <fmt/format.h>

#include "core/base/bytes.h"
#include "core/engine/vram.h"

namespace headroom::engine {
namespace {

std::string grouped(std::int64_t number) {
    std::string digits = std::to_string(number);
    for (std::ptrdiff_t at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3) digits.insert(static_cast<std::size_t>(at), ",");
    return digits;
}

std::string duration(double ms) {
    if (ms < 10) return fmt::format("{:.1f} ms", ms);
    if (ms < 10'000) return fmt::format("{:.0f} ms", ms);
    return fmt::format("{:.1f} s", ms / 1000);
}

}  // namespace

std::string_view to_string(VramCause cause) noexcept {
    switch (cause) {
        case VramCause::load: return "load";
        case VramCause::request: return "request";
        case VramCause::yield: return "yield";
        case VramCause::regrow: return "regrow";
        case VramCause::need: return "need";
    }
    return "request";
}

std::string describe(const VramReport& report) {
    std::string text;
    if (report.own_after < report.own_before) {
        text = fmt::format("Gave back {} in {}", format_bytes(report.own_before - report.own_after), duration(report.total_ms));
    } else if (report.own_after > report.own_before) {
        text = fmt::format("Took back {} in {}", format_bytes(report.own_after - report.own_before), duration(report.total_ms));
    } else {
        text = "Nothing had to change";
    }
    if (report.parked) {
        text += "; parked: nothing is left on the card";
    } else if (report.blocks_total > 0) {
        text += fmt::format("; {} of {} {} on the card", grouped(report.blocks_resident), grouped(report.blocks_total), report.block_name);
    }
    if (!report.met) {
        text += fmt::format(". Wanted {} free, {} are", format_bytes(report.reserve_bytes), format_bytes(report.free_after));
    }
    if (!report.limited_by.empty()) text += fmt::format("{}{}", report.met ? ". Limited: " : ": ", report.limited_by);
    return text;
}

}  // namespace headroom::engine
