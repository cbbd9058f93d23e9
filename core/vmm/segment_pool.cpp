#include "core/vmm/segment_pool.h"

#include <spdlog/spdlog.h>

namespace headroom::vmm {

SegmentPool::~SegmentPool() {
    if (trim()) return;
    if (const auto again = trim(); !again) spdlog::error("VRAM stays taken until the program ends: {}", again.error().message);
}

Result<Segment> SegmentPool::take(std::uint64_t bytes) {
    if (const auto spare = spare_.find(bytes); spare != spare_.end() && !spare->second.empty()) {
        Segment segment = std::move(spare->second.back());
        spare->second.pop_back();
        spare_bytes_ -= bytes;
        return segment;
    }
    HR_TRY(const auto handle, driver_->create_segment(device_, bytes));
    total_bytes_ += bytes;
    return Segment(handle, bytes);
}

void SegmentPool::give_back(Segment segment) {
    spare_bytes_ += segment.bytes();
    spare_[segment.bytes()].push_back(std::move(segment));
}

Result<std::uint64_t> SegmentPool::trim(std::uint64_t keep) {
    std::uint64_t released = 0;
    for (auto& [bytes, segments] : spare_) {
        while (!segments.empty() && spare_bytes_ > keep) {
            HR_CHECK(driver_->release_segment(device_, segments.back().handle()));
            segments.pop_back();
            spare_bytes_ -= bytes;
            total_bytes_ -= bytes;
            released += bytes;
        }
    }
    return released;
}

}  // namespace headroom::vmm
