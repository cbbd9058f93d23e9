#pragma once

#include "kernels/images.h"

namespace headroom::test {

// For Kernels::load on a simulated device, whatever this build was compiled with: an image in which the simulator finds every kernel that it
// knows. A test whose program loads kernels by itself is linked with headroom_simulated_images, which makes this the build's images().
[[nodiscard]] kernels::Images simulated_images() noexcept;

}  // namespace headroom::test
