#pragma once

// What the host hands to each kernel: one structure, passed by value as the kernel's only parameter. Shared by the device code, the
// host's launches (core/compute/gpu) and the simulated driver. Pointers are addresses on the device (or of pinned host memory where it
// says so); no structure owns anything. Every array has the shape [rows, columns] with nothing between the rows unless a stride is named.
//
// The arithmetic of every kernel is that of the CPU operator named beside it (docs/arithmetic.md), bit for bit; the exception,
// attention_prefill, says so.

#include <cstdint>

namespace headroom::kernels {

// A weight matrix, as in the file: rows of whole blocks. data is aligned to 16 bytes for the first row of a tensor.
struct Matrix {
    const std::uint8_t* data;
    std::uint32_t type;  // gguf::TensorType
    std::int32_t rows;   // outputs
    std::int32_t cols;   // inputs
    std::uint32_t row_bytes;
};

// Activations quantized in groups of G = 256 or 32: codes [tokens, n], scales [tokens, n / G], sums [tokens, n / 16] (of the codes,
// 16 at a time: what types with minima need). codes null: this form is not there.
struct Quantized {
    std::int8_t* codes;
    float* scales;
    std::int16_t* sums;
};

// Which forms of the activations the products of a call read: an or of these (as cpu::ActivationForm).
inline constexpr std::uint32_t kFormFloats = 1;
inline constexpr std::uint32_t kForm32 = 2;
inline constexpr std::uint32_t kForm256 = 4;

// y[t * y_stride + r] = product (+ bias[r]); add: that is added to what y holds (x + (product + bias)).
struct Target {
    Matrix w;
    const float* bias;  // [rows] or null
    float* y;
    std::int32_t y_stride;
    std::int32_t add;
};

// embed_rows: x[t] = row tokens[t] of the table, dequantized (cpu::dequantize_row). All types. Ids are checked by the host.
struct EmbedArguments {
    Matrix table;
    const std::int32_t* tokens;  // [count]
    float* x;                    // [count, table.cols]
    std::int32_t count;
};

// norm_rows: RMS norm of rows (cpu::rms_norm) and their quantized forms (cpu::Activations), each where wanted. Row i of the results
// belongs to row rows[i] of x, or to row i where rows is null. weight null: no norm, the rows are taken as they are.
struct NormArguments {
    const float* x;             // [any, n]
    const std::int32_t* rows;   // [count] or null
    const float* weight;        // [n] or null
    float epsilon;
    std::int32_t count;
    std::int32_t n;
    float* out;                 // [count, n] or null; may be x where rows is null
    Quantized groups_256;
    Quantized groups_32;
};

// Products of the same activations with up to three matrices of any types (cpu::matmul, cpu::add_bias, cpu::add).
// swiglu: targets[0] is the gate, targets[1] the up matrix; targets[0].y gets silu(gate) * up (cpu::swiglu), targets[1].y is not written.
//
// product_row: one token; quantizes x itself, after an RMS norm with `norm` where that is not null. groups_* are not read.
// product_row_TYPE, product_row_TYPE_TYPE: the same, where all matrices are of this type, or of one of the two.
// product_rows: any number of tokens; reads groups_* (and x for float weights). norm is not read.
// product_few: the same on matrix units, where the device has them, and all matrices are of type Q4_K, Q5_K or Q6_K (a gate and an up matrix of
// one of them): fast for 2 to 8 tokens, which a block works on together. product_few_wide: the same without gate and up, for rows of at most 16 superblocks, and
// no more tiles of 16 rows than groups of as many warps as these. product_few_q6_k: the same for one matrix of Q6_K whose rows are a multiple of
// 2,048 wide.
inline constexpr int kProductRowThreads = 640;     // of a block, one on each multiprocessor: so many as leave enough registers
inline constexpr int kProductRowThreadsHip = 256;
inline constexpr int kFewTokens = 8;
inline constexpr int kFewThreads = 512;
inline constexpr int kFewPieceStride = 1696;  // bytes between rows of eight superblocks of Q6_K in shared memory
struct ProductArguments {
    Target targets[3];
    std::int32_t target_count;
    std::int32_t swiglu;
    std::int32_t tokens;
    std::uint32_t forms;
    const float* x;      // [tokens, cols]
    const float* norm;   // [cols] or null
    float epsilon;
    Quantized groups_256;
    Quantized groups_32;
    std::int32_t stages = 0;  // the launch of product_few_q6_k sets it: pieces of each four warps in shared memory
};

// A block of product_tiles and experts_tiles: its threads, the rows of weights and the tokens it multiplies, and the shared memory it needs:
// a stage, or two where the device has matrix units that are used (NVIDIA from sm_80 on), and what the first pass leaves.
inline constexpr int kTileThreads = 256;
inline constexpr int kTileRows = 64;
inline constexpr int kTileTokens = 64;
inline constexpr int kTileStageBytes = 40960;
inline constexpr int kTileParkedBytes = 16384;

// product_tiles_TYPE: many tokens, with matrix units where the device has them. Quantized types only.
struct ProductTilesArguments {
    Target target;
    Quantized x;  // the groups that the type reads
    std::int32_t tokens;
};

// few_experts_gate_up_TYPE and few_experts_down_TYPE: what they take at most, and shared memory for what they need to know of a choice.
inline constexpr int kMostFewTokens = 16;
inline constexpr int kMostFewExperts = 512;
inline constexpr int kMostFewUsed = 16;
inline constexpr int kFewItemBytes = 64;

// Where an expert's three matrices lie on this device; all null: not here.
struct ExpertAddresses {
    const std::uint8_t* gate;
    const std::uint8_t* up;
    const std::uint8_t* down;
};

// The matrices of a layer's experts. gate, up: [hidden, width]; down: [width, hidden].
struct ExpertShape {
    std::uint32_t gate_type;
    std::uint32_t up_type;
    std::uint32_t down_type;
    std::uint32_t gate_row_bytes;
    std::uint32_t up_row_bytes;
    std::uint32_t down_row_bytes;
    std::int32_t experts;
    std::int32_t used;
    std::int32_t width;
    std::int32_t hidden;
};

// router_row: a few tokens, each by itself: RMS norm of x, its quantized forms (written where not null, for experts_gate_up), the scores, and
// the choice (cpu::rms_norm, cpu::matmul, cpu::route). The last block of a token to finish chooses; its ticket is 0 before and after.
// chosen null: scores, no choice.
struct RouterArguments {
    Matrix w;             // [experts, width]: F32, F16, BF16 or quantized
    const float* x;       // [tokens, width]
    const float* norm;    // [width]
    float epsilon;
    std::int32_t used;
    std::int32_t normalize;
    float* normed;        // [tokens, width], always written
    Quantized groups_256;
    Quantized groups_32;
    float* scores;        // [tokens, experts]
    std::int32_t* chosen; // [tokens, used] or null
    float* shares;        // [tokens, used]
    std::int32_t* ticket; // [tokens]
    std::int32_t tokens;
    std::int32_t* counts = nullptr;  // [experts] or null: one more for each expert that is chosen
};

// choose_experts: cpu::route for many tokens.
struct ChooseArguments {
    const float* scores;  // [tokens, experts]
    std::int32_t tokens;
    std::int32_t experts;
    std::int32_t used;
    std::int32_t normalize;
    std::int32_t* chosen; // [tokens, used]
    float* shares;        // [tokens, used]
    std::int32_t* counts = nullptr;  // as router_row's
};

// experts_gate_up_TYPE: the same for matrices of this type. scores: where they are given (here of one token), the choice is made first
// (cpu::route), and written to chosen and shares.
// experts_gate_up: a few tokens: hidden[c] = silu(gate x) * (up x) for every choice c = token * used + rank whose expert is on the device;
// rows of others are left as they are.
struct ExpertsGateUpArguments {
    const ExpertAddresses* table;  // [experts]
    ExpertShape shape;
    std::int32_t* chosen;          // [tokens, used]
    std::int32_t tokens;
    const float* x;                // [tokens, width]: normed; read by float weights only
    Quantized groups_256;          // of x
    Quantized groups_32;
    float* hidden;                 // [tokens * used, hidden]
    std::int32_t complete;         // every expert of the layer is on the device
    const float* scores = nullptr; // [tokens, experts] or null
    std::int32_t normalize = 0;
    float* shares = nullptr;       // [tokens, used]
    std::int32_t* counts = nullptr;  // as router_row's
    // The launch of few_experts_gate_up_TYPE sets these: tiles of each four warps in shared memory, and bytes between their rows.
    std::int32_t stages = 0;
    std::int32_t row_stride = 0;
};

// experts_down_TYPE: the same for matrices of this type.
// experts_down: a few tokens: quantizes the rows of hidden itself; y[c] = down hidden[c] for the choices that are on the device.
// outputs null: x[t] += the weighted sum of y over the ranks (cpu::combine_experts); every expert chosen is on the device.
// Else: outputs[c] = y[c] for those, and combine_rows follows.
inline constexpr int kMostDownRows = 128;  // of a block of experts_down and experts_down_TYPE
struct ExpertsDownArguments {
    const ExpertAddresses* table;
    ExpertShape shape;
    const std::int32_t* chosen;
    const float* shares;    // [tokens, used]
    std::int32_t tokens;
    const float* hidden;    // [tokens * used, hidden]
    float* x;               // [tokens, width]
    float* outputs;         // [tokens * used, width] or null
    // The launch of few_experts_down_TYPE sets these: tiles of each group of warps in shared memory, and rows of hidden that a block may need.
    std::int32_t stages = 0;
    std::int32_t code_rows = 0;
};

// few_experts_gate_up_TYPE, and few_experts_down_TYPE behind it: the same for two to sixteen tokens, where the device has matrix units, with the choices grouped by
// expert. outputs is given. list: what the first leaves for the second, [1 + tokens * used] of kFewItemBytes, aligned to 16 bytes.
struct FewGateUpArguments {
    ExpertsGateUpArguments of;
    void* list;
};
struct FewDownArguments {
    ExpertsDownArguments of;
    const void* list;
};

// group_rows: sorts the choices by expert. offsets[e] .. offsets[e + 1] are expert e's entries of rows; rows[i] is the number of a choice
// (token * used + rank), ascending within an expert.
struct GroupArguments {
    const std::int32_t* chosen;  // [choices]
    std::int32_t choices;
    std::int32_t experts;
    std::int32_t* offsets;       // [experts + 1]
    std::int32_t* rows;          // [choices]
};

// experts_tiles_TYPE: many tokens: y[c] = W_e x[c / divisor] for every choice c of every expert e that is on the device. Quantized types.
struct ExpertsTilesArguments {
    const ExpertAddresses* table;
    std::int32_t which;          // 0: gate, 1: up, 2: down
    std::int32_t rows;           // of each matrix
    std::int32_t cols;
    std::uint32_t row_bytes;
    std::int32_t experts;
    std::int32_t choices;
    std::int32_t divisor;        // used: x has a row for each token; 1: one for each choice
    const std::int32_t* offsets;
    const std::int32_t* grouped; // group_rows' rows
    Quantized x;
    float* y;                    // [choices, rows]
};

// swiglu_rows: silu(gate) * up (cpu::swiglu) and the quantized forms of the result, each where wanted.
struct SwigluArguments {
    const float* gate;   // [rows, n]
    const float* up;     // [rows, n]
    std::int32_t rows;
    std::int32_t n;
    float* out;          // [rows, n] or null; may be gate
    Quantized groups_256;
    Quantized groups_32;
};

// combine_rows: x[t] += sum over the ranks of shares * y (cpu::combine_experts). The output of choice c is outputs[c] where its expert is
// on the device, else host_outputs[c].
struct CombineArguments {
    const ExpertAddresses* table;
    const std::int32_t* chosen;      // [tokens, used]
    const float* shares;             // [tokens, used]
    const float* outputs;            // [tokens * used, n]
    const float* host_outputs;       // the same, pinned host memory; null where every expert is on the device
    float* x;                        // [tokens, n]
    std::int32_t tokens;
    std::int32_t used;
    std::int32_t n;
};

// combine_norm_rows: combine_rows of what is all on the device, then norm_rows of the same rows, with a weight: norm.x is combine.x.
struct CombineNormArguments {
    CombineArguments combine;
    NormArguments norm;
};

// One layer's part of the KV pool. Page p begins at base + p * page_bytes; in it K of the layer lies at k_offset, V at v_offset (bytes):
// halves [kv_heads, 256, head_dim] and [kv_heads, 256, head_dim_v], or codes and then their scales: as cpu::KvView.
struct KvPool {
    std::uint8_t* base;
    std::uint64_t page_bytes;
    std::uint64_t k_offset;
    std::uint64_t v_offset;
    std::int32_t kv_heads;
    std::int32_t head_dim;    // a multiple of 32, at most 256
    std::int32_t head_dim_v;  // the same
    std::int32_t type = 0;    // cpu::KvType; decides which kernels are launched
};

// Where each token of a batch stands: token t is at position positions[t] of the session whose pages are listed in row tables[t] of
// pages: page number i / 256 of its position i is pages[tables[t] * pages_stride + i / 256].
struct Places {
    const std::int32_t* positions;  // [tokens]
    const std::int32_t* tables;     // [tokens]
    const std::int32_t* pages;      // [sessions, pages_stride]
    std::int32_t pages_stride;
};

// head_rows: norm of each head of q and k where the weights are there (cpu::rms_norm), rotation (cpu::rope), k and v stored into the
// pool as halves (cpu::store_kv). q is changed in place, k and v are only read.
struct HeadArguments {
    float* q;             // [tokens, heads * head_dim]
    const float* k;       // [tokens, kv_heads * head_dim]
    const float* v;       // [tokens, kv_heads * head_dim_v]
    const float* q_norm;  // [head_dim] or null
    const float* k_norm;
    float epsilon;
    const float* cosine;  // [tokens, half]
    const float* sine;
    std::int32_t half;    // 2 * half elements of a head turn
    std::int32_t layout;  // cpu::RopeLayout: 0 adjacent, 1 halves
    std::int32_t heads;
    std::int32_t tokens;
    KvPool pool;
    Places places;
};

// attention_rows_HEADS: each token by itself, in the CPU's order (cpu::attention): a block for each KV head (and part of its query heads, of
// which it works on HEADS at once), section (512 positions) and token. The sections are put together, ascending, by blocks of the token's heads: their ticket is 0
// and every word of partials 0xffffffff before and after.
// attention_prefill: many tokens of one session at neighbouring positions. partials is not read. attention_prefill_WIDTH: the
// same for heads of that width on matrix units, where the device has them: its own order, the tolerance is in docs/arithmetic.md.
struct AttentionArguments {
    const float* q;           // [tokens, heads * head_dim], as head_rows leaves it
    float* out;               // [tokens, heads * head_dim_v]
    std::int32_t heads;
    std::int32_t tokens;
    std::int32_t window;      // 0: none
    float scale;
    KvPool pool;
    Places places;
    std::int32_t max_chunks;  // no token sees more pages than this
    float* partials;          // room for tokens * heads * max_chunks * (head_dim_v + 2), aligned to 16 bytes
    std::int32_t* tickets;    // [tokens * heads]; like partials only where max_chunks is not 1
    // The launch sets these: tiles in shared memory to a warp (1, 3 or 4); of attention_rows and attention_step, the parts into which the query heads
    // of a KV head are divided, and the heads of one.
    std::int32_t tile_slots = 0;
    std::int32_t parts = 1;
    std::int32_t heads_of_part = 0;
    // attention_long: room for long_part_floats(head_dim_v) floats for each token, head and page of max_chunks, aligned to 16 bytes. All bits
    // are set before and after. Null: it is not used.
    float* parts_to_hand = nullptr;
    std::int32_t blocks = 1;     // set by the launch: blocks for each token and KV head,
    std::int32_t finishers = 1;  // and how many of them at most finish the output
    // attention_step and attention_cluster for heads of 128, where there is one section and a block has an even number of heads: the output's quantized form
    // [tokens, heads * head_dim_v], instead of out. No codes: out.
    Quantized groups_256 = {};
};

// attention_step_WIDTH_HEADS: head_rows and attention_rows_HEADS in one, for heads of that width and tokens of which no two are of one session. What the pool holds of earlier positions must be there before the kernel before this one on the stream begins.
struct StepAttentionArguments {
    HeadArguments heads;
    AttentionArguments attention;
};
// attention_cluster_128_HEADS and attention_ahead_q8_128 (attention_step_q8_128 for several tokens): weights of the next kernels that are sent for to the second-level cache, while the memory has little else to do.
inline constexpr int kMostAhead = 7;
struct Ahead {
    const std::uint8_t* from;
    std::int64_t bytes;
};
struct AheadAttentionArguments {
    HeadArguments heads;
    AttentionArguments attention;
    Ahead ahead[kMostAhead] = {};
};

// The same where K and V are int8 codes: head_rows_q8, attention_rows_q8 and attention_prefill_q8 (page by page in the exact order, without matrix units),
// attention_rows_q8_tiles and attention_step_q8_WIDTH (matrix units for int8), attention_prefill_q8_WIDTH (those for halves, which the codes become).

#if defined(__CUDACC__)
#define HR_ANYWHERE __host__ __device__ constexpr  // both the host and kernels call it
#else
#define HR_ANYWHERE constexpr
#endif

// attention_long_128_HEADS: attention_step for heads of that width, where the pages are many. A block has 256 threads and a multiprocessor for
// itself: kLongSlots tiles of a strip (32 rows of K or V, every four kLongGap halves apart) for each warp, then HEADS heads and one more,
// then the largest scores and sums of the strips of two pages, then the warps' weights of two strips, of every four rows 4 HEADS + 4.
// attention_long_q8_128: the same with codes. A block has 256 or kMostAttentionThreads threads and the shared memory of attention_step_q8_128.
inline constexpr std::int32_t kMostAttentionThreads = 512;
inline constexpr std::int32_t kLongWidth = 128, kLongSlots = 3, kLongGap = 8;
HR_ANYWHERE std::int32_t long_part_floats(std::int32_t width) { return width * 3 / 2; }

// attention_cluster_128_HEADS: attention_step for heads of that width, HEADS of them to a KV head. Four neighbouring blocks of kClusterThreads have a section;
// attention_cluster_page_128_HEADS: a page, where max_chunks is 1.
// Each has room for K and V of a quarter of its strips, for what all strips leave of a quarter of the heads, for the heads and one more, and for weights.
inline constexpr std::int32_t kClusterBlocks = 4, kClusterThreads = 256;
constexpr std::int32_t cluster_block_bytes(std::int32_t group, std::int32_t pages) {
    const std::int32_t strips = pages * 256 / 32, own = group / kClusterBlocks;
    return strips / kClusterBlocks * 2 * (32 * kLongWidth + 4 * 16) * 2 + strips * own * (kLongWidth + 2) * 4 + (group + 1) * kLongWidth * 4 +
           strips / kClusterBlocks * 32 * group * 4;
}

// A block of attention_prefill has the query heads of a KV head of kPrefillRows / (heads / kv_heads) neighbouring tokens. On matrix units it
// has a warp for each 16 such rows, and takes the keys in tiles of kPrefillKeys.
inline constexpr std::int32_t kPrefillRows = 128;
template <int kWidth>
inline constexpr std::int32_t kPrefillKeys = kWidth > 128 ? 16 : 64;
// Halves from row to row there, and bytes of shared memory: two tiles each of K and V; with codes one of each, V's turned, and what another is made of.
template <int kWidth>
inline constexpr std::int32_t kPrefillRow = kWidth + 8;
template <int kWidth>
inline constexpr std::int32_t kPrefillBytes = 2 * 2 * kPrefillKeys<kWidth> * kPrefillRow<kWidth> * 2;
template <int kWidth>
inline constexpr std::int32_t kPrefillCodesBytes =
    2 * (kPrefillKeys<kWidth> * kPrefillRow<kWidth> + kWidth * (kPrefillKeys<kWidth> + 8)) + 2 * kPrefillKeys<kWidth> * kWidth * 17 / 16;

// Bytes of a warp's tile of K or V in shared memory at most: 2,048 halves and 3 gaps. attention_rows and attention_prefill have `tile_slots` of them for
// each warp, then the heads that they work on at once and one more, then the scores of a strip for each warp.
// Their blocks have 256 or kMostAttentionThreads threads.
inline constexpr std::int32_t kSlotBytes = 4096 + 4 * 32;
// Sections that a token can have: what a ticket can count.
inline constexpr std::int32_t kMostSections = 4095;

// With codes: query heads that a block works on at once; bytes from row to row of codes in shared memory, so that four of them lie in different banks;
// from row to row of a strip's output (floats); bytes of a warp's memory, on matrix units: keys (or the output in their place), values, scales, and what
// the values' weights are made integers with; without: the output, the weights, and a block's integers.
inline constexpr std::int32_t kCodeHeads = 8;
HR_ANYWHERE std::int32_t code_heads(std::int32_t width_v) { return width_v > 128 ? kCodeHeads / 2 : kCodeHeads; }
HR_ANYWHERE std::int32_t code_row(std::int32_t width) { return width | 32; }
HR_ANYWHERE std::int32_t output_row(std::int32_t width_v) { return width_v + 4; }
HR_ANYWHERE std::int32_t output_bytes(std::int32_t width_v) { return code_heads(width_v) * output_row(width_v) * 4; }
HR_ANYWHERE std::int32_t tiles_keys_bytes(std::int32_t width, std::int32_t width_v) {
    const std::int32_t keys = 32 * code_row(width), output = output_bytes(width_v);
    return keys > output ? keys : output;
}
HR_ANYWHERE std::int32_t tiles_strip_bytes(std::int32_t width, std::int32_t width_v) {
    return tiles_keys_bytes(width, width_v) + 32 * width_v + 2 * (width + width_v) + 32 * 2 * 4;
}
HR_ANYWHERE std::int32_t plain_strip_bytes(std::int32_t width_v) { return output_bytes(width_v) + kCodeHeads * (32 * 4 + 64 + 4); }
// Behind the warps': the queries' codes and scales, maximum and sum of each strip and head (or, in the end, the factors of 32 sections); then, where
// heads are made ready, the token's own K and V, and the heads.
HR_ANYWHERE std::int32_t code_block_bytes(std::int32_t warps, std::int32_t strip_bytes, std::int32_t width, std::int32_t width_v, bool makes_heads) {
    const std::int32_t behind = kCodeHeads * (code_row(width) + width / 8) + warps * kCodeHeads * 2 * 4;
    const std::int32_t own = makes_heads ? (width + width_v) * 9 / 8 + (kCodeHeads + 2) * width * 4 : 0;
    const std::int32_t factors = kCodeHeads * 32 * 12;
    return warps * strip_bytes + (behind + own > factors ? behind + own : factors);
}

// argmax_rows: the index of the largest value of each row, the lowest such index (cpu::argmax).
struct ArgmaxArguments {
    const float* x;       // [rows, n]
    std::int32_t rows;
    std::int32_t n;
    std::int32_t* out;    // [rows]
};

// top_rows: the k largest values of each row, largest first, the lower index first on ties; what is no number is -infinity. k is at most kMostTop.
inline constexpr std::int32_t kMostTop = 256;
struct TopArguments {
    const float* x;       // [rows, n]
    std::int32_t rows;
    std::int32_t n;
    std::int32_t k;
    float* values;        // [rows, k]
    std::int32_t* ids;    // [rows, k]
};

// hand_over: for experts that are not on the device: copies the rows and the choice to pinned host memory, then counts *counter up and
// writes it to *flag (pinned host memory), which a host thread watches. With a table: where every chosen expert is on the device it does
// nothing but count; *awaited is the count of the last hand-over that was none of these. The host sees a later count when one follows.
// With `placed` the device computes some of the missing ones itself, from the host's memory: the first read_by_device of the missing choices, as far as the
// table has addresses there. Their entries of placed are `host_entries` more than the expert, all others are the expert; the host sees
// kNotAsked in their places.
inline constexpr std::uint32_t kWholeShare = 1U << 16;
inline constexpr std::int32_t kNotAsked = -1, kMostPlaced = 1024;  // choices
HR_ANYWHERE std::int32_t read_by_device(std::int32_t missing, std::uint32_t share) {
    return static_cast<std::int32_t>((static_cast<std::uint32_t>(missing) + 1) * share / kWholeShare);
}
struct HandOverArguments {
    const float* x;              // [tokens, width]
    const std::int32_t* chosen;  // [tokens, used]
    std::int32_t tokens;
    std::int32_t width;
    std::int32_t used;
    float* host_x;               // pinned, the same shapes
    std::int32_t* host_chosen;
    std::uint32_t* counter;      // on the device
    std::uint32_t* flag;         // pinned
    const ExpertAddresses* table = nullptr;  // [experts] or null
    std::uint32_t* awaited = nullptr;        // on the device
    std::int32_t* placed = nullptr;          // [tokens, used], at most kMostPlaced, or null; with a table
    std::int32_t host_entries = 0;           // of the table: how far behind a device's address the host's stands
    const std::uint32_t* share = nullptr;    // on the device, at most kWholeShare
};

// await_host: ends when *flag (pinned host memory) is at least *counter (hand_over's counter or `awaited`): the host has answered it. Writes *counter
// to *arrived (pinned host memory) before, unless that is null: everything before it in the stream has ended.
struct AwaitArguments {
    const std::uint32_t* counter;
    const std::uint32_t* flag;
    std::uint32_t* arrived = nullptr;
};

}  // namespace headroom::kernels

