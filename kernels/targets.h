#pragma once

// Where products go.

#include "kernels/arguments.h"
#include "kernels/portable.h"

namespace headroom::device {

using kernels::Target;

// The product of row `row` with token `token`.
HR_DEVICE void store(const Target& target, std::int64_t token, int row, float value) {
    if (target.bias != nullptr) value = value + target.bias[row];
    float& y = target.y[token * target.y_stride + row];
    y = target.add != 0 ? y + value : value;
}

}  // namespace headroom::device
