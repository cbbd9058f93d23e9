#pragma once

// The kernels of this build on one device: the module is loaded once, the functions are found by name.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/base/error.h"
#include "core/gpu/driver.h"
#include "kernels/arguments.h"

namespace headroom::kernels {

enum class Kernel : std::uint8_t {
#define HR_KERNEL(name, arguments) name,
    HR_KERNELS(HR_KERNEL)
#undef HR_KERNEL
};
inline constexpr std::size_t kKernelCount = 0
#define HR_KERNEL(name, arguments) +1
    HR_KERNELS(HR_KERNEL)
#undef HR_KERNEL
    ;

// Used from the threads in which the device is current; launching is as safe from several threads as the driver is.
class Kernels {
public:
    // Loads the code for the device, which must be current. Errors: unsupported (this build has none for it: the message says for what it
    // was built), those of the driver.
    [[nodiscard]] static Result<std::unique_ptr<Kernels>> load(gpu::Driver& driver, const gpu::DeviceInfo& device);
    ~Kernels();
    Kernels(const Kernels&) = delete;
    Kernels& operator=(const Kernels&) = delete;

    [[nodiscard]] gpu::Driver& driver() const noexcept { return driver_; }
    [[nodiscard]] const gpu::DeviceInfo& device() const noexcept { return device_; }

    // Enqueues one kernel. arguments: the structure that HR_KERNELS names for it; copied before the call returns.
    template <class Arguments>
    [[nodiscard]] Result<> launch(Kernel kernel, gpu::Grid grid, gpu::Grid block, unsigned shared_bytes, gpu::StreamHandle stream,
                                  const Arguments& arguments) {
        return launch(kernel, grid, block, shared_bytes, stream, &arguments, sizeof arguments);
    }
    // The most dynamic shared memory a block may have here.
    [[nodiscard]] unsigned shared_limit() const noexcept { return shared_limit_; }

private:
    Kernels(gpu::Driver& driver, const gpu::DeviceInfo& device) : driver_(driver), device_(device) {}
    [[nodiscard]] Result<> launch(Kernel kernel, gpu::Grid grid, gpu::Grid block, unsigned shared_bytes, gpu::StreamHandle stream,
                                  const void* arguments, std::size_t bytes);

    gpu::Driver& driver_;
    const gpu::DeviceInfo device_;
    gpu::ModuleHandle module_ = nullptr;
    std::array<gpu::FunctionHandle, kKernelCount> functions_{};
    std::array<unsigned, kKernelCount> allowed_shared_{};  // allow_shared_memory was called for so much
    unsigned shared_limit_ = 48 * 1024;
};

}  // namespace headroom::kernels
