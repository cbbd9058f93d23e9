// Products of the chosen experts with two to sixteen tokens, on matrix units (kernels/few.h): the choices are grouped by expert, so that the weights
// of an expert are read once for its tokens, most often one or two. Rows of weights come to shared memory ahead of their use, several tiles at
// once on their way to each multiprocessor.

#include <type_traits>

#include "kernels/arguments.h"
#include "kernels/choice.h"
#include "kernels/few.h"
#include "kernels/row_copies.h"

#if defined(HR_CODE_TILES)

namespace headroom::device {
namespace {

using namespace kernels;

inline constexpr int kColumns = kFewTokens;  // of a tile: choices of one expert
inline constexpr int kRowsOfTile = 16;
inline constexpr int kParts = 4;             // warps to a tile of gate and up

// The choices of all tokens and their scores, from the router's. Ends with a barrier.
HR_DEVICE void choose_all(const ExpertsGateUpArguments& a, std::int32_t* chosen, float* picked) {
    const int experts = a.shape.experts, used = a.shape.used;
    for (int token = warp(); token < a.tokens; token += threads() / kWarp) {
        const float* own = a.scores + static_cast<std::int64_t>(token) * experts;
        if (experts <= 4 * kWarp) choose_by_warp<4>(own, experts, used, chosen + token * used, picked + token * used);
        else choose_by_warp<kMostFewExperts / kWarp>(own, experts, used, chosen + token * used, picked + token * used);
    }
    sync();
}

// Leaves choices and shares for later kernels: a block for each token, by one warp.
HR_DEVICE void leave_choices(const ExpertsGateUpArguments& a, const std::int32_t* chosen, const float* picked) {
    const int experts = a.shape.experts, used = a.shape.used;
    for (int token = block_x(); token < a.tokens; token += grid_x()) {
        share_out(a.scores + static_cast<std::int64_t>(token) * experts, picked + token * used, chosen + token * used, experts, used, a.normalize != 0,
                  a.shares + token * used, a.counts);
        if (lane() < used) a.chosen[token * used + lane()] = chosen[token * used + lane()];
    }
}

// An expert with up to kColumns of its choices; columns behind `count` are as the first one.
struct alignas(16) Item {
    ExpertAddresses at;
    std::int16_t choices[kColumns];
    std::int16_t tokens[kColumns];
    int count;
};
static_assert(sizeof(Item) == kFewItemBytes);

// Lists the experts of this device that are chosen, in the order of their first choices. Begins and ends with a barrier, the table is read behind the
// first. Returns how many there are.
HR_DEVICE int list_items(const ExpertAddresses* table, const std::int32_t* chosen, int tokens, const ExpertShape& shape, Item* items) {
    __shared__ int tokens_of[kMostFewExperts];          // bit t: token t has chosen the expert
    __shared__ std::int16_t place_of[kMostFewExperts][2];  // its items: of the first eight choices, of the others
    __shared__ int heads[kMostFewTokens * kMostFewUsed / kWarp];
    const int choices = tokens * shape.used, choice = thread();
    for (int i = thread(); i < shape.experts; i += threads()) tokens_of[i] = 0;
    const int expert = choice < choices ? chosen[choice] : 0, token = choice < choices ? choice / shape.used : 0;
    sync();
    const ExpertAddresses addresses = table[expert];
    const bool here = choice < choices && addresses.gate != nullptr;
    if (here) (void)atomic_add(tokens_of + expert, 1 << token);
    sync();
    int before = 0;  // of the expert's choices
    for (int mask = tokens_of[expert] & ((1 << token) - 1); mask != 0; mask &= mask - 1) ++before;
    const bool head = here && before % kColumns == 0;
    int until = head ? 1 : 0;  // heads up to this lane
    for (int h = 1; h < kWarp; h *= 2) {
        const int other = shuffle(until, lane() >= h ? lane() - h : lane());
        if (lane() >= h) until += other;
    }
    if (lane() == kWarp - 1 && choice < (choices + kWarp - 1) / kWarp * kWarp) heads[warp()] = until;
    sync();
    int place = until - 1, count = 0;
    for (int w = 0; w < (choices + kWarp - 1) / kWarp; ++w) {
        if (w < warp()) place += heads[w];
        count += heads[w];
    }
    if (head) {
        Item& item = items[place];
        item.at = addresses;
        int all = 0;
        for (int mask = tokens_of[expert]; mask != 0; mask &= mask - 1) ++all;
        item.count = all - before < kColumns ? all - before : kColumns;
        for (int i = 0; i < kColumns; ++i) {
            item.choices[i] = static_cast<std::int16_t>(choice);
            item.tokens[i] = static_cast<std::int16_t>(token);
        }
        place_of[expert][before / kColumns] = static_cast<std::int16_t>(place);
    }
    sync();
    if (here && !head) {
        Item& item = items[place_of[expert][before / kColumns]];
        item.choices[before % kColumns] = static_cast<std::int16_t>(choice);
        item.tokens[before % kColumns] = static_cast<std::int16_t>(token);
    }
    sync();
    return count;
}

// The list for the kernel behind: its length in a place of its own, then the items. Each block leaves some of it; by one warp.
HR_DEVICE void leave_items(const Item* items, int count, Item* list) {
    constexpr int kWords = sizeof(Item) / 4;
    if (block_x() == 0 && lane() == 0) list->count = count;
    for (int i = block_x(); i < count; i += grid_x()) {
        for (int word = lane(); word < kWords; word += kWarp) reinterpret_cast<std::uint32_t*>(list + 1 + i)[word] = reinterpret_cast<const std::uint32_t*>(items + i)[word];
    }
    fence();
}

// Rows of codes in shared memory, padded so that eight of them lie in different banks.
struct CodeRows {
    std::int8_t* codes;
    std::int16_t* sums;
    float* scales;
    int n, code_stride, sum_stride;

