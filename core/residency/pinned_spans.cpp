#include "core/residency/pinned_spans.h"

#include <algorithm>
#include <iterator>

#include <spdlog/spdlog.h>

#include "core/base/bytes.h"
#include "core/base/system.h"

namespace headroom::residency {
namespace {

constexpr std::uintptr_t kPage = 4096;
constexpr std::uintptr_t kPiece = 256 * MiB;  // some 10 ms each: a driver may hold others up meanwhile

}  // namespace

PinnedSpans::~PinnedSpans() {
    for (const auto& [address, piece] : pieces_) {
        const auto* pointer = reinterpret_cast<const void*>(address);
        if (!driver_->unregister_host(pointer)) (void)driver_->unregister_host(pointer);
    }
}

void PinnedSpans::register_all(std::span<const std::span<const std::byte>> spans, const std::stop_token& stop) {
    // Whole pages, neighbours together: no page may be registered twice.
    std::vector<std::pair<std::uintptr_t, std::uintptr_t>> ranges;
    for (const auto& span : spans) {
        const auto begin = reinterpret_cast<std::uintptr_t>(span.data());
        if (!span.empty()) ranges.emplace_back(begin / kPage * kPage, (begin + span.size() + kPage - 1) / kPage * kPage);
    }
    std::ranges::sort(ranges);
    std::vector<std::pair<std::uintptr_t, std::uintptr_t>> joined;
    std::uintptr_t total = 0;
    for (const auto& [begin, end] : ranges) {
        if (!joined.empty() && begin <= joined.back().second) joined.back().second = std::max(joined.back().second, end);
        else joined.emplace_back(begin, end);
    }
    for (const auto& [begin, end] : joined) total += end - begin;
    if (const std::uint64_t ram = total_ram(); ram > 0 && static_cast<double>(total) > kMostOfRam * static_cast<double>(ram)) {
        spdlog::info("The model's file is not registered with the GPU's driver: its {} are most of the {} of RAM", format_bytes(total), format_bytes(ram));
        return;
    }
    for (auto [begin, end] : joined) {
        for (; begin < end; begin += std::min(kPiece, end - begin)) {
            if (stop.stop_requested()) return;
            std::uintptr_t at = begin;
            std::uint64_t bytes = std::min(kPiece, end - begin);
            auto done = driver_->register_host(reinterpret_cast<const void*>(at), bytes, true);
            if (!done && bytes > 2 * kPage) {
                // Another device's layers may lie on the first and the last page too, and have them registered already.
                at += kPage;
                bytes -= 2 * kPage;
                if (driver_->register_host(reinterpret_cast<const void*>(at), bytes, true)) done = {};
            }
            if (!done) {
                spdlog::info("Copies to the GPU are staged from here on: {}", done.error().message);
                return;
            }
            const auto device = driver_->host_device_pointer(reinterpret_cast<void*>(at));
            const std::scoped_lock lock(mutex_);
            pieces_.emplace(at, Piece{.bytes = bytes, .device = device.value_or(0)});
        }
    }
}

PinnedSpans::Stretch PinnedSpans::stretch(const void* from, std::uint64_t bytes) const {
    const auto at = reinterpret_cast<std::uintptr_t>(from);
    const std::scoped_lock lock(mutex_);
    const auto next = pieces_.upper_bound(at);
    if (next != pieces_.begin()) {
        const auto piece = std::prev(next);
        if (at < piece->first + piece->second.bytes) return {.bytes = std::min<std::uint64_t>(bytes, piece->first + piece->second.bytes - at), .registered = true};
    }
    return {.bytes = next == pieces_.end() ? bytes : std::min<std::uint64_t>(bytes, next->first - at), .registered = false};
}

gpu::DevicePointer PinnedSpans::on_device(const void* from, std::uint64_t bytes) const {
    const auto at = reinterpret_cast<std::uintptr_t>(from);
    const std::scoped_lock lock(mutex_);
    auto piece = pieces_.upper_bound(at);
    if (piece == pieces_.begin()) return 0;
    --piece;
    const std::uintptr_t base = piece->first;
    const gpu::DevicePointer device = piece->second.device;
    // Neighbouring pieces are as good as one where kernels see them as neighbours too.
    for (std::uintptr_t end = base; device != 0; ++piece) {
        if (piece == pieces_.end() || piece->first != end || piece->second.device != device + (end - base)) return 0;
        end += piece->second.bytes;
        if (at + bytes <= end) return device + (at - base);
    }
    return 0;
}

}  // namespace headroom::residency
