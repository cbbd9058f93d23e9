// Products of weights with one to eight tokens, memory-bound: each weight is read once, by one warp, two rows at a time.

#include "kernels/arguments.h"
#include "kernels/dot.h"

namespace headroom::device {
namespace {

using kernels::ProductArguments;
using kernels::Target;

// Two rows that a warp multiplies: neighbours of one matrix, or the gate's and the up matrix's.
struct Unit {
    const Target* target;
    int row;
};

// Unit number `unit` of all targets; target null: there are not so many.
HR_DEVICE Unit find_unit(const ProductArguments& a, int unit) {
    if (a.swiglu != 0) return {unit < a.targets[0].w.rows ? &a.targets[0] : nullptr, unit};
    for (int i = 0; i < a.target_count; ++i) {
        const int units = (a.targets[i].w.rows + 1) / 2;
        if (unit < units) return {&a.targets[i], 2 * unit};
        unit -= units;
    }
    return {nullptr, 0};
}

HR_DEVICE const std::uint8_t* row_of(const kernels::Matrix& w, int row) { return w.data + static_cast<std::int64_t>(row) * w.row_bytes; }

HR_DEVICE void prefetch_unit(const ProductArguments& a, const Unit& unit) {
    if (unit.target == nullptr) return;
    const kernels::Matrix& w = unit.target->w;
    prefetch(row_of(w, unit.row), a.swiglu == 0 && unit.row + 1 < w.rows ? 2 * w.row_bytes : w.row_bytes);
    if (a.swiglu != 0) prefetch(row_of(a.targets[1].w, unit.row), a.targets[1].w.row_bytes);
}

HR_DEVICE void store(const Target& target, std::int64_t token, int row, float value) {
    if (target.bias != nullptr) value = value + target.bias[row];
    float& y = target.y[token * target.y_stride + row];
    y = target.add != 0 ? y + value : value;
}

// One unit with the tokens of x, the first of which is `first_token`.
template <int T>
HR_DEVICE void multiply(const ProductArguments& a, const Unit& unit, const Inputs<T>& x, int first_token) {
    const Target& target = *unit.target;
    const bool gated = a.swiglu != 0;
    const kernels::Matrix& other = gated ? a.targets[1].w : target.w;
    // The last row of an odd number has no neighbour.
    const bool paired = !gated && unit.row + 1 < target.w.rows;
    const Pair pair = dot_pair<T>(target.w.type, row_of(target.w, unit.row), other.type, row_of(other, unit.row + (paired ? 1 : 0)), x);
    if (!stores_own(x)) return;
    const std::int64_t token = first_token + own_token<T>();
    if (gated) {
        float gate = pair.first, up = pair.second;
        if (target.bias != nullptr) gate = gate + target.bias[unit.row];
        if (a.targets[1].bias != nullptr) up = up + a.targets[1].bias[unit.row];
        target.y[token * target.y_stride + unit.row] = silu(gate) * up;
    } else {
        store(target, token, unit.row, pair.first);
        if (paired) store(target, token, unit.row + 1, pair.second);
    }
}

// The tokens from `first` on, at most T of them.
template <int T>
HR_DEVICE Inputs<T> inputs(const ProductArguments& a, int first) {
    const std::int64_t at = static_cast<std::int64_t>(first) * a.targets[0].w.cols;
    const int left = a.tokens - first;
    return {a.x + at, from(a.groups_256, at, 256), from(a.groups_32, at, 32), a.targets[0].w.cols, (left < T ? left : T) - 1};
}

}  // namespace

// Every block normalises and quantizes the token's row for itself, while its first weights are on the way. Units go round the blocks first,
// so that few of them use the memory of all multiprocessors. Shared memory: see products.cpp.
HR_EARLY_KERNEL(product_row, ProductArguments, 512) {
    const int step = grid_x() * (threads() / kWarp);
    int number = warp() * grid_x() + block_x();
    Unit unit = find_unit(a, number);
    prefetch_unit(a, unit);
    wait_for_previous();

    const int n = a.targets[0].w.cols;
    unsigned char* free = dynamic_shared();
    const auto take = [&](int bytes) {
        unsigned char* taken = free;
        free += (bytes + 15) / 16 * 16;
        return taken;
    };
    Inputs<1> x = {a.x, {}, {}, n, 0};
    float* normed = nullptr;
    if ((a.forms & kernels::kFormFloats) != 0 && a.norm != nullptr) x.x = normed = reinterpret_cast<float*>(take(n * 4));
    const auto take_groups = [&](int elements) {
        auto* codes = reinterpret_cast<std::int8_t*>(take(n));
        auto* scales = reinterpret_cast<float*>(take(n / elements * 4));
        return Quantized{codes, scales, reinterpret_cast<std::int16_t*>(take(n / 16 * 2))};
    };
    if ((a.forms & kernels::kForm256) != 0) x.groups_256 = take_groups(256);
    if ((a.forms & kernels::kForm32) != 0) x.groups_32 = take_groups(32);
    const float inverse = a.norm != nullptr ? 1.0F / sqrt(sum_of_squares(a.x, n) / static_cast<float>(n) + a.epsilon) : 0.0F;
    if (a.norm != nullptr || (a.forms & ~kernels::kFormFloats) != 0) {
        for (int begin = warp() * 256; begin < n; begin += threads() * kShare) {
            const int first = begin + lane() * kShare;
            float v[kShare];
            load_share(a.x, first, n, v);
            if (a.norm != nullptr) {
                float weight[kShare];
                load_share(a.norm, first, n, weight);
                HR_UNROLL
                for (int i = 0; i < kShare; ++i) v[i] = (v[i] * inverse) * weight[i];
            }
            store_forms(normed, x.groups_256, x.groups_32, 0, first, n, v);
        }
    }
    sync();

    while (unit.target != nullptr) {
        number += step;
        const Unit next = find_unit(a, number);
        prefetch_unit(a, next);
        multiply(a, unit, x, 0);
        unit = next;
    }
}

// A row of blocks for each pass of up to eight tokens.
HR_KERNEL(product_rows, ProductArguments, 256) {
    const int step = grid_x() * (threads() / kWarp);
    const int first = block_y() * 8;
    const int tokens = a.tokens - first;
    int number = warp() * grid_x() + block_x();
    Unit unit = find_unit(a, number);
    while (unit.target != nullptr) {
        number += step;
        const Unit next = find_unit(a, number);
        prefetch_unit(a, next);
        if (tokens <= 2) {
            multiply(a, unit, inputs<2>(a, first), first);
        } else if (tokens <= 4) {
            multiply(a, unit, inputs<4>(a, first), first);
        } else {
            multiply(a, unit, inputs<8>(a, first), first);
        }
        unit = next;
    }
}

}  // namespace headroom::device
