#pragma once

#include "core/base/error.h"
#include "core/gpu/driver.h"

namespace headroom::vmm {

// Addresses of a device, reserved once and freed whole. Nothing is behind them until segments are mapped.
// The driver has to outlive the object.
class AddressRange {
public:
    // bytes: a multiple of the granularity. Errors: those of the driver's reserve call.
    [[nodiscard]] static Result<AddressRange> reserve(gpu::Driver& driver, int device, std::uint64_t bytes);
    // Tries `bytes`, then half of it (rounded up to `step`) and so on down to `least`: some systems refuse large reservations while VRAM
    // is free. refusal: gets the message of the first refusal, if there was one. Errors: that of the last try.
    [[nodiscard]] static Result<AddressRange> reserve_up_to(gpu::Driver& driver, int device, std::uint64_t bytes, std::uint64_t least,
                                                            std::uint64_t step, std::string& refusal);

    AddressRange() = default;
    AddressRange(AddressRange&& other) noexcept;
    AddressRange& operator=(AddressRange&& other) noexcept;
    AddressRange(const AddressRange&) = delete;
    AddressRange& operator=(const AddressRange&) = delete;
    ~AddressRange();  // frees; a failure is tried once more and then logged

    // Frees the addresses; nothing may be mapped. On failure the object still holds them.
    [[nodiscard]] Result<> free();

    [[nodiscard]] gpu::DevicePointer base() const noexcept { return base_; }
    [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

private:
    gpu::Driver* driver_ = nullptr;
    int device_ = 0;
    gpu::DevicePointer base_ = 0;
    std::uint64_t bytes_ = 0;
};

}  // namespace headroom::vmm
