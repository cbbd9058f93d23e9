#include "core/vmm/address_range.h"

#include <utility>

#include <spdlog/spdlog.h>

#include "core/base/bytes.h"

namespace headroom::vmm {

Result<AddressRange> AddressRange::reserve(gpu::Driver& driver, int device, std::uint64_t bytes) {
    AddressRange range;
    HR_TRY(range.base_, driver.reserve(device, bytes));
    range.driver_ = &driver;
    range.device_ = device;
    range.bytes_ = bytes;
    return range;
}

Result<AddressRange> AddressRange::reserve_up_to(gpu::Driver& driver, int device, std::uint64_t bytes, std::uint64_t least,
                                                 std::uint64_t step, std::string& refusal) {
    for (;;) {
        auto range = reserve(driver, device, bytes);
        if (!range && refusal.empty()) refusal = range.error().message;
        const auto half = checked_round_up(bytes / 2, step);
        if (range || !half || *half >= bytes || *half < least) return range;
        bytes = *half;
    }
}

AddressRange::AddressRange(AddressRange&& other) noexcept
    : driver_(std::exchange(other.driver_, nullptr)), device_(other.device_), base_(std::exchange(other.base_, 0)),
      bytes_(std::exchange(other.bytes_, 0)) {}

AddressRange& AddressRange::operator=(AddressRange&& other) noexcept {
    std::swap(driver_, other.driver_);
    std::swap(device_, other.device_);
    std::swap(base_, other.base_);
    std::swap(bytes_, other.bytes_);
    return *this;
}

AddressRange::~AddressRange() {
    if (!driver_ || free()) return;
    if (const auto again = free(); !again) spdlog::error("Addresses stay reserved until the program ends: {}", again.error().message);
}

Result<> AddressRange::free() {
    if (!driver_) return {};
    HR_CHECK(driver_->free_addresses(device_, base_, bytes_));
    driver_ = nullptr;
    base_ = bytes_ = 0;
    return {};
}

}  // namespace headroom::vmm