// Every kernel: X(name, arguments). In the module its name has "headroom_" before it.
// clang-format off
#define HR_KERNELS_OF_TYPES(X, prefix, arguments)                                                                             \
    X(prefix##_q4_0, arguments) X(prefix##_q4_1, arguments) X(prefix##_q5_0, arguments) X(prefix##_q5_1, arguments)           \
    X(prefix##_q8_0, arguments) X(prefix##_q2_k, arguments) X(prefix##_q3_k, arguments) X(prefix##_q4_k, arguments)           \
    X(prefix##_q5_k, arguments) X(prefix##_q6_k, arguments) X(prefix##_iq4_nl, arguments) X(prefix##_iq4_xs, arguments)
#define HR_KERNELS(X)                                            \
    X(embed_rows, EmbedArguments)                                \
    X(norm_rows, NormArguments)                                  \
    X(product_row, ProductArguments)                             \
    X(product_row_q4_k, ProductArguments)                        \
    X(product_row_q5_k, ProductArguments)                        \
    X(product_row_q6_k, ProductArguments)                        \
    X(product_row_q4_k_q6_k, ProductArguments)                   \
    X(product_row_q5_k_q6_k, ProductArguments)                   \
    X(product_rows, ProductArguments)                            \
    X(product_few, ProductArguments)                             \
    X(product_few_wide, ProductArguments)                        \
    X(product_few_q6_k, ProductArguments)                        \
    HR_KERNELS_OF_TYPES(X, product_tiles, ProductTilesArguments) \
    X(router_row, RouterArguments)                               \
    X(choose_experts, ChooseArguments)                           \
    X(experts_gate_up, ExpertsGateUpArguments)                   \
    X(experts_gate_up_q4_k, ExpertsGateUpArguments)              \
    X(experts_gate_up_q5_k, ExpertsGateUpArguments)              \
    X(experts_gate_up_q6_k, ExpertsGateUpArguments)              \
    X(experts_down, ExpertsDownArguments)                        \
    X(experts_down_q4_k, ExpertsDownArguments)                   \
    X(experts_down_q5_k, ExpertsDownArguments)                   \
    X(experts_down_q6_k, ExpertsDownArguments)                   \
    X(few_experts_gate_up_q4_k, FewGateUpArguments)              \
    X(few_experts_gate_up_q5_k, FewGateUpArguments)              \
    X(few_experts_gate_up_q6_k, FewGateUpArguments)              \
    X(few_experts_down_q4_k, FewDownArguments)                   \
    X(few_experts_down_q5_k, FewDownArguments)                   \
    X(few_experts_down_q6_k, FewDownArguments)                   \
    X(group_rows, GroupArguments)                                \
    HR_KERNELS_OF_TYPES(X, experts_tiles, ExpertsTilesArguments) \
    X(swiglu_rows, SwigluArguments)                              \
    X(combine_rows, CombineArguments)                            \
    X(combine_norm_rows, CombineNormArguments)                   \
    X(head_rows, HeadArguments)                                  \
    X(attention_rows_1, AttentionArguments)                      \
    X(attention_rows_2, AttentionArguments)                      \
    X(attention_rows_4, AttentionArguments)                      \
    X(attention_rows_8, AttentionArguments)                      \
    X(attention_step_64_1, StepAttentionArguments)               \
    X(attention_step_64_2, StepAttentionArguments)               \
    X(attention_step_64_4, StepAttentionArguments)               \
    X(attention_step_64_8, StepAttentionArguments)               \
    X(attention_step_128_1, StepAttentionArguments)              \
    X(attention_step_128_2, StepAttentionArguments)              \
    X(attention_step_128_4, StepAttentionArguments)              \
    X(attention_step_128_8, StepAttentionArguments)              \
    X(attention_long_128_4, StepAttentionArguments)              \
    X(attention_long_128_8, StepAttentionArguments)              \
    X(attention_cluster_128_8, AheadAttentionArguments)          \
    X(attention_cluster_page_128_8, AheadAttentionArguments)     \
    X(attention_prefill, AttentionArguments)                     \
    X(attention_prefill_64, AttentionArguments)                  \
    X(attention_prefill_96, AttentionArguments)                  \
    X(attention_prefill_128, AttentionArguments)                 \
    X(attention_prefill_256, AttentionArguments)                 \
    X(head_rows_q8, HeadArguments)                               \
    X(attention_rows_q8, AttentionArguments)                     \
    X(attention_rows_q8_tiles, AttentionArguments)               \
    X(attention_step_q8_64, StepAttentionArguments)              \
    X(attention_step_q8_128, StepAttentionArguments)             \
    X(attention_ahead_q8_128, AheadAttentionArguments)           \
    X(attention_long_q8_128, StepAttentionArguments)             \
    X(attention_prefill_q8, AttentionArguments)                  \
    X(attention_prefill_q8_64, AttentionArguments)               \
    X(attention_prefill_q8_96, AttentionArguments)               \
    X(attention_prefill_q8_128, AttentionArguments)              \
    X(attention_prefill_q8_256, AttentionArguments)              \
    X(argmax_rows, ArgmaxArguments)                              \
    X(top_rows, TopArguments)                                    \
    X(hand_over, HandOverArguments)                              \
    X(await_host, AwaitArguments)
// clang-format on
