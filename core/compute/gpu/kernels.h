#pragma once

// The kernels of this build on one device: the modules are loaded once, the functions are found by name.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/gpu/driver.h"
#include "kernels/arguments.h"
#include "kernels/images.h"

namespace headroom::kernels {

enum class Kernel : std::uint8_t {
#define HR_NAME(name, arguments) name,
    HR_KERNELS(HR_NAME)
#undef HR_NAME
};
inline constexpr std::size_t kKernelCount = 0
#define HR_ONE(name, arguments) +1
    HR_KERNELS(HR_ONE)
#undef HR_ONE
    ;

// "argmax_rows", without the "headroom_" that it has in a module.
[[nodiscard]] std::string_view to_string(Kernel kernel) noexcept;
// The size of the structure that HR_KERNELS names for it.
[[nodiscard]] std::size_t argument_bytes(Kernel kernel) noexcept;

// Used from the threads in which the device is current; launching is as safe from several threads as the driver is.
class Kernels {
public:
    // Loads the code for the device, which must be current. Errors: unsupported (this build has none for it: the message says for what it
    // was built), those of the driver.
    [[nodiscard]] static Result<std::unique_ptr<Kernels>> load(gpu::Driver& driver, const gpu::DeviceInfo& device,
                                                               const Images& code = images());
    ~Kernels();
    Kernels(const Kernels&) = delete;
    Kernels& operator=(const Kernels&) = delete;

    [[nodiscard]] gpu::Driver& driver() const noexcept { return driver_; }
    [[nodiscard]] const gpu::DeviceInfo& device() const noexcept { return device_; }

    // Enqueues one kernel. arguments: the structure that HR_KERNELS names for it; copied before the call returns.
    // Errors: invalid_argument (another structure, more shared memory than shared_limit), those of the driver.
    template <class Arguments>
    [[nodiscard]] Result<> launch(Kernel kernel, gpu::Grid grid, gpu::Grid block, unsigned shared_bytes, gpu::StreamHandle stream,
                                  const Arguments& arguments) {
        return launch(kernel, grid, block, shared_bytes, stream, &arguments, sizeof arguments);
    }
    // The most dynamic shared memory a block may have here.
    [[nodiscard]] unsigned shared_limit() const noexcept { return shared_limit_; }

private:
    Kernels(gpu::Driver& driver, const gpu::DeviceInfo& device);
    [[nodiscard]] Result<> launch(Kernel kernel, gpu::Grid grid, gpu::Grid block, unsigned shared_bytes, gpu::StreamHandle stream,
                                  const void* arguments, std::size_t bytes);

    gpu::Driver& driver_;
    const gpu::DeviceInfo device_;
    std::vector<gpu::ModuleHandle> modules_;
    std::array<gpu::FunctionHandle, kKernelCount> functions_{};
    std::array<std::atomic<unsigned>, kKernelCount> allowed_shared_{};  // allow_shared_memory was called for so much
    std::mutex allowing_;  // held while allow_shared_memory is called, so that a smaller permission never follows a larger one
    unsigned shared_limit_;
    bool overlapping_;  // every kernel waits for the one before by itself (kernels/portable.h)
};

}  // namespace headroom::kernels
