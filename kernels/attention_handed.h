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
    float x[4] = {-0.0F, -0.0F, -0.0F, -0.0F}, largest = bits_to_float(0xff800000U), sum = 0;  // nothing

    // Asks for them: whoever looks at them waits. to_numbers: how far behind the output the largest score and the sum lie.
    HR_DEVICE void ask(int to_numbers) {
        float* numbers = output + to_numbers;
#if defined(HR_CUDA)
        asm volatile("ld.relaxed.gpu.global.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(x[0]), "=f"(x[1]), "=f"(x[2]), "=f"(x[3]) : "l"(output) : "memory");
        asm volatile("ld.relaxed.gpu.global.v2.f32 {%0, %1}, [%2];" : "=f"(largest), "=f"(sum) : "l"(numbers) : "memory");
#else
        for (int i = 0; i < 4; ++i) x[i] = output[i];
        largest = numbers[0];
        sum = numbers[1];
#endif
    }
    HR_DEVICE void await(int to_numbers) {
        static_assert(kNotThere == 0xffffffffU);
        const auto larger = [](std::uint32_t one, std::uint32_t other) { return one > other ? one : other; };
        for (;;) {
            std::uint32_t most = larger(float_to_bits(largest), float_to_bits(sum));
            HR_UNROLL
            for (int i = 0; i < 4; ++i) most = larger(most, float_to_bits(x[i]));
            if (most != kNotThere) return;
            ask(to_numbers);
        }
    }
    // numbers_too: for one of those that have taken them, when all have.
    HR_DEVICE void put_back(int to_numbers, bool numbers_too) const {
        const float none = bits_to_float(kNotThere);
        hand(output, Floats<4>{{none, none, none, none}});
        if (numbers_too) hand(output + to_numbers, Floats<2>{{none, none}});
    }
};

// What a block has of the sections that it works on at once, in shared memory. Few bytes of code: a step comes to them cold.
inline constexpr int kEach = 5;  // sections of a warp
struct HandedSections {
    struct alignas(16) Factors {
        float of_old, of_new, of_first, of_second;  // second: where a section is divided, its other part
    };
    struct alignas(16) Numbers {
        float largest, sum;  // of the first part, and of the second
        float largest_of_second, sum_of_second;
    };
    Factors* factors;  // [2 warps, sections]
    float* sums;       // [2 warps, sections]: times of_new
    Numbers* numbers;  // [sections]
    float* outputs;    // [sections, 2, kFinished]
    std::int32_t* divided;  // [sections]

    static constexpr int kBytes = kEach * (2 * static_cast<int>(sizeof(Factors)) + 2 * 4 + static_cast<int>(sizeof(Numbers)) + 2 * kFinished * 4 + 4);  // to each warp
    HR_DEVICE HandedSections(unsigned char* at, int count)
        : factors(reinterpret_cast<Factors*>(at)), sums(reinterpret_cast<float*>(factors + 2 * count)), numbers(reinterpret_cast<Numbers*>(sums + 2 * count)),
          outputs(reinterpret_cast<float*>(numbers + count)), divided(reinterpret_cast<std::int32_t*>(outputs + 2 * count * kFinished)) {}
};

