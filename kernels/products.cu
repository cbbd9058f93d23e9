// Products of weights with one to eight tokens, memory-bound: each weight is read once, by one warp, two rows at a time.

#include "kernels/arguments.h"
#include "kernels/dot.h"
#include "kernels/targets.h"

namespace headroom::device {
namespace {

using kernels::ProductArguments;

HR_DEVICE const std::uint8_t* row_of(const kernels::Matrix& w, int row) { return w.data + static_cast<std::int64_t>(row) * w.row_bytes; }

// How the warps of a grid share the targets. A unit is two neighbouring rows of a target, the last row of an odd number by itself; units
// are numbered through all targets and dealt to the warps, blocks first, so that few of them use the memory of all multiprocessors. Of a
// gate and an up matrix it is a row of each; where their types differ, the gate's products are stored first, and the same lane then comes
// with the up row's.
struct Deal {
    int number, step;  // the warp's first unit, and how many there are between two of its units
    bool gated, alike;

    HR_DEVICE explicit Deal(const ProductArguments& a)
        : number(warp() * grid_x() + block_x()), step(grid_x() * (threads() / kWarp)), gated(a.swiglu != 0),
          alike(a.targets[0].w.type == a.targets[1].w.type) {}
    HR_DEVICE int passes(const ProductArguments& a) const { return gated ? (alike ? 1 : 2) : a.target_count; }
    HR_DEVICE int units(const Target& target) const { return gated ? target.w.rows : (target.w.rows + 1) / 2; }
    // The first unit of this warp in a target whose first unit has number `before`.
    HR_DEVICE int first(int before) const { return number >= before ? number - before : step - 1 - (before - number - 1) % step; }
    HR_DEVICE void rows(const ProductArguments& a, int pass, int unit, const std::uint8_t* (&at)[2]) const {
        const kernels::Matrix& w = a.targets[pass].w;
        if (gated) {
            at[0] = row_of(w, unit);
            at[1] = alike ? row_of(a.targets[1].w, unit) : at[0];
        } else {
            at[0] = row_of(w, 2 * unit);
            at[1] = 2 * unit + 1 < w.rows ? at[0] + w.row_bytes : at[0];
        }
    }
};

template <int T>
HR_DEVICE void run_targets(const ProductArguments& a, const Deal& deal, const Inputs<T>& x, int first_token) {
    int before = 0;
    for (int pass = 0; pass < deal.passes(a); ++pass) {
        const Target& target = a.targets[pass];
        const int units = deal.units(target);
        const auto emit = [&](int unit, const Pair& pair) {
            if (!stores_own(x)) return;
            const std::int64_t token = first_token + own_token<T>();
            if (!deal.gated) {
                store(target, token, 2 * unit, pair.first);
                if (2 * unit + 1 < target.w.rows) store(target, token, 2 * unit + 1, pair.second);
                return;
            }
            const float* bias = target.bias;
            float value = bias != nullptr ? pair.first + bias[unit] : pair.first;
            float& y = a.targets[0].y[token * a.targets[0].y_stride + unit];
            if (deal.alike) {
                const float* up_bias = a.targets[1].bias;
                value = silu(value) * (up_bias != nullptr ? pair.second + up_bias[unit] : pair.second);
            } else if (pass == 1) {
                value = silu(y) * value;
            }
            y = value;
        };
        run_units<T>(
            target.w.type, x, deal.gated ? deal.number : deal.first(before), deal.step, units,
            [&](int unit, const std::uint8_t*(&at)[2]) { deal.rows(a, pass, unit, at); }, emit);
        before += units;
    }
}

// Asks for the warp's first rows.
HR_DEVICE void prefetch_first(const ProductArguments& a, const Deal& deal) {
    int before = 0;
    for (int pass = 0; pass < deal.passes(a); ++pass) {
        const Target& target = a.targets[pass];
        const int units = deal.units(target), unit = deal.number - before;
        if (unit >= 0 && unit < units) {
            const std::uint8_t* at[2];
            deal.rows(a, pass, unit, at);
            prefetch(at[0], target.w.row_bytes);
            if (at[1] != at[0]) prefetch(at[1], target.w.row_bytes);
        }
        before += units;
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

// Every block normalises and quantizes the token's row for itself, while its first weights are on the way. Shared memory: see products.cpp.
HR_EARLY_KERNEL(product_row, ProductArguments, HR_THREADS(kernels::kProductRowThreads, kernels::kProductRowThreadsHip)) {
    const Deal deal(a);
    prefetch_first(a, deal);
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

    run_targets(a, deal, x, 0);
}

// A row of blocks for each pass of up to eight tokens.
HR_KERNEL(product_rows, ProductArguments, 256) {
    const Deal deal(a);
    const int first = block_y() * 8;
    const int tokens = a.tokens - first;
    if (tokens <= 2) {
        run_targets(a, deal, inputs<2>(a, first), first);
    } else if (tokens <= 4) {
        run_targets(a, deal, inputs<4>(a, first), first);
    } else {
        run_targets(a, deal, inputs<8>(a, first), first);
    }
}

}  // namespace headroom::device
