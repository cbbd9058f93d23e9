#pragma once

// For experts.cpp: the experts of a few tokens grouped by expert, where groups_experts (ops.h) says so.

#include "core/compute/gpu/ops.h"

namespace headroom::kernels {

[[nodiscard]] Result<> few_experts_gate_up(Queue queue, ExpertsGateUpArguments arguments);
// arguments.outputs is given. It may read the choices while the kernel before is at work: that must be few_experts_gate_up.
[[nodiscard]] Result<> few_experts_down(Queue queue, ExpertsDownArguments arguments);

}  // namespace headroom::kernels
