// In place of the compiled kernels, in tests that run the engine on the simulated driver: so they need no compiler of device code. The linker
// takes this definition and leaves that of headroom_kernels in its archive.
#include "tests/simgpu/simulated_images.h"

namespace headroom::kernels {

Images images() noexcept { return test::simulated_images(); }

}  // namespace headroom::kernels
