// What a step returns to the host instead of all logits.

#include "kernels/arguments.h"
#include "kernels/arithmetic.h"

namespace headroom::device {
namespace {

using Key = std::uint64_t;

inline constexpr int kThreads = 1024;
inline constexpr int kRoom = kThreads;  // candidates that are sorted at the end

// Keys in the order of the values, the lower index above the higher one among equals: no two are the same. The lowest is above 0.
HR_DEVICE Key key_of(float x, int index) {
    const std::uint32_t bits = float_to_bits(x == 0 ? 0.0F : x);
    const std::uint32_t ordered = (bits >> 31) != 0 ? ~bits : bits | 0x80000000U;
    return static_cast<Key>(ordered) << 32 | (0xffffffffU - static_cast<std::uint32_t>(index));
}
HR_DEVICE float value_of(Key key) {
    const auto ordered = static_cast<std::uint32_t>(key >> 32);
    return bits_to_float((ordered >> 31) != 0 ? ordered & 0x7fffffffU : ~ordered);
}
// What is no number counts as the smallest value.
HR_DEVICE float known(float x) { return x == x ? x : bits_to_float(0xff800000U); }
HR_DEVICE int index_of(Key key) { return static_cast<int>(0xffffffffU - static_cast<std::uint32_t>(key)); }

// Sorts keys, one in each of the first `size` threads (a power of two), the largest first (bitonic). All threads come here. room: kThreads.
HR_DEVICE Key sort(Key mine, int size, Key* room) {
    for (int block = 2; block <= size; block *= 2) {
        for (int distance = block / 2; distance > 0; distance /= 2) {
            Key other;
            if (distance >= kWarp) {
                sync();
                room[thread()] = mine;
                sync();
                other = room[thread() ^ distance];
            } else {
                const auto high = static_cast<std::uint32_t>(shuffle_xor(static_cast<int>(mine >> 32), distance));
                const auto low = static_cast<std::uint32_t>(shuffle_xor(static_cast<int>(mine), distance));
                other = static_cast<Key>(high) << 32 | low;
            }
            const bool larger = ((thread() & distance) == 0) == ((thread() & block) == 0);
            mine = (mine > other) == larger ? mine : other;
        }
    }
    sync();
    return mine;
}

struct alignas(16) Four {
    float x[4];
};

// use(value, index) for the thread's elements of a row, indices ascending.
template <class Use>
HR_DEVICE void for_each_element(const float* x, int n, Use use) {
    int i = thread();
    if (n % 4 == 0) {
#pragma unroll 8
        for (; i < n / 4; i += kThreads) {
            const Four four = reinterpret_cast<const Four*>(x)[i];
            HR_UNROLL
            for (int j = 0; j < 4; ++j) use(four.x[j], 4 * i + j);
        }
    } else {
        for (; i < n; i += kThreads) use(x[i], i);
    }
}

// How many elements of a row have keys from `least` on; the same in every thread.
HR_DEVICE int count_from(const float* x, int n, Key least) {
    __shared__ int counts[kThreads / kWarp];
    int count = 0;
    for_each_element(x, n, [&](float value, int i) { count += key_of(known(value), i) >= least ? 1 : 0; });
    for (int h = 16; h > 0; h >>= 1) count += shuffle_xor(count, h);
    sync();
    if (lane() == 0) counts[warp()] = count;
    sync();
    count = counts[lane()];
    for (int h = 16; h > 0; h >>= 1) count += shuffle_xor(count, h);
    return count;
}

}  // namespace

// One block of 1,024 threads to a row: each thread walks upwards, so that it keeps the lowest index among equals.
HR_KERNEL(argmax_rows, ArgmaxArguments, kThreads) {
    __shared__ float best_value[32];
    __shared__ int best_index[32];
    float value = bits_to_float(0xff800000U);
    int index = 0x7fffffff;
    for_each_element(a.x + static_cast<std::int64_t>(block_x()) * a.n, a.n, [&](float x, int i) {
        if (!(x > value) && index != 0x7fffffff) return;
        value = x;
        index = i;
    });
    const auto fold = [&] {
        for (int h = 16; h > 0; h >>= 1) {
            const float other = shuffle_xor(value, h);
            const int at = shuffle_xor(index, h);
            if (other > value || (other == value && at < index)) {
                value = other;
                index = at;
            }
        }
    };
    fold();
    if (lane() == 0) {
        best_value[warp()] = value;
        best_index[warp()] = index;
    }
    sync();
    if (warp() != 0) return;
    value = best_value[lane()];
    index = best_index[lane()];
    fold();
    if (lane() == 0) a.out[block_x()] = index;
}

// One block to a row. Each thread finds its largest element: the k-th largest of those is a bound that at least k elements reach, and
// hardly more where the large ones lie scattered. Those are sorted. Where too many reach it (equal values without end), bisection raises
// the bound.
HR_KERNEL(top_rows, TopArguments, kThreads) {
    static_assert(kThreads / kWarp == kWarp && kThreads >= kernels::kMostTop);
    __shared__ Key keys[kRoom];
    __shared__ std::int32_t found;
    const float* x = a.x + static_cast<std::int64_t>(block_x()) * a.n;
    float largest = bits_to_float(0xff800000U);
    for_each_element(x, a.n, [&](float value, int) { largest = value > largest ? value : largest; });
    const Key best = sort(thread() < a.n ? key_of(largest, thread()) : 0, kThreads, keys);  // the index only keeps them apart
    keys[thread()] = best;
    sync();
    float bound = value_of(keys[a.k - 1]);
    Key least = key_of(bound, 0x7fffffff), above = key_of(value_of(keys[0]), 0) + 1;
    sync();
    int count = kRoom + 1;
    for (;;) {
        if (thread() == 0) found = 0;
        sync();
        for_each_element(x, a.n, [&](float element, int i) {
            const float value = known(element);
            if (!(value >= bound)) return;
            const Key key = key_of(value, i);
            if (key < least) return;
            const int to = atomic_add(&found, 1);
            if (to < kRoom) keys[to] = key;
        });
        sync();
        count = found;
        sync();
        if (count <= kRoom) break;
        for (int reach = count; reach > kRoom;) {
            const Key middle = least + (above - least) / 2;
            const int there = count_from(x, a.n, middle);
            if (there < a.k) {
                above = middle;
            } else {
                least = middle;
                reach = there;
            }
        }
        bound = value_of(least);
    }
    int size = 2;
    while (size < count) size *= 2;
    const Key key = sort(thread() < count ? keys[thread()] : 0, size, keys);
    if (thread() >= a.k) return;
    const int index = index_of(key);
    a.values[static_cast<std::int64_t>(block_x()) * a.k + thread()] = known(x[index]);
    a.ids[static_cast<std::int64_t>(block_x()) * a.k + thread()] = index;
}

}  // namespace headroom::device
