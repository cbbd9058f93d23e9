#pragma once

// Runs device code on the processor: every kernel of kernels/*.cu, thread by thread, so that a test needs no GPU and the sanitizers see
// what a kernel does. Shared memory is filled with NaNs before each block (dynamic) or is what the last block left there (static). The
// threads of a block run in ascending order in one block and in descending order in the next, until each waits at a barrier or a warp
// function: a barrier that is missing shows.

#include <string_view>

#include "core/base/error.h"
#include "core/compute/gpu/kernels.h"
#include "core/gpu/driver.h"
#include "tests/simgpu/fixture.h"

namespace headroom::test {

// Whether the unit with this kernel is part of the program.
[[nodiscard]] bool is_emulated(kernels::Kernel kernel);

// Runs one launch to its end. One at a time: launches from several threads wait for each other.
// Errors: not_found; invalid_argument (more threads than the kernel was declared for, not one row of threads); device, where threads do not
// come to the same barrier or warp function: the message says where they are. Device memory is then half written.
[[nodiscard]] Result<> emulate(kernels::Kernel kernel, gpu::Grid grid, gpu::Grid block, unsigned shared_bytes, const void* arguments);

// Makes the simulated driver run the emulated kernels: what Kernels loads from simulated_images() reaches them with its grid. There an error
// ends the program with its message.
void register_emulated_kernels(SimGpu& simulator);
}  // namespace headroom::test
