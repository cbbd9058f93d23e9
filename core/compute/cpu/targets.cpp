#include "core/compute/cpu/ops.h"

namespace headroom::cpu {

const char* instruction_set() { return "scalar"; }

}  // namespace headroom::cpu
