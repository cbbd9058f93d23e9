#include "core/residency/region.h"

#include "core/base/bytes.h"

namespace headroom::residency {

Result<Region> Region::create(gpu::Driver& driver, vmm::SegmentPool* pool, const vmm::Verdict* verdict, std::uint64_t bytes) {
    Region region;
    if (bytes == 0) return region;
    if (pool == nullptr) {
        HR_TRY(region.plain_, gpu::Buffer::create(driver, bytes));
        return region;
    }
    const std::uint64_t granularity = verdict->granularity_recommended;
    HR_TRY(region.arena_, vmm::Arena::create(*pool, {.bytes = bytes, .segment_bytes = (bytes + granularity - 1) / granularity * granularity,
                                                     .granularity = granularity, .access = verdict->access, .host_access = verdict->host_access}));
    return region;
}

}  // namespace headroom::residency
