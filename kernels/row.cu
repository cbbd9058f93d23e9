// Decoding one token: products and experts whose weights are all of one type, or of the two that common mixtures of types pair. The general
// kernels are in products.cu and experts.cu; here the type is known at compile time, so that registers and instructions are few.

#include "kernels/arguments.h"
#include "kernels/choice.h"
#include "kernels/copies.h"
#include "kernels/row.h"

namespace headroom::device {
namespace {

using namespace kernels;

template <TensorType type>
struct Superblocks;
template <>
struct Superblocks<TensorType::q4_k> {
    using Weights = WeightsQ4K;
};
template <>
struct Superblocks<TensorType::q5_k> {
    using Weights = WeightsQ5K;
};
template <>
struct Superblocks<TensorType::q6_k> {
    using Weights = WeightsQ6K;
};

HR_DEVICE const std::uint8_t* row_of(const Matrix& w, int row) { return w.data + static_cast<std::int64_t>(row) * w.row_bytes; }

// Groups of rows of the targets of one type; with SwiGLU a group is a row of the gate and the same one of the up matrix.
HR_DEVICE int groups_of(const ProductArguments& a, TensorType type) {
    if (a.swiglu != 0) return static_cast<TensorType>(a.targets[0].w.type) == type ? a.targets[0].w.rows : 0;
    int count = 0;
    HR_UNROLL
    for (int i = 0; i < 3; ++i) {
        if (i < a.target_count && static_cast<TensorType>(a.targets[i].w.type) == type) count += (a.targets[i].w.rows + kRows - 1) / kRows;
    }
    return count;
}

struct Place {
    const Target* target;
    int row;
};
HR_DEVICE Place find_group(const ProductArguments& a, TensorType type, int number) {
    HR_UNROLL
    for (int i = 0; i < 2; ++i) {
        if (i >= a.target_count || static_cast<TensorType>(a.targets[i].w.type) != type) continue;
        const int groups = (a.targets[i].w.rows + kRows - 1) / kRows;
        if (number < groups) return {&a.targets[i], kRows * number};
        number -= groups;
    }
    return {&a.targets[2], kRows * number};
}

HR_DEVICE RowGroup rows_of(const ProductArguments& a, TensorType type, int number) {
    RowGroup group;
    if (a.swiglu != 0) {
        return {{row_of(a.targets[0].w, number), row_of(a.targets[1].w, number)}};
    }
    const Place place = find_group(a, type, number);
    const Matrix& w = place.target->w;
    HR_UNROLL
    for (int r = 0; r < kRows; ++r) group.rows[r] = row_of(w, place.row + r < w.rows ? place.row + r : w.rows - 1);
    return group;
}

// What a product is added to, in the lanes that store_group has store one; before others are.
HR_DEVICE float sum_before(const ProductArguments& a, TensorType type, int number) {
    const Place place = find_group(a, type, number);
    const Target& target = *place.target;
    const int row = place.row + lane() / kLanes;
    return lane() < 8 && row < target.w.rows && target.add != 0 ? target.y[row] : 0.0F;
}

// value: the product of row l / kLanes of the group in lane l. before: of sum_before, or null.
HR_DEVICE void store_group(const ProductArguments& a, TensorType type, int number, float value, const float* before = nullptr) {
    if (a.swiglu != 0) {
        float up = shuffle(value, (lane() + kLanes) & 31);
        const int row = number;
        if (lane() != 0) return;
        if (a.targets[0].bias != nullptr) value = value + a.targets[0].bias[row];
        if (a.targets[1].bias != nullptr) up = up + a.targets[1].bias[row];
        a.targets[0].y[row] = silu(value) * up;
        return;
    }
    const Place place = find_group(a, type, number);
    const Target& target = *place.target;
    const int row = place.row + lane() / kLanes;
    if (lane() >= 8 || lane() % kLanes != 0 || row >= target.w.rows) return;
    if (target.bias != nullptr) value = value + target.bias[row];
    float& y = target.y[row];
    y = target.add != 0 ? (before != nullptr ? *before : y) + value : value;
}

// The row, normed where there is a norm (in shared memory, written by this block's threads), as codes in shared memory. Ends with a barrier.
HR_DEVICE void quantize_row(const float* from, const float* norm, float epsilon, int n, const Quantized& to) {
    const float inverse = norm != nullptr ? 1.0F / sqrt(sum_of_squares(from, n) / static_cast<float>(n) + epsilon) : 0.0F;
    for (int begin = warp() * 256; begin < n; begin += threads() * kShare) {
        const int first = begin + lane() * kShare;
        float v[kShare];
        load_share(from, first, n, v);
        if (norm != nullptr) {
            float weight[kShare];
            load_share(norm, first, n, weight);
            HR_UNROLL
            for (int i = 0; i < kShare; ++i) v[i] = (v[i] * inverse) * weight[i];
        }
        quantize_share(to, 0, first, n, 32, v);
    }
    sync();
}

// product_row of few rows: four warps to a group. What it is added to is asked for before.
template <class Weights, class Locate>
HR_DEVICE void multiply_shared(const ProductArguments& a, TensorType type, int groups, int blocks, Locate locate) {
    using Shared = SharedGroup<Weights>;
    __shared__ float parts[32][8];  // of each warp
    const int n = a.targets[0].w.cols, number = Shared::number();
    const bool some = number < groups;
    Shared shared;
    if (some) shared.load(locate(number), blocks);
    const Quantized x = take_groups_256(dynamic_shared(), n);
    wait_for_previous();
    const float before = some ? sum_before(a, type, number) : 0.0F;
    quantize_row(a.x, nullptr, 0, n, x);
    if (some) {
        const float part = shared.part(x);
        if (lane() < 8) parts[warp()][lane()] = part;
    }
    sync();
    if (!some || warp() % Shared::kWarps != 0) return;
    const auto of = [&](int i) { return parts[warp() + i][lane() & 7]; };
    store_group(a, type, number, (of(0) + of(2)) + (of(1) + of(3)), &before);
}

// product_row where every matrix is of type A or B.
template <TensorType A, TensorType B>
HR_DEVICE void product_row_of(const ProductArguments& a) {
    using First = typename Superblocks<A>::Weights;
    using Second = typename Superblocks<B>::Weights;
    const int n = a.targets[0].w.cols, blocks = n / 256;
    const int step = grid_x() * (threads() / kWarp);
    int number = warp() * grid_x() + block_x();
    const int groups = groups_of(a, A);
    const auto locate = [&](int i) { return rows_of(a, A, i); };
    if constexpr (A == B) {
        if (SharedGroup<First>::takes(groups, step, blocks) && a.swiglu == 0 && a.norm == nullptr) return multiply_shared<First>(a, A, groups, blocks, locate);
    }
    // The first weights are on the way while the row is still being made.
    begin_groups<First>(number, groups, blocks, locate);
    const Quantized x = take_groups_256(dynamic_shared(), n);
    float* norm = nullptr;
    if (a.norm != nullptr) {
        norm = reinterpret_cast<float*>(dynamic_shared() + n + (n / 256 + 3) / 4 * 16 + n / 8);  // behind the codes, scales and sums
        for (int i = 4 * thread(); i < n; i += 4 * threads()) *reinterpret_cast<Four*>(norm + i) = *reinterpret_cast<const Four*>(a.norm + i);
    }
    wait_for_previous();
    quantize_row(a.x, norm, a.epsilon, n, x);

    const auto input = [&](int) { return x; };
    multiply_groups<First>(number, step, groups, blocks, input, locate, [&](int i, float value) { store_group(a, A, i, value); });
    if constexpr (A != B) {
        while (number < groups) number += step;
        const int others = groups_of(a, B);
        const auto locate_other = [&](int i) { return rows_of(a, B, i); };
        multiply_groups<Second>(number - groups, step, others, blocks, input, locate_other, [&](int i, float value) { store_group(a, B, i, value); });
    }
}

HR_DEVICE const std::uint8_t* row_of(const std::uint8_t* matrix, int row, std::uint32_t row_bytes) {
    return matrix + static_cast<std::int64_t>(row) * row_bytes;
}

// The choices whose expert is here, in order, as a list in shared memory; returns their number. By one warp.
HR_DEVICE int list_choices(const ExpertAddresses* table, const std::int32_t* chosen, int choices, std::int16_t* list) {
    int before = 0;
    for (int base = 0; base < choices; base += kWarp) {
        const int choice = base + lane();
        const int here = choice < choices && table[chosen[choice]].gate != nullptr ? 1 : 0;
        int until = here;  // with the lanes below
        for (int h = 1; h < kWarp; h *= 2) {
            const int other = shuffle(until, lane() >= h ? lane() - h : lane());
            if (lane() >= h) until += other;
        }
        if (here != 0) list[before + until - 1] = static_cast<std::int16_t>(choice);
        before += shuffle(until, kWarp - 1);
    }
    return before;
}

// experts_gate_up of a few tokens.
template <TensorType type>
HR_DEVICE void experts_gate_up_of(const ExpertsGateUpArguments& a) {
    using Weights = typename Superblocks<type>::Weights;
    __shared__ float scores[kMostExperts], picked[kMostUsed];
    __shared__ std::int32_t chosen_here[kMostUsed];
    __shared__ int listed;
    const auto& shape = a.shape;
    const int n = shape.width, blocks = n / 256, all = a.tokens * n;
    const int step = grid_x() * (threads() / kWarp);
    const int number = warp() * grid_x() + block_x();
    const Quantized x = take_groups_256(dynamic_shared(), all);
    std::int16_t* list = x.sums + all / 16;  // of choices; where every expert is here there is none
    const bool complete = a.complete != 0;
    const std::int32_t* chosen = a.chosen;
    wait_for_previous();
    if (a.scores != nullptr) {
        for (int i = thread(); i < shape.experts; i += threads()) scores[i] = ordered(a.scores[i]);
    }
    // On their way until the weights have come.
    for (int i = thread() * 16; i < all; i += threads() * 16) start_copy(x.codes + i, a.groups_256.codes + i, true);
    for (int i = thread() * 8; i < all / 16; i += threads() * 8) start_copy(x.sums + i, a.groups_256.sums + i, true);
    close_copies();
    for (int i = thread(); i < all / 256; i += threads()) x.scales[i] = a.groups_256.scales[i];
    if (a.scores != nullptr) {
        sync();
        choose(scores, shape.experts, shape.used, chosen_here, picked);
        chosen = chosen_here;
    }
    if (!complete) {
        if (warp() == 0) {
            const int count = list_choices(a.table, chosen, a.tokens * shape.used, list);
            if (lane() == 0) listed = count;
        }
        sync();
    }
    const int count = (complete ? a.tokens * shape.used : listed) * shape.hidden;
    const auto choice_of = [&](int i) { return complete ? i / shape.hidden : static_cast<int>(list[i / shape.hidden]); };
    const auto locate = [&](int i) {
        const int row = i % shape.hidden;
        const ExpertAddresses& expert = a.table[chosen[choice_of(i)]];
        return RowGroup{{row_of(expert.gate, row, shape.gate_row_bytes), row_of(expert.up, row, shape.up_row_bytes)}};
    };
    begin_groups<Weights>(number, count, blocks, locate);
    wait_for_copies<0>();
    sync();
    const auto input = [&](int i) {
        const int token = choice_of(i) / shape.used;
        return Quantized{x.codes + token * n, x.scales + token * blocks, x.sums + token * n / 16};
    };
    multiply_groups<Weights>(number, step, count, blocks, input, locate, [&](int i, float value) {
        const float up = shuffle(value, (lane() + kLanes) & 31);
        if (lane() == 0) a.hidden[choice_of(i) * shape.hidden + i % shape.hidden] = silu(value) * up;
    });
    // For the kernels behind, by a warp that has the least to do.
    if (a.scores == nullptr || block_x() != grid_x() - 1 || warp() != threads() / kWarp - 1) return;
    share_out(scores, picked, chosen_here, shape.experts, shape.used, a.normalize != 0, a.shares, a.counts);
    if (lane() < shape.used) a.chosen[lane()] = chosen_here[lane()];
}

// experts_down of a few tokens. A block takes neighbouring rows, `used` warps (or twice as many) the ranks of a token, so that the sum over the
// ranks stays in the block. A row of blocks for each token.
template <TensorType type>
HR_DEVICE void experts_down_of(const ExpertsDownArguments& a) {
    using Weights = typename Superblocks<type>::Weights;
    const auto& shape = a.shape;
    const int n = shape.hidden, blocks = n / 256;
    const std::int64_t token = block_y();
    const int rank = warp() % shape.used, part = warp() / shape.used, parts = threads() / kWarp / shape.used;
    const int rows_of_block = (shape.width + 2 * grid_x() - 1) / (2 * grid_x()) * 2;
    const int begin = block_x() * rows_of_block;
    const int end = begin + rows_of_block < shape.width ? begin + rows_of_block : shape.width;
    if (begin >= end) return;
    wait_for_previous();
    const std::uint8_t* down = a.table[a.chosen[token * shape.used + rank]].down;
    // What is wanted last, too: nothing is to be waited for then.
    __shared__ float shares[kMostUsed];
    if (thread() < shape.used) shares[thread()] = a.shares[token * shape.used + thread()];
    __shared__ float before[kMostDownRows];
    const bool sums = a.outputs == nullptr && thread() < end - begin;
    if (sums) before[thread()] = a.x[token * shape.width + begin + thread()];
    const int groups = down != nullptr ? (end - begin + kRows - 1) / kRows : 0;
    const auto locate = [&](int i) {
        RowGroup group;
        HR_UNROLL
        for (int r = 0; r < kRows; ++r) {
            const int row = begin + kRows * i + r;
            group.rows[r] = row_of(down, row < end ? row : end - 1, shape.down_row_bytes);
        }
        return group;
    };
    for (int i = part; i < groups && i < 4 * parts; i += parts) begin_groups<Weights>(i, groups, blocks, locate);

    auto* results = reinterpret_cast<float*>(dynamic_shared());  // [used, rows_of_block]
    const Quantized all = take_groups_256(dynamic_shared() + (shape.used * rows_of_block * 4 + 15) / 16 * 16, shape.used * n);
    const float* hidden = a.hidden + token * shape.used * n;
    for (int piece = warp(); piece < blocks * shape.used; piece += threads() / kWarp) {
        const int first = piece * 256 + lane() * kShare;
        float v[kShare];
        load_share(hidden, first, shape.used * n, v);
        quantize_share(all, 0, first, shape.used * n, 32, v);
    }
    sync();
    const Quantized own = {all.codes + rank * n, all.scales + rank * blocks, all.sums + rank * n / 16};
    const auto input = [&](int) { return own; };
    multiply_groups<Weights>(part, parts, groups, blocks, input, locate, [&](int i, float value) {
        const int row = kRows * i + lane() / kLanes;
        if (lane() >= 8 || lane() % kLanes != 0 || begin + row >= end) return;
        if (a.outputs != nullptr) a.outputs[(token * shape.used + rank) * shape.width + begin + row] = value;
        else results[rank * rows_of_block + row] = value;
    });
    if (a.outputs != nullptr) return;
    sync();
    if (!sums) return;
    float sum = shares[0] * results[thread()];
    HR_UNROLL
    for (int r = 1; r < kMostUsed; ++r) {
        if (r < shape.used) sum = fma(shares[r], results[r * rows_of_block + thread()], sum);
    }
    a.x[token * shape.width + begin + thread()] = before[thread()] + sum;
}

}  // namespace

// As many warps as there are registers for: each waits for its own weights. wide_block of shapes.h is the host's side of it.
#if defined(HR_HIP)
#define HR_ROW_THREADS 512
#else
#define HR_ROW_THREADS 1024
#endif

HR_EARLY_KERNEL(product_row_q4_k, ProductArguments, HR_ROW_THREADS) { product_row_of<TensorType::q4_k, TensorType::q4_k>(a); }
HR_EARLY_KERNEL(product_row_q5_k, ProductArguments, HR_ROW_THREADS) { product_row_of<TensorType::q5_k, TensorType::q5_k>(a); }
HR_EARLY_KERNEL(product_row_q6_k, ProductArguments, HR_ROW_THREADS) { product_row_of<TensorType::q6_k, TensorType::q6_k>(a); }
HR_EARLY_KERNEL(product_row_q4_k_q6_k, ProductArguments, HR_ROW_THREADS) { product_row_of<TensorType::q4_k, TensorType::q6_k>(a); }
HR_EARLY_KERNEL(product_row_q5_k_q6_k, ProductArguments, HR_ROW_THREADS) { product_row_of<TensorType::q5_k, TensorType::q6_k>(a); }

HR_EARLY_KERNEL(experts_gate_up_q4_k, ExpertsGateUpArguments, HR_ROW_THREADS) { experts_gate_up_of<TensorType::q4_k>(a); }
HR_EARLY_KERNEL(experts_gate_up_q5_k, ExpertsGateUpArguments, HR_ROW_THREADS) { experts_gate_up_of<TensorType::q5_k>(a); }
HR_EARLY_KERNEL(experts_gate_up_q6_k, ExpertsGateUpArguments, HR_ROW_THREADS) { experts_gate_up_of<TensorType::q6_k>(a); }

HR_EARLY_KERNEL(experts_down_q4_k, ExpertsDownArguments, 3 * HR_ROW_THREADS / 4) { experts_down_of<TensorType::q4_k>(a); }
HR_EARLY_KERNEL(experts_down_q5_k, ExpertsDownArguments, 3 * HR_ROW_THREADS / 4) { experts_down_of<TensorType::q5_k>(a); }
HR_EARLY_KERNEL(experts_down_q6_k, ExpertsDownArguments, 3 * HR_ROW_THREADS / 4) { experts_down_of<TensorType::q6_k>(a); }

}  // namespace headroom::device
