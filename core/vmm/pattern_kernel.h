#pragma once

#include <cstdint>
#include <string>

#include "core/base/error.h"
#include "core/gpu/driver.h"

namespace headroom::vmm {

// Word i of the pattern with this seed.
[[nodiscard]] constexpr std::uint32_t pattern_word(std::uint64_t i, std::uint32_t seed) noexcept {
    return static_cast<std::uint32_t>(i) * 2654435761u + seed;
}

// The kernels that write a pattern to a piece of VRAM and count what differs from it, on the device that is current.
class PatternKernel {
public:
    // Errors: unsupported where this build has no code for the device's architecture; those of the driver.
    [[nodiscard]] static Result<PatternKernel> load(gpu::Driver& driver, const gpu::DeviceInfo& device);
    PatternKernel(PatternKernel&& other) noexcept;
    PatternKernel& operator=(PatternKernel&&) = delete;
    PatternKernel(const PatternKernel&) = delete;
    PatternKernel& operator=(const PatternKernel&) = delete;
    ~PatternKernel();

    [[nodiscard]] Result<> fill(gpu::DevicePointer at, std::uint64_t bytes, std::uint32_t seed);
    // The number of words that differ.
    [[nodiscard]] Result<std::uint32_t> check(gpu::DevicePointer at, std::uint64_t bytes, std::uint32_t seed);

private:
    explicit PatternKernel(gpu::Driver& driver) noexcept : driver_(&driver) {}

    gpu::Driver* driver_;
    gpu::ModuleHandle module_ = nullptr;
    gpu::FunctionHandle fill_ = nullptr, check_ = nullptr;
    gpu::DevicePointer wrong_ = 0;  // a counter on the device
};

}  // namespace headroom::vmm
