#include "core/compute/cpu/simd.h"

#include <hwy/highway.h>
#include <hwy/targets.h>

#include "core/compute/cpu/ops.h"

namespace headroom::cpu {

const char* instruction_set() {
    const std::int64_t usable = hwy::SupportedTargets() & HWY_TARGETS;
    return hwy::TargetName(usable & -usable);  // the lowest bit is the best target
}

}  // namespace headroom::cpu