    HR_DEVICE CodeRows(unsigned char* from, int rows, int elements)
        : codes(reinterpret_cast<std::int8_t*>(from)), n(elements), code_stride(elements + 32), sum_stride((elements / 8 + 127) / 128 * 64 + 16) {
        sums = reinterpret_cast<std::int16_t*>(codes + rows * code_stride);
        scales = reinterpret_cast<float*>(sums + rows * sum_stride);
    }
    // row: of column lane / 4; first, second: of the lane's outputs.
    HR_DEVICE Column column(int row) const { return {codes + row * code_stride, sums + row * sum_stride, scales + row * (n / 256)}; }
    HR_DEVICE Columns columns(int row, int first, int second) const {
        return {codes + row * code_stride, sums + row * sum_stride, {scales + first * (n / 256), scales + second * (n / 256)}, 1};
    }
};

// hidden = silu(gate x) * (up x). Tiles of eight rows of gate and the same ones of up, in turn to the groups of four warps of all blocks; warp w adds
// up the superblocks b with b mod 4 = w.
template <class Weights>
HR_DEVICE void gate_up(const ExpertsGateUpArguments& a, void* list) {
    __shared__ Arrival arrivals[kFewThreads / kWarp / kParts][kMostCopies];
    __shared__ std::int32_t chosen[kMostFewTokens * kMostFewUsed];
    __shared__ float picked[kMostFewTokens * kMostFewUsed];  // their scores
    const auto& shape = a.shape;
    const int n = shape.width, blocks = n / 256, used = shape.used, row_bytes = static_cast<int>(shape.gate_row_bytes);
    const int group = warp() / kParts, groups = threads() / kWarp / kParts, part = warp() % kParts;
    unsigned char* shared = dynamic_shared();
    const int stride = a.row_stride, stage_bytes = kRowsOfTile * stride;
    unsigned char* own_stages = shared + group * a.stages * stage_bytes;
    float* room = reinterpret_cast<float*>(shared + groups * a.stages * stage_bytes) + group * (2 * kParts * 4 * kWarp);
    Item* items = reinterpret_cast<Item*>(shared + groups * (a.stages * stage_bytes + 2 * kParts * 4 * kWarp * 4));
    auto* table = reinterpret_cast<ExpertAddresses*>(items + a.tokens * used);
    const CodeRows x(reinterpret_cast<unsigned char*>(table) + (shape.experts * static_cast<int>(sizeof(ExpertAddresses)) + 15) / 16 * 16, a.tokens, n);
    if (part == 0 && lane() < a.stages) prepare_arrival(&arrivals[group][lane()]);
    for (int i = thread(); i < shape.experts; i += threads()) table[i] = a.table[i];  // written between steps
    wait_for_previous();

    if (a.scores != nullptr) choose_all(a, chosen, picked);
    const int count = list_items(table, a.scores != nullptr ? chosen : a.chosen, a.tokens, shape, items);
    const int tiles_of_item = shape.hidden / 8, tiles = count * tiles_of_item, step = grid_x() * groups;
    const auto start = [&](int tile, int stage) {
        if (tile >= tiles) {
            start_no_rows();
            return;
        }
        const Item& item = items[tile / tiles_of_item];
        const int row = tile % tiles_of_item * 8 + (lane() & 7);
        const std::uint8_t* from = (lane() & 8) == 0 ? item.at.gate : item.at.up;
        start_rows(own_stages + stage * stage_bytes + (lane() & 15) * stride, from + static_cast<std::int64_t>(row) * row_bytes, kRowsOfTile, row_bytes,
                   &arrivals[group][stage]);
    };
    int tile = group * grid_x() + block_x();
    if (part == kParts - 1) {
        for (int stage = 0; stage < a.stages; ++stage) start(tile + stage * step, stage);
    }
    // The tokens' codes, behind the weights' beginning.
    if (part != kParts - 1) {
        const int number = group * (kParts - 1) + part, all = groups * (kParts - 1);
        if (number == all - 1) leave_items(items, count, static_cast<Item*>(list));
        if (number == all - 2 && a.scores != nullptr) leave_choices(a, chosen, picked);
        for (int t = number; t < a.tokens; t += all) {
            for (int i = lane() * 16; i < n; i += kWarp * 16) start_copy(x.codes + t * x.code_stride + i, a.groups_256.codes + t * n + i, true);
            for (int i = lane() * 8; i < n / 16; i += kWarp * 8) start_copy(x.sums + t * x.sum_stride + i, a.groups_256.sums + t * (n / 16) + i, true);
            for (int b = lane(); b < blocks; b += kWarp) x.scales[t * blocks + b] = a.groups_256.scales[t * blocks + b];
        }
        close_copies();
        wait_for_copies<0>();
    }
    sync();
    let_next_start();

    int stage = 0, turn = 0, half = 0;
    for (; tile < tiles; tile += step, half ^= 1) {
        const Item& item = items[tile / tiles_of_item];
        await_rows(&arrivals[group][stage], turn, a.stages - 1, kParts * kWarp);
        const std::uint8_t* gate = own_stages + stage * stage_bytes + (lane() >> 2) * stride;
        const std::uint8_t* const at[2] = {gate, gate + 8 * stride};
        float* sums = room + half * (kParts * 4 * kWarp);
        const auto store = [&](int column, float of_gate, float of_up) {
            a.hidden[static_cast<std::int64_t>(item.choices[column]) * shape.hidden + tile % tiles_of_item * 8 + (lane() >> 2)] = silu(of_gate) * of_up;
        };
        if (item.count == 1) {
            const Column column = x.column(item.tokens[0]);
            float accumulator = 0;
            for (int b = part; b < blocks; b += kParts) add_superblock_alone<Weights>(at, b, column, accumulator);
            sums[part * kWarp + lane()] = accumulator;
            sync_part(group, kParts * kWarp);
            if (part == 0) {
                const float* sum = sums + lane();
                const float value = (sum[0] + sum[2 * kWarp]) + (sum[kWarp] + sum[3 * kWarp]);
                const float of_up = shuffle_xor(value, 1);
                if ((lane() & 3) == 0) store(0, value, of_up);
            }
        } else {
            const Columns columns = x.columns(item.tokens[lane() >> 2], item.tokens[2 * (lane() & 3)], item.tokens[2 * (lane() & 3) + 1]);
            float accumulators[4] = {};
            for (int b = part; b < blocks; b += kParts) add_superblock<Weights>(Weights::load(at, b * Weights::kBytes), b, columns, accumulators);
            HR_UNROLL
            for (int i = 0; i < 4; ++i) sums[(part * 4 + i) * kWarp + lane()] = accumulators[i];  // [part][output][lane]
            sync_part(group, kParts * kWarp);
            const int column = 2 * (lane() & 3) + part;
            if (part < 2 && column < item.count) {
                float value[2];
                HR_UNROLL
                for (int r = 0; r < 2; ++r) {
                    const float* sum = sums + (2 * r + part) * kWarp + lane();
                    value[r] = (sum[0] + sum[2 * 4 * kWarp]) + (sum[4 * kWarp] + sum[3 * 4 * kWarp]);
                }
                store(column, value[0], value[1]);
            }
        }
        if (part == kParts - 1) start(tile + a.stages * step, stage);
        if (++stage == a.stages) {
            stage = 0;
            turn ^= 1;
        }
    }
}

// How long a tile takes: where the computation is slower than the memory, one of several tokens longer than one of one.
template <class Weights>
HR_DEVICE int weight_of(const Item& item) {
    return std::is_same_v<Weights, FewQ6K> && item.count > 1 ? 4 : 3;
}

// The block's share of the items' tiles, in their order: `begin` to `end`. By one warp.
template <class Weights>
HR_DEVICE void share_tiles(const Item* items, int count, int tiles_of_item, int& begin, int& end) {
    if constexpr (!std::is_same_v<Weights, FewQ6K>) {  // they are all alike
        begin = count * tiles_of_item * block_x() / grid_x();
        end = count * tiles_of_item * (block_x() + 1) / grid_x();
        return;
    }
    const auto sum_of = [](int value) {
        for (int h = 16; h > 0; h >>= 1) value += shuffle_xor(value, h);
        return value;
    };
    int total = 0;
    for (int i = lane(); i < count; i += kWarp) total += weight_of<Weights>(items[i]) * tiles_of_item;
    total = sum_of(total);
    // A tile is the share's in which it begins.
    const int from = total * block_x() / grid_x(), to = total * (block_x() + 1) / grid_x();
    begin = end = 0;
    for (int base = 0, before = 0; base < count; base += kWarp) {
        const int weight = base + lane() < count ? weight_of<Weights>(items[base + lane()]) : 0, own = weight * tiles_of_item;
        int until = own;  // with the lanes below
        for (int h = 1; h < kWarp; h *= 2) {
            const int other = shuffle(until, lane() >= h ? lane() - h : lane());
            if (lane() >= h) until += other;
        }
        const int first = before + until - own;
        const auto tiles_before = [&](int bound) { return own == 0 || bound <= first ? 0 : bound < first + own ? (bound - first + weight - 1) / weight : tiles_of_item; };
        begin += tiles_before(from);
        end += tiles_before(to);
        before += shuffle(until, kWarp - 1);
    }
    begin = sum_of(begin);
    end = sum_of(end);
}

// outputs[c] = down hidden[c]. A block takes neighbouring tiles of 16 rows, mostly of one or two experts, and quantizes their choices for itself. A tile is a group's
// of as many warps as its rows have accumulators that something is added to: warp w adds up the superblocks b with b mod 4 = w.
template <class Weights>
HR_DEVICE void down(const ExpertsDownArguments& a, const void* from) {
    __shared__ Arrival arrivals[kFewThreads / kWarp][kMostCopies];
    const auto& shape = a.shape;
    const int n = shape.hidden, blocks = n / 256, row_bytes = static_cast<int>(shape.down_row_bytes), warps = threads() / kWarp;
    const int parts = blocks < kParts ? blocks : kParts, groups = warps / parts, group = warp() / parts, part = warp() % parts;
    const int stage_bytes = kRowsOfTile * row_bytes;
    unsigned char* shared = dynamic_shared();
    unsigned char* own_stages = shared + group * a.stages * stage_bytes;
    float* room = reinterpret_cast<float*>(shared + groups * a.stages * stage_bytes) + group * (2 * parts * 4 * kWarp);
    Item* list = reinterpret_cast<Item*>(shared + groups * (a.stages * stage_bytes + 2 * parts * 4 * kWarp * 4));
    Item* items = list + 1;
    const CodeRows x(reinterpret_cast<unsigned char*>(items + a.tokens * shape.used), a.code_rows, n);
    if (part == 0 && lane() < a.stages) prepare_arrival(&arrivals[group][lane()]);
    // The kernel before this one, gate_up, left the list before it let this one start.
    for (int i = thread() * 16; i < (1 + a.tokens * shape.used) * kFewItemBytes; i += threads() * 16) {
        start_copy(reinterpret_cast<unsigned char*>(list) + i, static_cast<const unsigned char*>(from) + i, true);
    }
    close_copies();
    wait_for_copies<0>();
    sync();
    const int tiles_of_item = shape.width / kRowsOfTile;
    int begin, end;
    share_tiles<Weights>(items, list->count, tiles_of_item, begin, end);
    const auto start = [&](int tile, int stage) {
        if (tile >= end) {
            start_no_rows();
            return;
        }
        const std::int64_t at = static_cast<std::int64_t>(tile % tiles_of_item) * stage_bytes;
        start_rows(own_stages + stage * stage_bytes, items[tile / tiles_of_item].at.down + at, 1, stage_bytes, &arrivals[group][stage]);
    };
    if (part == parts - 1) {
        for (int stage = 0; stage < a.stages; ++stage) start(begin + group + stage * groups, stage);
    }
    wait_for_previous();
    let_next_start();
    if (begin >= end) return;

    const int first_item = begin / tiles_of_item, last_item = (end - 1) / tiles_of_item;
    const int pieces = (last_item - first_item + 1) * kColumns * blocks;
    for (int piece = warp(); piece < pieces; piece += warps) {
        const int row = piece / blocks, b = piece % blocks;
        const Item& item = items[first_item + row / kColumns];
        if (row % kColumns >= item.count) continue;
        float v[kShare];
        load_share(a.hidden + static_cast<std::int64_t>(item.choices[row % kColumns]) * n + b * 256, lane() * kShare, 256, v);
        // quantize_share's rows are as long as they are far apart.
        const Quantized to = {x.codes + row * x.code_stride + b * 256, x.scales + row * blocks + b, x.sums + row * x.sum_stride + b * 16};
        quantize_share(to, 0, lane() * kShare, 256, 32, v);
    }
    sync();

    const int mine = lane() >> 2, output = 2 * (lane() & 3);
    int stage = 0, turn = 0, half = 0, number = first_item, place = begin - first_item * tiles_of_item + group;  // of the tile: its item, its number there
    for (int tile = begin + group; tile < end; tile += groups, place += groups, half ^= 1) {
        for (; place >= tiles_of_item; place -= tiles_of_item) ++number;
        const int base = (number - first_item) * kColumns;
        const Item& item = items[number];
        await_rows(&arrivals[group][stage], turn, a.stages - 1, parts * kWarp);
        const std::uint8_t* row = own_stages + stage * stage_bytes + mine * row_bytes;
        const std::uint8_t* const at[2] = {row, row + 8 * row_bytes};
        float* sums = room + half * (parts * 4 * kWarp);
        const auto store = [&](int column, int row_of_tile, float value) {
            a.outputs[static_cast<std::int64_t>(item.choices[column]) * shape.width + place * kRowsOfTile + row_of_tile] = value;
        };
        // Of the warps' sums, step apart.
        const auto sum_of = [&](const float* sum, int step) {
            return (sum[0] + (parts > 2 ? sum[2 * step] : 0.0F)) + ((parts > 1 ? sum[step] : 0.0F) + (parts > 3 ? sum[3 * step] : 0.0F));
        };
        if (item.count == 1) {
            const Column column = x.column(base);
            float accumulator = 0;
            for (int b = part; b < blocks; b += parts) add_superblock_alone<Weights>(at, b, column, accumulator);
            sums[part * kWarp + lane()] = accumulator;
            sync_part(group, parts * kWarp);
            if (part == 0 && (lane() & 2) == 0) store(0, mine + 8 * (lane() & 1), sum_of(sums + lane(), kWarp));
        } else {
            const auto there = [&](int column) { return base + (column < item.count ? column : 0); };
            const Columns columns = x.columns(there(mine), there(output), there(output + 1));
            float accumulators[4] = {};
            for (int b = part; b < blocks; b += parts) add_superblock<Weights>(Weights::load(at, b * Weights::kBytes), b, columns, accumulators);
            HR_UNROLL
            for (int i = 0; i < 4; ++i) sums[(part * 4 + i) * kWarp + lane()] = accumulators[i];  // [part][output][lane]
            sync_part(group, parts * kWarp);
            for (int c = part; c < 2; c += parts) {
                if (output + c >= item.count) continue;
                HR_UNROLL
                for (int r = 0; r < 2; ++r) store(output + c, mine + 8 * r, sum_of(sums + (2 * r + c) * kWarp + lane(), 4 * kWarp));
            }
        }
        if (part == parts - 1) start(tile + a.stages * groups, stage);
        if (++stage == a.stages) {
            stage = 0;
            turn ^= 1;
        }
    }
}

}  // namespace

HR_ORDERED_KERNEL(few_experts_gate_up_q4_k, FewGateUpArguments, kFewThreads) { gate_up<FewQ4K>(a.of, a.list); }
HR_ORDERED_KERNEL(few_experts_gate_up_q5_k, FewGateUpArguments, kFewThreads) { gate_up<FewQ5K>(a.of, a.list); }
HR_ORDERED_KERNEL(few_experts_gate_up_q6_k, FewGateUpArguments, kFewThreads) { gate_up<FewQ6K>(a.of, a.list); }
HR_ORDERED_KERNEL(few_experts_down_q4_k, FewDownArguments, kFewThreads) { down<FewQ4K>(a.of, a.list); }
HR_ORDERED_KERNEL(few_experts_down_q5_k, FewDownArguments, kFewThreads) { down<FewQ5K>(a.of, a.list); }
HR_ORDERED_KERNEL(few_experts_down_q6_k, FewDownArguments, kFewThreads) { down<FewQ6K>(a.of, a.list); }

}  // namespace headroom::device

#endif
