#pragma once

// Attention of one token over many pages: how blocks hand over what they have of its pages to those that finish the output.

#include "kernels/attention_parts.h"

namespace headroom::device {

// What no part can be: arithmetic makes another of what is no number. A part is handed over by itself: who takes it waits until there is
// something else, and puts this back.
inline constexpr std::uint32_t kNotThere = 0xffffffffU;
// Whether blocks that have begun go on side by side, so that one can wait for another.
#if defined(HR_CUDA)
inline constexpr bool kTogether = true;
#else
inline constexpr bool kTogether = false;
#endif

template <int N>
HR_DEVICE void hand(float* to, const Floats<N>& part) {
#if defined(HR_CUDA)
    static_assert(N == 2 || N == 4);
    if constexpr (N == 4) {
        asm volatile("st.relaxed.gpu.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(part.x[0]), "f"(part.x[1]), "f"(part.x[2]),
                     "f"(part.x[3])
                     : "memory");
    } else {
        asm volatile("st.relaxed.gpu.global.v2.f32 [%0], {%1, %2};" ::"l"(to), "f"(part.x[0]), "f"(part.x[1]) : "memory");
    }
#else
    *reinterpret_cast<Floats<N>*>(to) = part;
#endif
}
// Where parts are handed over: for each row (token and head) and page where one begins, counted from the first visible one, its output, and its
// largest score and sum once for each kFinished elements, since each of them is finished by itself.
inline constexpr int kFinished = 64;
template <int W>
struct Parts {
    static constexpr int kFloats = kernels::long_part_floats(W);
    static_assert(W + W / kFinished * 2 <= kFloats);
    float* begin;
    std::int64_t pages;

    HR_DEVICE Parts(const AttentionArguments& a) : begin(a.parts_to_hand), pages(a.max_chunks) {}
    HR_DEVICE float* output(std::int64_t row, int page) const { return begin + (row * pages + page) * kFloats; }
    HR_DEVICE float* largest_and_sum(std::int64_t row, int page, int element) const { return output(row, page) + W + element / kFinished * 2; }
    // A lane's four elements of a warp that has all of a row.
    HR_DEVICE void hand_over(std::int64_t row, int page, const float (&out)[4], float largest, float sum) const {
        const int element = lane() * 4;
        hand(output(row, page) + element, Floats<4>{{out[0], out[1], out[2], out[3]}});
        if (element % kFinished == 0) hand(largest_and_sum(row, page, element), Floats<2>{{largest, sum}});
    }
};

// Four elements of a part on their way here, with its largest score and sum.
struct Taken {
    float* output;
    float* numbers;
    float x[4] = {}, largest = bits_to_float(0xff800000U), sum = 0;  // nothing

    // Asks for them: whoever looks at them waits.
    HR_DEVICE void ask() {
#if defined(HR_CUDA)
        asm volatile("ld.relaxed.gpu.global.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(x[0]), "=f"(x[1]), "=f"(x[2]), "=f"(x[3]) : "l"(output) : "memory");
        asm volatile("ld.relaxed.gpu.global.v2.f32 {%0, %1}, [%2];" : "=f"(largest), "=f"(sum) : "l"(numbers) : "memory");
#else
        for (int i = 0; i < 4; ++i) x[i] = output[i];
        largest = numbers[0];
        sum = numbers[1];
#endif
    }
    HR_DEVICE void await() {
        for (;;) {
            bool there = float_to_bits(largest) != kNotThere && float_to_bits(sum) != kNotThere;
            HR_UNROLL
            for (int i = 0; i < 4; ++i) there = there && float_to_bits(x[i]) != kNotThere;
            if (there) return;
            ask();
        }
    }
    // numbers_too: for one of those that have taken them, when all have.
    HR_DEVICE void put_back(bool numbers_too) const {
        const float none = bits_to_float(kNotThere);
        hand(output, Floats<4>{{none, none, none, none}});
        if (numbers_too) hand(numbers, Floats<2>{{none, none}});
    }
};

// What a block has of the sections that it works on at once, in shared memory.
inline constexpr int kEach = 4;  // sections of a warp
struct HandedSections {
    float *outputs, *largest, *sums;  // [sections, kFinished], [sections]
    struct alignas(16) Factors {
        float of_old, of_new, sum;
    };
    Factors* factors;  // [2 warps, sections]

