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

// The heads that a block has to make ready: the query heads from `head` on, unless they are there, and the token's own K and V where they belong to the block. A warp has some of them, one
// after the other. The first ones' elements are asked for here, before K and V of the pool are, behind all of which they would have to wait. Waits for the kernel before.
template <int W>
struct HeadTasks {
    const AttentionArguments& a;
    const HeadArguments& raw;
    int token, kv_head, head, heads;
    int number, all;  // of the warp's head: the query heads, K, V
    HeadFactors<W> factors;
    float x[kHeadShare<W>];

    HR_DEVICE HeadTasks(const AttentionArguments& attention, const HeadArguments& of_products, int of_token, int of_kv_head, int first, int count, bool makes_own,
                        bool queries_there)
        : a(attention), raw(of_products), token(of_token), kv_head(of_kv_head), head(first), heads(count), number((queries_there ? heads : 0) + warp()),
          all(heads + (makes_own ? 2 : 0)), factors(raw, token, norm(), turns()) {
        wait_for_previous();
        load();
    }
    HR_DEVICE bool done() const { return number >= all; }
    HR_DEVICE bool is_query() const { return number < heads; }
    HR_DEVICE bool is_key() const { return number == heads; }
    // Leaves the head in `row`, in shared memory.
    HR_DEVICE void make(float* row) {
        if (turns()) return make_head<W>(raw, factors, x, row);
        HR_UNROLL
        for (int j = 0; j < kHeadShare<W>; ++j) row[j * kWarp + lane()] = x[j];
        sync_warp();
    }
    HR_DEVICE void next() {
        number += threads() / kWarp;
        if (done()) return;
        factors = HeadFactors<W>(raw, token, norm(), turns());
        load();
    }

private:
    HR_DEVICE bool turns() const { return !done() && number <= heads; }
    HR_DEVICE const float* norm() const { return done() ? nullptr : is_query() ? raw.q_norm : is_key() ? raw.k_norm : nullptr; }
    HR_DEVICE void load() {
        const std::int64_t kv_row = static_cast<std::int64_t>(token) * a.pool.kv_heads + kv_head;
        const float* from = is_query() ? raw.q + (static_cast<std::int64_t>(token) * a.heads + head + number) * W : (is_key() ? raw.k : raw.v) + kv_row * W;
        if (!done()) load_head<W>(from, W, x);
    }
};

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

// The strips of a page together, ascending. Eight neighbouring lanes have the same head.
struct PageSum {
    float largest, sum = 0;
    float out[4] = {};

    // Each of the eight lanes says what strip lane() % kStrips has; fours: the thread's own elements of all strips. Of strips without a visible position nothing counts.
    HR_DEVICE PageSum(const Visible& visible, int page, float largest_of_strip, float sum_of_strip, const Floats<4> (&fours)[kStrips]) : largest(largest_of_strip) {
        const int first = visible.begin(page) / kStrip, last = (visible.end(page) - 1) / kStrip;
        HR_UNROLL
        for (int d = 1; d < kStrips; d *= 2) largest = max_of(largest, shuffle_xor(largest, d));
        const float factor_of_strip = exp_value(largest_of_strip - largest);
        HR_UNROLL
        for (int s = 0; s < kStrips; ++s) {
            const int from = lane() / kStrips * kStrips + s;
            const float factor = shuffle(factor_of_strip, from), strip_sum = shuffle(sum_of_strip, from);
            if (s < first || s > last) continue;
            sum = fma(strip_sum, factor, sum);
            HR_UNROLL
            for (int d = 0; d < 4; ++d) out[d] = fma(fours[s].x[d], factor, out[d]);
        }
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
        const int n = first_page + p, of_strip = (p * kStrips + lane() % kStrips) * HB;
        const unsigned char* of_strips = left.outputs + p * kStrips * left.strip_bytes;
        Floats<4> fours[kStrips];
        HR_UNROLL
        for (int s = 0; s < kStrips; ++s) fours[s] = *reinterpret_cast<const Floats<4>*>(of_strips + s * left.strip_bytes);
        const PageSum page(visible, n, left.largest[of_strip], left.sums[of_strip], fours);
        section.add(n == from || n % kSection == 0, page.largest, page.sum, page.out);
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
