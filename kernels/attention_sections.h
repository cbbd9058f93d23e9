#pragma once

// The sections of a token put together while its blocks are still at work. Blocks leave words of their sections in the partials as they come; a word that
// has not come is kEmpty, and so is every word again when it has been read. Nobody waits for a fence, and no block waits to know that it is the last,
// but for the one that has to combine what others left.
//
// A head is combined by the block of section head mod sections, if all blocks of the token's heads had started by then: those it waits for
// need nobody. Else the block that started last combines it. A ticket counts both: blocks started, blocks that have decided, and the heads that they left.

#include "kernels/attention_parts.h"

namespace headroom::device {

inline constexpr std::uint32_t kEmpty = 0xffffffffU;
inline constexpr int kTicketBits = 12, kTicketMask = (1 << kTicketBits) - 1;
static_assert(kernels::kMostSections <= kTicketMask && kMostHeads <= 32 - 2 * kTicketBits);

HR_DEVICE std::uint32_t* words(float* at) { return reinterpret_cast<std::uint32_t*>(at); }
HR_DEVICE void leave_word(float* at, float value) {
    const std::uint32_t bits = float_to_bits(value);
    store_word(words(at), bits == kEmpty ? 0x7fffffffU : bits);  // a NaN is a NaN
}

// Combines the sections of `count` rows, step apart from the first, ascending, as Running does, and writes their outputs; with more than one row there are at most
// eight sections. Waits for words that have not come. The whole block comes here; shared memory is free again: tiles_bytes of it, behind which there is room
// for the sections' factors. Few blocks do, and come to it cold: it is a few short loops.
template <int W>
HR_DEVICE void combine_rows_of(const AttentionArguments& a, std::int64_t row, int step, int count, int sections, int tiles_bytes) {
    struct Factors {
        float of_old, of_new, sum;
    };
    const Partials partials(a);
    const int width = width_or<W>(partials.width);
    // A part of the sections' outputs lies where the tiles were, [count, at_once, width], and their factors behind, [count, kWarp].
    const int at_once = sections < kWarp ? sections : kWarp;
    std::uint32_t* outputs = reinterpret_cast<std::uint32_t*>(dynamic_shared());
    auto* factors = reinterpret_cast<Factors*>(dynamic_shared() + tiles_bytes);
    // As many threads to load each row; then a thread for each four elements.
    int loading = threads();
    while (loading * count > threads()) loading /= 2;
    int own = 0, thread_of_row = thread();
    for (; thread_of_row >= loading; thread_of_row -= loading) ++own;
    const int head = thread() / (width / 4), element = thread() % (width / 4) * 4;
    Floats<4> out = {{-0.0F, -0.0F, -0.0F, -0.0F}};  // the first factor is 0, and 0 * -0 + x is x for every x
    float sum = 0;
    float largest = bits_to_float(0xff800000U);  // of the warp's row, over the sections so far
#pragma unroll 1
    for (int first = 0; first < sections; first += at_once) {
        const int some = sections - first < at_once ? sections - first : at_once, all = some * width;
        if (own < count) {
            constexpr int kTogether = 8;  // words on their way
            std::uint32_t* from = words(partials.output(row + own * step, first));
            std::uint32_t* to = outputs + own * at_once * width;
#pragma unroll 1
            for (int i = thread_of_row; i < all; i += kTogether * loading) {
                std::uint32_t bits[kTogether];
                bool come;
                do {
                    come = true;
                    HR_UNROLL
                    for (int k = 0; k < kTogether; ++k) {
                        bits[k] = i + k * loading < all ? load_word(from + i + k * loading) : 0U;
                        come = come && bits[k] != kEmpty;
                    }
                } while (!come);
                HR_UNROLL
                for (int k = 0; k < kTogether; ++k) {
                    if (i + k * loading >= all) continue;
                    to[i + k * loading] = bits[k];
                    store_word(from + i + k * loading, kEmpty);
                }
            }
            sync_warp();
            if (thread_of_row < kWarp) {
                std::uint32_t* mine = words(partials.largest_and_sum(row + own * step, first + (lane() < some ? lane() : 0)));
                std::uint32_t m_bits, l_bits;
                do {
                    m_bits = load_word(mine);
                    l_bits = load_word(mine + 1);
                } while (m_bits == kEmpty || l_bits == kEmpty);
                sync_warp();
                store_word(mine, kEmpty);
                store_word(mine + 1, kEmpty);
                const float m = bits_to_float(m_bits), l = bits_to_float(l_bits);
                // The largest before and with each section: a maximum is exact in any order.
                float with = max_of(largest, m);
#pragma unroll 1
                for (int d = 1; d < kWarp; d *= 2) with = max_of(with, shuffle(with, lane() >= d ? lane() - d : lane()));
                const float earlier = shuffle(with, lane() > 0 ? lane() - 1 : 0);
                const float without = lane() > 0 ? earlier : largest;
                const float of_new = exp_value(m - with);
                factors[own * kWarp + lane()] = {exp_value(without - with), of_new, l * of_new};
                largest = shuffle(with, kWarp - 1);
            }
        }
        sync();
        if (head < count) {
            const Factors* of_row = factors + head * kWarp;
            const std::uint32_t* from = outputs + head * at_once * width + element;
#pragma unroll 2
            for (int i = 0; i < some; ++i) {
                const Factors f = of_row[i];
                const Floats<4> o = *reinterpret_cast<const Floats<4>*>(from + i * width);
                HR_UNROLL
                for (int d = 0; d < 4; ++d) out.x[d] = fma(out.x[d], f.of_old, o.x[d] * f.of_new);
                sum = fma(sum, f.of_old, f.sum);
            }
        }
        if (first + at_once < sections) sync();  // everyone is done with these
    }
    if (head >= count) return;
    HR_UNROLL
    for (int d = 0; d < 4; ++d) out.x[d] = out.x[d] / sum;
    *reinterpret_cast<Floats<4>*>(a.out + (row + head * step) * width + element) = out;
}

// The block's share of what is sent for ahead, if it is one of a first section.
HR_DEVICE void send_for(const kernels::AheadAttentionArguments& a) {
#if defined(HR_CUDA)
    constexpr int kLine = 128;
    if (block_y() > 0) return;
    const int first = (block_z() * grid_x() + block_x()) * threads() + thread(), step = grid_x() * a.attention.tokens * threads();
#pragma unroll 1
    for (const auto& ahead : a.ahead) {
#pragma unroll 1
        for (std::int64_t at = std::int64_t{first} * kLine; at < ahead.bytes; at += std::int64_t{step} * kLine) {
            asm volatile("prefetch.global.L2 [%0];" ::"l"(ahead.from + at));
        }
    }
#else
    (void)a;
#endif
}

// The block begins with its part of the heads from row `row` on; what came before is of a kernel that has ended. Returns what finish needs, in thread 0.
HR_DEVICE int start_section(const AttentionArguments& a, int row) { return thread() == 0 ? atomic_add(a.tickets + row, 1) & kTicketMask : 0; }

// The outputs of an even number of heads, from row `row` on, in the quantized form that products read: a group is two heads. A warp has four elements to a lane of
// head `part`. The whole block comes here.
template <int W>
HR_DEVICE void quantize_heads(const AttentionArguments& a, int row, int part, int heads, int element, const Floats<4>& out) {
    static_assert(W == 4 * kWarp);
    __shared__ float largest_of[kernels::kMostAttentionThreads / kWarp];
    float largest = 0;
    HR_UNROLL
    for (int d = 0; d < 4; ++d) {
        const float magnitude = out.x[d] < 0 ? -out.x[d] : out.x[d];
        largest = magnitude > largest ? magnitude : largest;
    }
    largest = max_32(largest);
    if (lane() == 0) largest_of[warp()] = largest;
    sync();
    if (part >= heads) return;
    const float other = largest_of[warp() ^ 1];
    largest = other > largest ? other : largest;
    const bool some = largest >= kSmallestGroup;
    const float inverse = some ? 127.0F / largest : 0.0F;
    std::uint32_t codes = 0;
    HR_UNROLL
    for (int d = 0; d < 4; ++d) codes |= static_cast<std::uint32_t>(static_cast<int>(rint(out.x[d] * inverse)) & 255) << (8 * d);
    int sum = dot4(static_cast<int>(codes), 0x01010101, 0);
    sum += shuffle_xor(sum, 1);
    sum += shuffle_xor(sum, 2);
    const std::int64_t at = static_cast<std::int64_t>(row + part) * W + element;
    *reinterpret_cast<std::uint32_t*>(a.groups_256.codes + at) = codes;
    if (lane() % 4 == 0) a.groups_256.sums[at / 16] = static_cast<std::int16_t>(sum);
    if (at % 256 == 0) a.groups_256.scales[at / 256] = some ? largest / 127.0F : 0.0F;
}

// What comes of the pages from … of `heads` neighbouring rows, the first of which is `row`: the thread has four elements from `element` on of row + part. whole: it is
// the output; else a section's part of it. started: of start_section; tiles_bytes: of combine_rows_of. kQuantizes: the output may be wanted as groups.
template <int W, bool kQuantizes>
HR_DEVICE void finish(const AttentionArguments& a, int row, int part, int heads, int element, const Running<4>& total, const Visible& visible, int from,
                      bool whole, int started, int tiles_bytes) {
    const Partials partials(a);
    if (whole) {
        const Floats<4> out = {{total.out[0] / total.sum, total.out[1] / total.sum, total.out[2] / total.sum, total.out[3] / total.sum}};
        if constexpr (kQuantizes) {
            if (a.groups_256.codes != nullptr) return quantize_heads<W>(a, row, part, heads, element, out);
        }
        if (part < heads) *reinterpret_cast<Floats<4>*>(a.out + static_cast<std::int64_t>(row + part) * width_or<W>(partials.width) + element) = out;
        return;
    }
    const int sections = visible.sections(), index = from / kSection - visible.first_page() / kSection;
    __shared__ int mine, last;
    int owned = 0;  // heads
    unsigned which = 0;
    for (int h = index; h < heads; h += sections, ++owned) which |= 1U << h;
    std::uint32_t* ticket = reinterpret_cast<std::uint32_t*>(a.tickets + row);
    const std::uint32_t seen = thread() == 0 ? load_word(ticket) : 0;
    if (part < heads) {
        float* to = partials.output(row + part, index) + element;
        HR_UNROLL
        for (int d = 0; d < 4; ++d) leave_word(to + d, total.out[d]);
        if (element == 0) {
            leave_word(partials.largest_and_sum(row + part, index), total.largest);
            leave_word(partials.largest_and_sum(row + part, index) + 1, total.sum);
        }
    }
    if (thread() == 0) {
        const bool all = (static_cast<int>(seen) & kTicketMask) == sections;
        (void)atomic_add(a.tickets + row, static_cast<int>((1U << kTicketBits) + ((all ? 0U : which) << (2 * kTicketBits))));
        mine = all && owned > 0 ? 1 : 0;
        last = started == sections - 1 ? 1 : 0;
    }
    sync();
    // First the block's own heads, then, in the last block, one after the other what others have left.
    int first = index, count = owned;
    bool some = mine != 0;
    int others = -1;  // not yet known
#pragma unroll 1
    for (;;) {
        if (some) combine_rows_of<W>(a, row + first, sections, count, sections, tiles_bytes);
        if (last == 0) return;
        if (others < 0) {
            sync();
            if (thread() == 0) {
                std::uint32_t now;
                do now = load_word(ticket);
                while ((static_cast<int>(now >> kTicketBits) & kTicketMask) != sections);
                mine = static_cast<int>(now >> (2 * kTicketBits));
                store_word(ticket, 0);
            }
            sync();
            others = mine;
        }
        if (others == 0) return;
        for (first = 0; (others >> first & 1) == 0;) ++first;
        others &= others - 1;
        count = 1;
        some = true;
        sync();
    }
}

}  // namespace headroom::device
