#include "core/vmm/pattern_kernel.h"

#include <algorithm>
#include <utility>

#include "core/vmm/pattern.ptx.h"
#include "core/vmm/pattern_code_objects.h"

namespace headroom::vmm {
namespace {

constexpr unsigned threads = 256;  // pattern.hip relies on it
constexpr unsigned blocks = 1024;

Result<const void*> image(const gpu::DeviceInfo& device) {
    static const std::string ptx = pattern_ptx();
    if (device.backend == gpu::Backend::cuda) return ptx.c_str();
    const std::string architecture = device.architecture.substr(0, device.architecture.find(':'));  // "gfx90a:sramecc+:xnack-"
    if (architecture.starts_with("sm_")) return ptx.c_str();  // the HIP interface on top of NVIDIA's driver
    for (const auto& object : pattern_code_objects()) {
        if (object.architecture == architecture) return object.image;
    }
    return fail(ErrorKind::unsupported, "this build has no kernels for {}", architecture.empty() ? "this device" : architecture);
}

}  // namespace

Result<PatternKernel> PatternKernel::load(gpu::Driver& driver, const gpu::DeviceInfo& device) {
    HR_TRY(const void* code, image(device));
    PatternKernel kernel(driver);
    HR_TRY(kernel.module_, driver.load_module(code));
    HR_TRY(kernel.fill_, driver.function(kernel.module_, "headroom_pattern_fill"));
    HR_TRY(kernel.check_, driver.function(kernel.module_, "headroom_pattern_check"));
    HR_TRY(kernel.wrong_, driver.allocate(sizeof(std::uint32_t)));
    return kernel;
}

PatternKernel::PatternKernel(PatternKernel&& other) noexcept
    : driver_(other.driver_), module_(std::exchange(other.module_, nullptr)), fill_(other.fill_), check_(other.check_),
      wrong_(std::exchange(other.wrong_, 0)) {}

PatternKernel::~PatternKernel() {
    // A second try where the first one fails: nothing else can be done here.
    if (wrong_ && !driver_->free(wrong_)) (void)driver_->free(wrong_);
    if (module_ && !driver_->unload_module(module_)) (void)driver_->unload_module(module_);
}

Result<> PatternKernel::fill(gpu::DevicePointer at, std::uint64_t bytes, std::uint32_t seed) {
    std::uint64_t count = bytes / sizeof(std::uint32_t);
    void* parameters[] = {&at, &count, &seed};
    HR_CHECK(driver_->launch(fill_, {blocks}, {threads}, 0, nullptr, parameters));
    return driver_->synchronize();
}

Result<std::uint32_t> PatternKernel::check(gpu::DevicePointer at, std::uint64_t bytes, std::uint32_t seed) {
    std::uint64_t count = bytes / sizeof(std::uint32_t);
    HR_CHECK(driver_->fill(wrong_, 0, sizeof(std::uint32_t)));
    void* parameters[] = {&at, &count, &seed, &wrong_};
    HR_CHECK(driver_->launch(check_, {blocks}, {threads}, 0, nullptr, parameters));
    std::uint32_t wrong = 0;
    HR_CHECK(driver_->copy_to_host(&wrong, wrong_, sizeof wrong));
    HR_CHECK(driver_->synchronize());
    return wrong;
}

}  // namespace headroom::vmm
