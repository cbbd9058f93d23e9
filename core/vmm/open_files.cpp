#include "core/vmm/open_files.h"

#include "core/base/bytes.h"

namespace headroom::vmm {

OpenFilePlan plan_open_files(std::uint64_t card_bytes, std::uint64_t segment_bytes, std::uint64_t files_per_segment, std::uint64_t in_use,
                             std::uint64_t hard) noexcept {
    constexpr std::uint64_t kept_free = 256;       // models, logs, connections, the window's own
    constexpr std::uint64_t largest_segment = GiB;  // larger ones give VRAM back too coarsely
    OpenFilePlan plan;
    for (;; segment_bytes *= 2) {
        plan.segment_bytes = segment_bytes;
        plan.needed = ((card_bytes + segment_bytes - 1) / segment_bytes) * files_per_segment + in_use + kept_free;
        plan.fits = plan.needed <= hard;
        if (plan.fits || segment_bytes * 2 > largest_segment) return plan;
    }
}

}  // namespace headroom::vmm
