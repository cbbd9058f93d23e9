#pragma once

#include "core/vmm/arena.h"
#include "core/vmm/verdict.h"

namespace headroom::vmm {

// An arena as the device's verdict says that its memory has to be handled: segments where it is `on`, one slot for everything where it is
// `fixed`. bytes: of addresses, at most verdict.largest_reservation. Before the first segment, this process's open-file limit is raised to what
// segments over the whole card need on this runtime, and the log says so.
// Errors: invalid_argument (`off`: memory has to be allocated the plain way; or bytes 0), those of the driver.
[[nodiscard]] Result<std::unique_ptr<Arena>> create_arena(SegmentPool& pool, const Verdict& verdict, std::uint64_t bytes);

}  // namespace headroom::vmm
