#include "tests/simgpu/simulated_images.h"

namespace headroom::test {

kernels::Images simulated_images() noexcept {
    // How a bundle of code objects begins: the simulator does not look for names in one.
    static const char bundle[] = "__CLANG_OFFLOAD_BUNDLE__";
    static const auto* data = reinterpret_cast<const unsigned char*>(bundle);
    static const kernels::Image images[] = {{"simulated", "cuda", data, sizeof bundle}, {"simulated", "gfx1100", data, sizeof bundle}};
    return {.images = images, .cuda_code = "", .cuda_ptx = "50"};
}

}  // namespace headroom::test
