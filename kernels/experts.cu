// Mixtures of experts: the router's choice, the products of the chosen experts with a few tokens, sorting the choices of many tokens, and
// the hand-over to the processor for experts that are not on the device.

#include "kernels/arguments.h"
#include "kernels/choice.h"
#include "kernels/dot.h"

namespace headroom::device {
namespace {

using namespace kernels;

// Addresses of row `row` of an expert's matrix.
HR_DEVICE const std::uint8_t* row_of(const std::uint8_t* matrix, int row, std::uint32_t row_bytes) {
    return matrix + static_cast<std::int64_t>(row) * row_bytes;
}

}  // namespace

// A row of blocks for each token. Every block normalises it for itself; the results that others read are written by turns. Two rows to a warp, blocks first, so that
// many multiprocessors fetch a part of the matrix.
HR_EARLY_KERNEL(router_row, RouterArguments, 256) {
    __shared__ float scores[kMostExperts], picked[kMostUsed];
    __shared__ int last;
    const int n = a.w.cols;
    const std::int64_t token = block_y();
    const float* row_of_x = a.x + token * n;
    float* all_scores = a.scores + token * a.w.rows;
    const int units = (a.w.rows + 1) / 2;
    const int step = grid_x() * (threads() / kWarp);
    const int unit = warp() * grid_x() + block_x();
    if (unit < units) prefetch(row_of(a.w.data, 2 * unit, a.w.row_bytes), 2 * unit + 1 < a.w.rows ? 2 * a.w.row_bytes : a.w.row_bytes);
    for (int row = warp() * grid_x() + block_x(); row < a.w.rows; row += step) prefetch(row_of(a.w.data, row, a.w.row_bytes), a.w.row_bytes);
    // Of a row of floats the first loads are under way while the token's row is still being made.
    constexpr int kAhead = 32;
    const bool single = static_cast<TensorType>(a.w.type) == TensorType::f32;
    const int own_row = warp() * grid_x() + block_x();
    float ahead[kAhead];
    HR_UNROLL
    for (int i = 0; i < kAhead; ++i) {
        const int k = i * kWarp + lane();
        ahead[i] = single && own_row < a.w.rows && k < n ? reinterpret_cast<const float*>(row_of(a.w.data, own_row, a.w.row_bytes))[k] : 0.0F;
    }
    // So are the norm's weights.
    float weight[kShare];
    load_share(a.norm, thread() * kShare, n, weight);
    wait_for_previous();

    // In shared memory: the normed row, and its codes where the router's weights are quantized.
    float* normed = reinterpret_cast<float*>(dynamic_shared());
    Inputs<1> x = {normed, {}, {}, n, 0};
    const auto type = static_cast<TensorType>(a.w.type);
    const bool floats = type == TensorType::f32 || type == TensorType::f16 || type == TensorType::bf16;
    const bool wide = type == TensorType::q2_k || type == TensorType::q3_k || type == TensorType::q4_k || type == TensorType::q5_k ||
                      type == TensorType::q6_k || type == TensorType::iq4_xs;
    if (!floats) {
        unsigned char* free = dynamic_shared() + (n * 4 + 15) / 16 * 16;
        auto* codes = reinterpret_cast<std::int8_t*>(free);
        auto* scales = reinterpret_cast<float*>(free + (n + 15) / 16 * 16);
        auto* sums = reinterpret_cast<std::int16_t*>(scales + n / 32);
        (wide ? x.groups_256 : x.groups_32) = {codes, scales, sums};
    }
    const float inverse = 1.0F / sqrt(sum_of_squares(row_of_x, n) / static_cast<float>(n) + a.epsilon);
    for (int piece = warp(); piece * 256 < n; piece += threads() / kWarp) {
        const int first = piece * 256 + lane() * kShare;
        float v[kShare];
        load_share(row_of_x, first, n, v);
        if (piece != warp()) load_share(a.norm, first, n, weight);
        HR_UNROLL
        for (int i = 0; i < kShare; ++i) v[i] = (v[i] * inverse) * weight[i];
        store_forms(normed, x.groups_256, x.groups_32, 0, first, n, v);
        if (piece % grid_x() == block_x()) store_forms(a.normed, a.groups_256, a.groups_32, token, first, n, v);
    }
    sync();

    if (type == TensorType::f32) {
        // A row to a warp, many loads at once: nothing else is to be done meanwhile.
        for (int row = warp() * grid_x() + block_x(); row < a.w.rows; row += step) {
            const float* w = reinterpret_cast<const float*>(row_of(a.w.data, row, a.w.row_bytes));
            float s = 0;
            int k = lane();
            if (row == own_row) {
                HR_UNROLL
                for (int i = 0; i < kAhead; ++i) s = k + i * kWarp < n ? fma(ahead[i], normed[k + i * kWarp], s) : s;
                k += kAhead * kWarp;
            }
#pragma unroll 32
            for (; k < n; k += kWarp) s = fma(w[k], normed[k], s);
            s = fold_32(s);
            if (lane() == 0) all_scores[row] = s;
        }
    } else {
        run_units<1>(
            a.w.type, x, unit, step, units,
            [&](int of, const std::uint8_t*(&at)[2]) {
                at[0] = row_of(a.w.data, 2 * of, a.w.row_bytes);
                at[1] = 2 * of + 1 < a.w.rows ? at[0] + a.w.row_bytes : at[0];
            },
            [&](int of, const Pair& pair) {
                if (!stores_own(x)) return;
                all_scores[2 * of] = pair.first;
                if (2 * of + 1 < a.w.rows) all_scores[2 * of + 1] = pair.second;
            });
    }
    if (a.chosen == nullptr) return;  // experts_gate_up_TYPE chooses
    fence();
    sync();
    if (thread() == 0) last = atomic_add(a.ticket + token, 1) == grid_x() - 1 ? 1 : 0;
    sync();
    if (last == 0) return;
    fence();
    for (int i = thread(); i < a.w.rows; i += threads()) scores[i] = ordered(static_cast<const volatile float*>(all_scores)[i]);
    sync();
    choose(scores, a.w.rows, a.used, a.chosen + token * a.used, picked);
    if (warp() == 0) share_out(scores, picked, a.chosen + token * a.used, a.w.rows, a.used, a.normalize != 0, a.shares + token * a.used, a.counts);
    if (thread() == 0) a.ticket[token] = 0;
}

// A block for each token.
HR_KERNEL(choose_experts, ChooseArguments, 512) {
    __shared__ float scores[kMostExperts], picked[kMostUsed];
    const std::int64_t token = block_x();
    for (int i = thread(); i < a.experts; i += threads()) scores[i] = ordered(a.scores[token * a.experts + i]);
    sync();
    choose(scores, a.experts, a.used, a.chosen + token * a.used, picked);
    if (warp() == 0) share_out(scores, picked, a.chosen + token * a.used, a.experts, a.used, a.normalize != 0, a.shares + token * a.used, a.counts);
}

// A warp to a row of a choice's gate and up matrices; where their types differ the gate's products are stored first, and the same lane then
// comes with the up row's. A row of blocks for each choice.
HR_KERNEL_OF(experts_gate_up, ExpertsGateUpArguments, 256, 3) {
    const auto& shape = a.shape;
    const int choice = block_y();
    const ExpertAddresses& expert = a.table[a.chosen[choice]];
    if (expert.gate == nullptr) return;
    const std::int64_t token_at = static_cast<std::int64_t>(choice / shape.used) * shape.width;
    const Inputs<1> x = {a.x + token_at, from(a.groups_256, token_at, 256), from(a.groups_32, token_at, 32), shape.width, 0};
    float* hidden = a.hidden + static_cast<std::int64_t>(choice) * shape.hidden;
    const std::uint8_t *gate = expert.gate, *up = expert.up;
    const bool alike = shape.gate_type == shape.up_type;
    for (int pass = 0; pass < (alike ? 1 : 2); ++pass) {
        run_units<1>(
            pass == 0 ? shape.gate_type : shape.up_type, x, warp() * grid_x() + block_x(), grid_x() * (threads() / kWarp), shape.hidden,
            [&](int row, const std::uint8_t*(&at)[2]) {
                at[0] = pass == 0 ? row_of(gate, row, shape.gate_row_bytes) : row_of(up, row, shape.up_row_bytes);
                at[1] = alike ? row_of(up, row, shape.up_row_bytes) : at[0];
            },
            [&](int row, const Pair& pair) {
                if (!stores_own(x)) return;
                hidden[row] = alike ? silu(pair.first) * pair.second : pass == 0 ? pair.first : silu(hidden[row]) * pair.first;
            });
    }
}

// A block takes neighbouring rows of every chosen expert of a token: `used` warps, or several times as many, each for one rank, so that the
// sum over the ranks stays in the block. Shared memory: see experts.cpp.
HR_KERNEL(experts_down, ExpertsDownArguments, 512) {
    const auto& shape = a.shape;
    const int n = shape.hidden;
    const std::int64_t token = block_y();
    const int rank = warp() % shape.used, part = warp() / shape.used, parts = threads() / kWarp / shape.used;
    const int rows_of_block = (shape.width + 2 * grid_x() - 1) / (2 * grid_x()) * 2;
    const int begin = block_x() * rows_of_block;
    const int end = begin + rows_of_block < shape.width ? begin + rows_of_block : shape.width;
    if (begin >= end) return;
    const std::int64_t choice = token * shape.used + rank;
    const std::uint8_t* down = a.table[a.chosen[choice]].down;
    const int rows_of_part = (end - begin + 2 * parts - 1) / (2 * parts) * 2;
    const int first_row = begin + part * rows_of_part;
    const int last_row = first_row + rows_of_part < end ? first_row + rows_of_part : end;
    if (down != nullptr && first_row < last_row) {
        prefetch(row_of(down, first_row, shape.down_row_bytes), static_cast<std::int64_t>(last_row - first_row) * shape.down_row_bytes);
    }

    // The token's rows of hidden, quantized.
    const auto type = static_cast<TensorType>(shape.down_type);
    const bool floats = type == TensorType::f32 || type == TensorType::f16 || type == TensorType::bf16;
    const bool wide = type == TensorType::q2_k || type == TensorType::q3_k || type == TensorType::q4_k || type == TensorType::q5_k ||
                      type == TensorType::q6_k || type == TensorType::iq4_xs;
    auto* results = reinterpret_cast<float*>(dynamic_shared());  // [used, rows_of_block]
    unsigned char* free = dynamic_shared() + (shape.used * rows_of_block * 4 + 15) / 16 * 16;
    const float* hidden = a.hidden + token * shape.used * n;
    Quantized groups = {};
    if (!floats) {
        auto* codes = reinterpret_cast<std::int8_t*>(free);
        auto* scales = reinterpret_cast<float*>(free + (shape.used * n + 15) / 16 * 16);
        auto* sums = reinterpret_cast<std::int16_t*>(scales + shape.used * n / 32);
        groups = {codes, scales, sums};
        const int pieces = (n + 255) / 256;
        for (int piece = warp(); piece < pieces * shape.used; piece += threads() / kWarp) {
            const int row = piece / pieces, first = piece % pieces * 256 + lane() * kShare;
            float v[kShare];
            load_share(hidden + static_cast<std::int64_t>(row) * n, first, n, v);
            quantize_share(groups, row, first, n, wide ? 32 : 4, v);
        }
        sync();
    }
    const std::int64_t at = static_cast<std::int64_t>(rank) * n;
    const Inputs<1> x = {hidden + at, wide ? from(groups, at, 256) : Quantized{}, wide ? Quantized{} : from(groups, at, 32), n, 0};
    if (down != nullptr) {
        run_units<1>(
            shape.down_type, x, 0, 1, (last_row - first_row + 1) / 2,
            [&](int unit, const std::uint8_t*(&own)[2]) {
                const int row = first_row + 2 * unit;
                own[0] = row_of(down, row, shape.down_row_bytes);
                own[1] = row + 1 < last_row ? own[0] + shape.down_row_bytes : own[0];
            },
            [&](int unit, const Pair& pair) {
                if (!stores_own(x)) return;
                const int row = first_row + 2 * unit;
                float* to = a.outputs != nullptr ? a.outputs + choice * shape.width + row : results + rank * rows_of_block + (row - begin);
                to[0] = pair.first;
                if (row + 1 < last_row) to[1] = pair.second;
            });
    }
    if (a.outputs != nullptr) return;
    sync();
    const float* shares = a.shares + token * shape.used;
    for (int i = thread(); i < end - begin; i += threads()) {
        float sum = shares[0] * results[i];
        for (int r = 1; r < shape.used; ++r) sum = fma(shares[r], results[r * rows_of_block + i], sum);
        float& to = a.x[token * shape.width + begin + i];
        to = to + sum;
    }
}

// A block for each expert: counts the choices of those before it and its own, then writes its own down in order.
HR_KERNEL(group_rows, GroupArguments, 1024) {
    __shared__ int before[32];
    __shared__ int own[32];
    const int expert = block_x();
    // Each thread looks at neighbouring choices.
    const int each = (a.choices + threads() - 1) / threads();
    const int first = thread() * each < a.choices ? thread() * each : a.choices;
    const int end = first + each < a.choices ? first + each : a.choices;
    int smaller = 0, equal = 0;
    for (int i = first; i < end; ++i) {
        const int chosen = a.chosen[i];
        smaller += chosen < expert ? 1 : 0;
        equal += chosen == expert ? 1 : 0;
    }
    int until = equal;  // with the lanes below
    for (int h = 1; h < kWarp; h *= 2) {
        const int other = shuffle(until, lane() >= h ? lane() - h : lane());
        if (lane() >= h) until += other;
    }
    for (int h = 16; h > 0; h >>= 1) smaller += shuffle_xor(smaller, h);
    if (lane() == kWarp - 1) {
        own[warp()] = until;
        before[warp()] = smaller;
    }
    sync();
    const int warps = threads() / kWarp;
    int offset = 0, place = 0, total = 0;
    for (int w = 0; w < warps; ++w) {
        offset += before[w];
        if (w < warp()) place += own[w];
        total += own[w];
    }
    if (thread() == 0) {
        a.offsets[expert] = offset;
        if (expert == a.experts - 1) a.offsets[a.experts] = offset + total;
    }
    place += offset + until - equal;
    for (int i = first; i < end; ++i) {
        if (a.chosen[i] == expert) a.rows[place++] = i;
    }
}

HR_KERNEL(combine_rows, CombineArguments, 256) {
    const int i = block_x() * threads() + thread();
    if (i >= a.n) return;
    const std::int64_t token = block_y();
    float sum = 0;
    for (int rank = 0; rank < a.used; ++rank) {
        const std::int64_t choice = token * a.used + rank;
        const bool here = a.host_outputs == nullptr || a.table[a.chosen[choice]].down != nullptr;
        const float output = (here ? a.outputs : a.host_outputs)[choice * a.n + i];
        const float share = a.shares[choice];
        sum = rank == 0 ? share * output : fma(share, output, sum);
    }
    float& x = a.x[token * a.n + i];
    x = x + sum;
}

// Who computes a missing choice, by the whole block; see HandOverArguments. Returns, in every thread, how many the host is asked for. Ends with a barrier.
HR_DEVICE int place_choices(const HandOverArguments& a) {
    __shared__ std::uint8_t absent[kMostPlaced];
    __shared__ int asked;
    const int choices = a.tokens * a.used;
    if (thread() == 0) asked = 0;
    for (int i = thread(); i < choices; i += threads()) absent[i] = a.table[a.chosen[i]].gate == nullptr ? 1 : 0;
    sync();
    for (int i = thread(); i < choices; i += threads()) {
        int rank = 0, all = 0;
        for (int j = 0; j < choices; ++j) {
            rank += j < i ? absent[j] : 0;
            all += absent[j];
        }
        const std::int32_t expert = a.chosen[i], in_memory = expert + a.host_entries;
        const bool reads = absent[i] != 0 && rank < read_by_device(all, *a.share) && a.table[in_memory].gate != nullptr;
        a.placed[i] = reads ? in_memory : expert;
        if (absent[i] != 0 && !reads) (void)atomic_add(&asked, 1);
    }
    sync();
    return asked;
}

// One block: only it knows when everything is written.
HR_KERNEL(hand_over, HandOverArguments, 1024) {
    __shared__ int missing;
    if (thread() == 0) missing = a.table == nullptr ? 1 : 0;
    sync();
    if (a.placed != nullptr) {
        const int asked = place_choices(a);
        if (thread() == 0) missing = asked;
    } else {
        for (int i = thread(); i < a.tokens * a.used && a.table != nullptr; i += threads()) {
            if (a.table[a.chosen[i]].gate == nullptr) missing = 1;
        }
    }
    sync();
    // The host's memory is not touched in vain: behind copies over the bus that takes long.
    if (missing == 0) {
        if (thread() == 0) *a.counter += 1;
        return;
    }
    for (int i = thread(); i < a.tokens * a.used; i += threads()) {
        a.host_chosen[i] = a.placed != nullptr && a.placed[i] != a.chosen[i] ? kNotAsked : a.chosen[i];
    }
    const std::int64_t values = static_cast<std::int64_t>(a.tokens) * a.width;
    if (a.width % 4 == 0) {
        for (std::int64_t i = thread(); i < values / 4; i += threads()) {
            reinterpret_cast<Four*>(a.host_x)[i] = reinterpret_cast<const Four*>(a.x)[i];
        }
    } else {
        for (std::int64_t i = thread(); i < values; i += threads()) a.host_x[i] = a.x[i];
    }
    fence_system();
    sync();
    if (thread() != 0) return;
    const std::uint32_t count = *a.counter + 1;
    *a.counter = count;
    if (a.awaited != nullptr) *a.awaited = count;
    *static_cast<volatile std::uint32_t*>(a.flag) = count;
    fence_system();
}

HR_KERNEL(await_host, AwaitArguments, 32) {
    if (thread() != 0) return;
    const std::uint32_t count = *a.counter;
    if (a.arrived != nullptr) *static_cast<volatile std::uint32_t*>(a.arrived) = count;
    // The counter may wrap.
    while (static_cast<std::int32_t>(*static_cast<const volatile std::uint32_t*>(a.flag) - count) < 0) {}
    fence_system();
}

}  // namespace headroom::device