    static constexpr int kBytes = kEach * ((kFinished + 2) * 4 + 2 * static_cast<int>(sizeof(Factors)));  // to each warp
    HR_DEVICE HandedSections(unsigned char* at, int count)
        : outputs(reinterpret_cast<float*>(at)), largest(outputs + count * kFinished), sums(largest + count), factors(reinterpret_cast<Factors*>(sums + count)) {}
};

// The number-th of `finishers` blocks combines the sections, ascending, for its shares of the outputs of `heads` rows: kFinished elements of a head. A warp takes some of the sections,
// each half of it one of a section's pages, four elements to a lane; a thread then has an element from the first section to the last. The whole block comes here; memory:
// HandedSections::kBytes to each warp. divides(page): whether a section is divided before that page, its second, counted from the first visible one.
template <int W, class Divides>
HR_DEVICE void combine_handed(const AttentionArguments& a, const Visible& visible, std::int64_t row, int heads, int number, int finishers, unsigned char* memory,
                              Divides divides) {
    static_assert(kFinished == 2 * kWarp);
    const Parts<W> parts(a);
    const int sections = visible.sections(), first_page = visible.first_page(), pages = visible.pages();
    const int warps = threads() / kWarp, at_once = kEach * warps, side = lane() / 16;
    const HandedSections all(memory, at_once);
#pragma unroll 1
    for (int share = number; share < heads * W / kFinished; share += finishers) {
        const int head = share / (W / kFinished), element = share % (W / kFinished) * kFinished + lane() % 16 * 4;
        float largest = bits_to_float(0xff800000U);
        float o = -0.0F, sum = 0;  // the first factor is 0, and 0 * -0 + x is x for every x
#pragma unroll 1
        for (int begin = 0; begin < sections; begin += at_once) {
            Taken parts_here[kEach];
            bool there[kEach];
            HR_UNROLL
            for (int k = 0; k < kEach; ++k) {
                const int section = begin + k * warps + warp();
                const int second = (first_page / kSection + section) * kSection + 1 - first_page;  // page of the section
                const int page = side != 0 ? second : second > 0 ? second - 1 : 0;
                there[k] = section < sections && (side == 0 || (second > 0 && second < pages && divides(second)));
                parts_here[k].output = parts.output(row + head, page) + element;
                parts_here[k].numbers = parts.largest_and_sum(row + head, page, element);
                if (there[k]) parts_here[k].ask();
            }
            HR_UNROLL
            for (int k = 0; k < kEach; ++k) {
                if (begin + k * warps + warp() >= sections) break;
                Taken& part = parts_here[k];
                if (there[k]) part.await();
                sync_warp();
                if (there[k]) part.put_back(lane() % 16 == 0);
                const bool divided = shuffle(there[k] ? 1 : 0, kWarp - 1) != 0;
                const float with = max_of(part.largest, shuffle_xor(part.largest, 16));
                const float factor = exp_value(part.largest - with);
                const float other_sum = shuffle_xor(part.sum * factor, 16);
                float others[4];
                HR_UNROLL
                for (int i = 0; i < 4; ++i) others[i] = shuffle_xor(part.x[i] * factor, 16);
                if (side == 0) {
                    const int slot = k * warps + warp();
                    Floats<4> out;
                    HR_UNROLL
                    for (int i = 0; i < 4; ++i) out.x[i] = divided ? fma(part.x[i], factor, others[i]) : part.x[i];
                    *reinterpret_cast<Floats<4>*>(all.outputs + slot * kFinished + lane() * 4) = out;
                    if (lane() == 0) {
                        all.largest[slot] = divided ? with : part.largest;
                        all.sums[slot] = divided ? fma(part.sum, factor, other_sum) : part.sum;
                    }
                }
            }
            sync();
            const int left = sections - begin, count = left < at_once ? left : at_once;
            if (thread() < kFinished) {
                HandedSections::Factors* factors = all.factors + warp() * at_once;
#pragma unroll 1
                for (int base = 0; base < count; base += kWarp) {
                    const int section = base + lane() < count ? base + lane() : count - 1;
                    const float own = all.largest[section];
                    // The largest before and with each section: a maximum is exact in any order.
                    float with = max_of(largest, own);
                    HR_UNROLL
                    for (int d = 1; d < kWarp; d *= 2) with = max_of(with, shuffle(with, lane() >= d ? lane() - d : lane()));
                    const float earlier = shuffle(with, lane() > 0 ? lane() - 1 : 0);
                    const float without = lane() > 0 ? earlier : largest, of_new = exp_value(own - with);
                    if (base + lane() < count) factors[section] = {exp_value(without - with), of_new, all.sums[section] * of_new};
                    largest = shuffle(with, kWarp - 1);
                }
                sync_warp();
#pragma unroll 8
                for (int i = 0; i < count; ++i) {
                    const HandedSections::Factors f = factors[i];
                    o = fma(o, f.of_old, all.outputs[i * kFinished + thread()] * f.of_new);
                    sum = fma(sum, f.of_old, f.sum);
                }
            }
            if (begin + at_once < sections || share + finishers < heads * W / kFinished) sync();  // everyone is done with these
        }
        if (thread() < kFinished) a.out[(row + head) * W + share % (W / kFinished) * kFinished + thread()] = o / sum;
    }
}

}  // namespace headroom::device