// The number-th of `finishers` blocks combines the sections, ascending, for its shares of the outputs of `heads` rows: kFinished elements of a head. A warp takes some of the sections,
// each half of it one of a section's parts, four elements to a lane; a thread then has an element from the first section to the last. The whole block comes here; memory:
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
            // The second page of the warp's k-th section, counted from the first visible one; lane k knows whether the section is divided before it.
            const int of_warp = (first_page / kSection + begin + warp()) * kSection + 1 - first_page, of_lane = of_warp + lane() * warps * kSection;
            const int is_divided = of_lane > 0 && of_lane < pages && divides(of_lane) ? 1 : 0;
            Taken of_sections[kEach];
            bool there[kEach];
            float* output = parts.output(row + head, of_warp + (side != 0 ? 0 : -1)) + element;
            const int to_numbers = static_cast<int>(parts.largest_and_sum(row + head, 0, element) - parts.output(row + head, 0)) - element;
            HR_UNROLL
            for (int k = 0; k < kEach; ++k) {
                const int of_second = shuffle(is_divided, k);
                there[k] = begin + k * warps + warp() < sections && (side == 0 || of_second != 0);
                // The first section may have its second page only, which is then the first visible one.
                of_sections[k].output = k == 0 && side == 0 && of_warp == 0 ? output + Parts<W>::kFloats : output;
                if (there[k]) of_sections[k].ask(to_numbers);
                output += warps * kSection * Parts<W>::kFloats;
            }
            HR_UNROLL
            for (int k = 0; k < kEach; ++k) {
                if (there[k]) of_sections[k].await(to_numbers);
            }
            sync_warp();  // all have them
            HR_UNROLL
            for (int k = 0; k < kEach; ++k) {
                const Taken& part = of_sections[k];
                if (there[k]) part.put_back(to_numbers, lane() % 16 == 0);
                const int slot = k * warps + warp();
                *reinterpret_cast<Floats<4>*>(all.outputs + (slot * 2 + side) * kFinished + lane() % 16 * 4) = {{part.x[0], part.x[1], part.x[2], part.x[3]}};
                if (lane() % 16 == 0) *reinterpret_cast<Floats<2>*>(&all.numbers[slot].largest + 2 * side) = {{part.largest, part.sum}};
                if (lane() == 16) all.divided[slot] = there[k] ? 1 : 0;
            }
            sync();
            const int left = sections - begin, count = left < at_once ? left : at_once;
            if (thread() < kFinished) {
                HandedSections::Factors* factors = all.factors + warp() * at_once;
                float* sums = all.sums + warp() * at_once;
#pragma unroll 1
                for (int base = 0; base < count; base += kWarp) {
                    const int section = base + lane() < count ? base + lane() : count - 1;
                    const HandedSections::Numbers n = all.numbers[section];
                    const bool divided = all.divided[section] != 0;
                    // The parts of a section together: its largest score and its sum, and the factors of the parts.
                    const float own = divided ? max_of(n.largest, n.largest_of_second) : n.largest;
                    const float of_first = divided ? exp_value(n.largest - own) : 1.0F, of_second = divided ? exp_value(n.largest_of_second - own) : 1.0F;
                    const float own_sum = divided ? fma(n.sum, of_first, n.sum_of_second * of_second) : n.sum;
                    // The largest before and with each section: a maximum is exact in any order.
                    float with = max_of(largest, own);
#pragma unroll 1
                    for (int d = 1; d < kWarp; d *= 2) with = max_of(with, shuffle(with, lane() >= d ? lane() - d : lane()));
                    const float earlier = shuffle(with, lane() > 0 ? lane() - 1 : 0);
                    const float without = lane() > 0 ? earlier : largest, of_new = exp_value(own - with);
                    if (base + lane() < count) {
                        factors[section] = {exp_value(without - with), of_new, of_first, of_second};
                        sums[section] = own_sum * of_new;
                    }
                    largest = shuffle(with, kWarp - 1);
                }
                sync_warp();
#pragma unroll 4
                for (int i = 0; i < count; ++i) {
                    const HandedSections::Factors f = factors[i];
                    const float* outputs = all.outputs + i * 2 * kFinished + thread();
                    const float section = fma(outputs[0], f.of_first, outputs[kFinished] * f.of_second);  // not divided: + 1 * -0
                    o = fma(o, f.of_old, section * f.of_new);
                    sum = fma(sum, f.of_old, sums[i]);
                }
            }
            if (begin + at_once < sections || share + finishers < heads * W / kFinished) sync();  // everyone is done with these
        }
        if (thread() < kFinished) a.out[(row + head) * W + share % (W / kFinished) * kFinished + thread()] = o / sum;
    }
}

}  // namespace headroom::device
