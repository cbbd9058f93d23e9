#pragma once

// What strips, pages and sections leave behind, put together in the order of docs/arithmetic.md: common to all ways of working on a strip.

#include "kernels/copies.h"
#include "kernels/heads.h"

namespace headroom::device {

inline constexpr int kStrip = 32;  // positions: what the arithmetic adds up by itself
inline constexpr int kStrips = kPage / kStrip;

// Which strip a warp has of the pages first_page … first_page + at_once - 1, as far as below `to`, and where the token's own K and V belong, if that is in
// these pages.
struct WarpStrip {
    int number, strip;  // of the page as the token counts them, of the strip in it
    int page;           // in the pool
    int begin, end;     // the strip's visible positions; none: begin is not below end
    bool makes_own;
    int own_row, own_page;
    int fresh;          // the strip's row that is the token's own; one that is not in the strip: none

    HR_DEVICE WarpStrip(const AttentionArguments& a, int token, const Visible& visible, int first_page, int at_once, int to)
        : number(first_page + warp() / kStrips), strip(warp() % kStrips), own_row(visible.position % kPage) {
        const int own_number = visible.position / kPage;
        const bool there = number < to;
        page = page_of(a.places, token, there ? number : first_page);
        makes_own = own_number >= first_page && own_number < first_page + at_once;
        own_page = makes_own ? page_of(a.places, token, own_number) : 0;
        const int from = there ? visible.begin(number) - strip * kStrip : 0, behind = there ? visible.end(number) - strip * kStrip : 0;
        begin = from > 0 ? from : 0;
        end = behind < kStrip ? behind : kStrip;
        fresh = number == own_number ? own_row - strip * kStrip : -1;
    }
};

// Of the blocks that make a token's K and V of a KV head the one with its first query head stores them.
HR_DEVICE bool stores_own(const AttentionArguments& a, int head) { return head % (a.heads / a.pool.kv_heads) == 0; }

// The scratch of attention_rows: the outputs of the sections of each row (token and head), then their largest scores and sums.
struct Partials {
    float* begin;
    float* end_of_outputs;
    std::int64_t sections;  // of a row, at most
    int width;

    HR_DEVICE Partials(const AttentionArguments& a)
        : begin(a.partials), end_of_outputs(begin + static_cast<std::int64_t>(a.tokens) * a.heads * a.max_chunks * a.pool.head_dim_v),
          sections(a.max_chunks), width(a.pool.head_dim_v) {}
    HR_DEVICE float* output(std::int64_t row, int section) const { return begin + (row * sections + section) * width; }
    HR_DEVICE float* largest_and_sum(std::int64_t row, int section) const { return end_of_outputs + (row * sections + section) * 2; }
};

// Takes the sums of a further page or section into those of the earlier ones. D: elements of a thread.
template <int D>
struct Running {
    float largest = 0, sum = 0;
    float out[D] = {};

    HR_DEVICE void add(bool first, float more_largest, float more_sum, const float (&more)[D]) {
        if (first) {
            largest = more_largest;
            sum = more_sum;
            HR_UNROLL
            for (int d = 0; d < D; ++d) out[d] = more[d];
            return;
        }
        const float now = max_of(largest, more_largest);
        const float old_factor = exp_value(largest - now), new_factor = exp_value(more_largest - now);
        largest = now;
        sum = fma(sum, old_factor, more_sum * new_factor);
        HR_UNROLL
        for (int d = 0; d < D; ++d) out[d] = fma(out[d], old_factor, more[d] * new_factor);
    }
};

// What the warps of a block leave of their strips, strip s of a page in warp s: for the thread's own head and elements. HB: heads from strip to strip.
template <int HB>
struct StripsLeft {
    const unsigned char* outputs;  // four floats of the first strip; those of the next ones are strip_bytes apart
    int strip_bytes;
    const float *largest, *sums;   // HB apart
};

// Adds the strips of the pages first_page … first_page + at_once - 1, as far as below `to`, to section and all. Eight neighbouring lanes have the same head.
template <int HB, bool kManySections>
HR_DEVICE void add_pages(const StripsLeft<HB>& left, const Visible& visible, int first_page, int at_once, int from, int to, Running<4>& section,
                         Running<4>& all) {
#pragma unroll 1
    for (int p = 0; p < at_once && first_page + p < to; ++p) {
        // The page's strips together, ascending. Each of the eight lanes has a strip's factor.
        const int page_begin = visible.begin(first_page + p) / kStrip, page_last = (visible.end(first_page + p) - 1) / kStrip;
        const float mine = left.largest[(p * kStrips + lane() % kStrips) * HB];
        float page_largest = mine;
        HR_UNROLL
        for (int d = 1; d < kStrips; d *= 2) page_largest = max_of(page_largest, shuffle_xor(page_largest, d));
        const float factor_of_mine = exp_value(mine - page_largest);
        float page_sum = 0, o[4] = {};
        const unsigned char* of_strips = left.outputs + p * kStrips * left.strip_bytes;
        Floats<4> fours[kStrips];
        float sums[kStrips];
        HR_UNROLL
        for (int s = 0; s < kStrips; ++s) {
            fours[s] = *reinterpret_cast<const Floats<4>*>(of_strips + s * left.strip_bytes);
            sums[s] = left.sums[(p * kStrips + s) * HB];
        }
        HR_UNROLL
        for (int s = 0; s < kStrips; ++s) {
            const float factor = shuffle(factor_of_mine, lane() / kStrips * kStrips + s);
            if (s < page_begin || s > page_last) continue;  // what was read is nothing
            page_sum = fma(sums[s], factor, page_sum);
            HR_UNROLL
            for (int d = 0; d < 4; ++d) o[d] = fma(fours[s].x[d], factor, o[d]);
        }
        const int n = first_page + p;
        section.add(n == from || n % kSection == 0, page_largest, page_sum, o);
        if constexpr (kManySections) {
            if (n + 1 == to || (n + 1) % kSection == 0) all.add(n / kSection == from / kSection, section.largest, section.sum, section.out);
        }
    }
}

// What attention_prefill and attention_prefill_q8 do: the block's tokens one after the other, each with all query heads of the block's KV head and over
// all pages that it sees. attend(token, head, heads, visible, from, to).
template <class Attend>
HR_DEVICE void prefill_in_order(const AttentionArguments& a, Attend attend) {
    const int group = a.heads / a.pool.kv_heads;
    const int tokens = kernels::kPrefillRows / group;
    for (int i = 0; i < tokens; ++i) {
        const int token = block_x() * tokens + i;
        if (token >= a.tokens) return;
        const Visible visible(a.places.positions[token], a.window);
        const int from = visible.first_page();
        attend(token, block_y() * group, group, visible, from, from + visible.pages());
        sync();
    }
}

}  // namespace headroom::device
