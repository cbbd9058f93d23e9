#pragma once

#include "core/compute/cpu/simd.h"

#include <hwy/highway.h>
#include <hwy/targets.h>

// Runs body(name) once with each instruction set that this processor has and the kernels are built for.
template <class Body>
void forEachTarget(Body body) {
    for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
        hwy::SetSupportedTargetsForTest(target);
        hwy::GetChosenTarget().Update(target);
        body(hwy::TargetName(target));
        hwy::SetSupportedTargetsForTest(0);
        hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    }
}
