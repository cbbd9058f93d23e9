#include <algorithm>
#include <optional>

#include "core/compute/cpu/kv_view.h"
#include "core/compute/gpu/shapes.h"

namespace headroom::kernels {
namespace {

constexpr int most_group = 16;
constexpr unsigned threads = 256;
constexpr std::int32_t section_pages = 2;
constexpr std::int32_t long_pages = 16, long_code_pages = 8;  // from so many on attention_long is quicker
constexpr std::int32_t cluster_heads = 8;  // query heads to a KV head that attention_cluster is for

// How a block of attention is launched: threads, and tiles in shared memory to each of its warps.
struct Block {
    unsigned threads;
    int slots;
    unsigned shared_bytes;
};

unsigned shared_bytes(unsigned block_threads, int slots, int at_once, int width) {
    const int warps = static_cast<int>(block_threads) / 32;
    return static_cast<unsigned>(warps * (slots * kSlotBytes + at_once * (32 + 2) * 4) + (at_once + 1) * width * 4);
}

// Two pages at once where there are two, and a multiprocessor for each block. Else few tiles where a multiprocessor has two blocks, of which one
// computes while the other waits, or all there are.
Block block_for(unsigned shared_limit, int at_once, int width, bool two_pages, bool one_block) {
    constexpr unsigned reserved = 1024, own = 576;  // by the driver for each block, and for the kernel's own variables
    const auto fits = [&](unsigned block_threads, unsigned blocks, int slots) {
        return blocks * (shared_bytes(block_threads, slots, at_once, width) + own + reserved) <= shared_limit + reserved;
    };
    const auto block = [&](unsigned block_threads, int slots) { return Block{block_threads, slots, shared_bytes(block_threads, slots, at_once, width)}; };
    constexpr unsigned most = kMostAttentionThreads;
    if (two_pages && fits(most, 1, 3)) return block(most, at_once == 8 ? 2 : 3);  // of a block with much to do K comes sooner that way
    if (!one_block && fits(threads, 2, 3)) return block(threads, 3);
    return block(threads, fits(threads, 1, 4) ? 4 : fits(threads, 1, 3) ? 3 : 1);
}

bool has_codes(const KvPool& pool) noexcept { return static_cast<cpu::KvType>(pool.type) == cpu::KvType::q8_0; }

// The same with codes. With matrix units a warp's memory holds all of a strip, which not every device has for heads of 256.
struct CodeBlock {
    Block block;
    bool tiles;
};
CodeBlock code_block_for(Queue queue, const KvPool& pool, bool one_block, bool makes_heads) {
    const auto block = [&](unsigned block_threads, std::int32_t strip_bytes) {
        const std::int32_t bytes = code_block_bytes(static_cast<std::int32_t>(block_threads) / 32, strip_bytes, pool.head_dim, pool.head_dim_v, makes_heads);
        return Block{block_threads, 0, static_cast<unsigned>(bytes)};
    };
    const auto fits = [&](const Block& one) { return one.shared_bytes + 64 <= queue.kernels.shared_limit(); };  // the kernel's own variables
    const Block plain = block(threads, plain_strip_bytes(pool.head_dim_v));
    if (!has_matrix_units(queue)) return {plain, false};
    const std::int32_t strip_bytes = tiles_strip_bytes(pool.head_dim, pool.head_dim_v);
    const Block large = block(kMostAttentionThreads, strip_bytes), small = block(threads, strip_bytes);
    if (one_block && fits(large)) return {large, true};
    return fits(small) ? CodeBlock{small, true} : CodeBlock{plain, false};
}

Result<> check(const char* kernel, std::int32_t heads, const KvPool& pool) {
    const auto width_fits = [](std::int32_t width) { return width > 0 && width % 32 == 0 && width <= 256; };
    if (!width_fits(pool.head_dim) || !width_fits(pool.head_dim_v)) {
        return fail(ErrorKind::invalid_argument, "{}: heads of {} and {} elements; a width has to be a multiple of 32, at most 256", kernel,
                    pool.head_dim, pool.head_dim_v);
    }
    if (pool.kv_heads <= 0 || heads <= 0 || heads % pool.kv_heads != 0 || heads / pool.kv_heads > most_group) {
        return fail(ErrorKind::invalid_argument, "{}: {} query heads for {} KV heads; each KV head has to have as many, at most {}", kernel, heads,
                    pool.kv_heads, most_group);
    }
    return {};
}

}  // namespace

Result<> head_rows(Queue queue, const HeadArguments& arguments) {
    if (arguments.tokens <= 0) return {};
    HR_CHECK(check("head_rows", arguments.heads, arguments.pool));
    const unsigned heads = static_cast<unsigned>(arguments.heads + 2 * arguments.pool.kv_heads);
    const Kernel kernel = has_codes(arguments.pool) ? Kernel::head_rows_q8 : Kernel::head_rows;
    return queue.kernels.launch(kernel, {static_cast<unsigned>(arguments.tokens), (heads + 7) / 8}, {threads}, 0, queue.stream, arguments);
}

namespace {

// A window may begin in the middle of a section.
std::int32_t sections_of(const AttentionArguments& arguments) {
    return arguments.window > 0 ? arguments.max_chunks / section_pages + 1 : (arguments.max_chunks + section_pages - 1) / section_pages;
}

// How attention_rows and attention_step divide the work.
struct Division {
    gpu::Grid grid;
    int at_once;  // query heads of a block
    Block block;
    int parts, heads;
    bool code_tiles;  // codes are multiplied on matrix units

    void describe(AttentionArguments& to) const {
        to.tile_slots = block.slots;
        to.parts = parts;
        to.heads_of_part = heads;
    }
};

Result<Division> divide(Queue queue, const char* kernel, const AttentionArguments& arguments, bool makes_heads) {
    HR_CHECK(check(kernel, arguments.heads, arguments.pool));
    const std::int32_t pages = arguments.max_chunks;
    if (pages <= 0) return fail(ErrorKind::invalid_argument, "{}: room for {} pages", kernel, pages);
    const int group = arguments.heads / arguments.pool.kv_heads;
    const std::int32_t sections = sections_of(arguments);
    if (sections > kMostSections) return fail(ErrorKind::invalid_argument, "{}: {} pages; at most {} are taken", kernel, pages, kMostSections * section_pages);
    // A block has all query heads of its KV head, so that K and V are read once; where that leaves most of the device idle, fewer. With codes eight take
    // as long as one.
    const bool codes = has_codes(arguments.pool);
    const int most_parts = codes ? (group + code_heads(arguments.pool.head_dim_v) - 1) / code_heads(arguments.pool.head_dim_v) : group;
    int parts = 1;
    const std::int64_t blocks = std::int64_t{arguments.pool.kv_heads} * sections * arguments.tokens;
    for (int more = 2; more <= most_parts && blocks * parts < queue.kernels.device().multiprocessors; ++more) {
        if (group % more == 0 && blocks * more <= queue.kernels.device().multiprocessors) parts = more;
    }
    const bool one_block = blocks * parts <= queue.kernels.device().multiprocessors;  // to each
    const int heads = group / parts;
    const int at_once = heads == 1 ? 1 : heads == 2 ? 2 : heads <= 4 ? 4 : 8;
    const CodeBlock code_block = codes ? code_block_for(queue, arguments.pool, one_block, makes_heads) : CodeBlock{};
    return Division{.grid = {static_cast<unsigned>(arguments.pool.kv_heads * parts), static_cast<unsigned>(sections),
                             static_cast<unsigned>(arguments.tokens)},
                    .at_once = at_once,
                    .block = codes ? code_block.block
                                   : block_for(queue.kernels.shared_limit(), at_once, arguments.pool.head_dim, pages > 1 && one_block, one_block),
                    .parts = parts,
                    .heads = heads,
                    .code_tiles = code_block.tiles};
}

}  // namespace

bool has_long_attention(std::int64_t heads, const KvPool& pool) noexcept {
    const std::int64_t group = heads / pool.kv_heads;
    return pool.head_dim == kLongWidth && pool.head_dim_v == kLongWidth && group >= (has_codes(pool) ? 1 : 3) && group <= 8;
}

Result<> attention_rows(Queue queue, const AttentionArguments& arguments) {
    if (arguments.tokens <= 0) return {};
    HR_TRY(const Division division, divide(queue, "attention_rows", arguments, false));
    const Kernel kernel = has_codes(arguments.pool) ? (division.code_tiles ? Kernel::attention_rows_q8_tiles : Kernel::attention_rows_q8)
                          : division.at_once == 1   ? Kernel::attention_rows_1
                          : division.at_once == 2 ? Kernel::attention_rows_2
                          : division.at_once == 4 ? Kernel::attention_rows_4
                                                  : Kernel::attention_rows_8;
    AttentionArguments with_slots = arguments;
    division.describe(with_slots);
    return queue.kernels.launch(kernel, division.grid, {division.block.threads}, division.block.shared_bytes, queue.stream, with_slots);
}

namespace {

unsigned long_bytes(int at_once) {
    constexpr int warps = threads / 32, fours = 32 / 4, tile = fours * (4 * kLongWidth + kLongGap) * 2;
    const int floats = (at_once + 1) * kLongWidth + 2 * 2 * warps * at_once + warps * 2 * fours * (4 * at_once + 4);
    return static_cast<unsigned>(warps * kLongSlots * tile + floats * 4);
}

int long_heads(const AttentionArguments& arguments) { return arguments.heads / arguments.pool.kv_heads <= 4 ? 4 : 8; }

// How attention_long is launched. Nothing: there is no shared memory for it.
struct LongBlock {
    Kernel kernel;
    unsigned threads, bytes;
    int of_multiprocessor;  // blocks
};

std::optional<LongBlock> long_block(Queue queue, const AttentionArguments& arguments) {
    if (!has_codes(arguments.pool)) {
        const int at_once = long_heads(arguments);
        constexpr unsigned own = 1024;  // the kernel's own variables
        if (long_bytes(at_once) + own > queue.kernels.shared_limit()) return std::nullopt;
        return LongBlock{at_once == 4 ? Kernel::attention_long_128_4 : Kernel::attention_long_128_8, threads, long_bytes(at_once), 1};
    }
    // A page to a block, two blocks to a multiprocessor; where that is no more than two pages to each, both at once in one block.
    const std::int32_t rows = arguments.pool.kv_heads * arguments.tokens, alone = queue.kernels.device().multiprocessors / rows;
    const CodeBlock block = code_block_for(queue, arguments.pool, alone < arguments.max_chunks && arguments.max_chunks <= 2 * alone, true);
    if (!block.tiles) return std::nullopt;
    return LongBlock{Kernel::attention_long_q8_128, block.block.threads, block.block.shared_bytes, block.block.threads == threads ? 2 : 1};
}

// Whether attention_long takes this shape, and is quicker.
bool takes_long(Queue queue, const AttentionArguments& arguments) {
    if (arguments.parts_to_hand == nullptr || !has_matrix_units(queue)) return false;
    return arguments.max_chunks >= (has_codes(arguments.pool) ? long_code_pages : long_pages) && has_long_attention(arguments.heads, arguments.pool);
}

Result<> attention_long(Queue queue, const LongBlock& block, const HeadArguments& heads, const AttentionArguments& arguments) {
    const std::int64_t rows = std::int64_t{arguments.pool.kv_heads} * arguments.tokens, multiprocessors = queue.kernels.device().multiprocessors;
    StepAttentionArguments both{.heads = heads, .attention = arguments};
    both.attention.heads_of_part = arguments.heads / arguments.pool.kv_heads;
    // A multiprocessor for each block. Those that wait for others leave half of the device to these: of two launches at once, too, one comes to its end.
    both.attention.blocks = static_cast<std::int32_t>(std::clamp<std::int64_t>(block.of_multiprocessor * multiprocessors / rows, 1, arguments.max_chunks));
    both.attention.finishers = static_cast<std::int32_t>(std::max<std::int64_t>(multiprocessors / 2 / rows, 1));
    const gpu::Grid grid{static_cast<unsigned>(arguments.pool.kv_heads), static_cast<unsigned>(both.attention.blocks),
                         static_cast<unsigned>(arguments.tokens)};
    return queue.kernels.launch(block.kernel, grid, {block.threads}, block.bytes, queue.stream, both);
}

// Whether attention_cluster can do this, and is quicker: several tokens, whose blocks find room on the device all at once.
bool takes_clusters(Queue queue, const AttentionArguments& arguments) {
    const KvPool& pool = arguments.pool;
    const int group = arguments.heads / pool.kv_heads;
    if (!has_clusters(queue) || has_codes(pool) || pool.head_dim != kLongWidth || pool.head_dim_v != kLongWidth) return false;
    if (arguments.tokens < 2 || arguments.max_chunks <= 0 || group != cluster_heads) return false;
    constexpr unsigned reserved = 1024, own = 64;  // by the driver for each block, and for the kernel's own variables
    const unsigned bytes = static_cast<unsigned>(cluster_block_bytes(group, section_pages)) + own + reserved;
    const std::int64_t blocks = std::int64_t{kClusterBlocks} * pool.kv_heads * sections_of(arguments) * arguments.tokens;
    return blocks <= std::int64_t{std::min((queue.kernels.shared_limit() + reserved) / bytes, 2U)} * queue.kernels.device().multiprocessors;
}

Result<> attention_in_clusters(Queue queue, const AheadAttentionArguments& all) {
    const AttentionArguments& arguments = all.attention;
    const gpu::Grid grid{static_cast<unsigned>(arguments.pool.kv_heads * kClusterBlocks), static_cast<unsigned>(sections_of(arguments)),
                         static_cast<unsigned>(arguments.tokens)};
    const bool page = arguments.max_chunks == 1;
    const std::int32_t bytes = cluster_block_bytes(cluster_heads, page ? 1 : section_pages);
    return queue.kernels.launch(page ? Kernel::attention_cluster_page_128_8 : Kernel::attention_cluster_128_8, grid, {kClusterThreads}, static_cast<unsigned>(bytes),
                                queue.stream, all);
}

}  // namespace

bool attention_quantizes(Queue queue, const AttentionArguments& arguments) noexcept {
    const KvPool& pool = arguments.pool;
    if (arguments.tokens < 2 || sections_of(arguments) != 1 || pool.head_dim != 128 || pool.head_dim_v != 128) return false;
    if (takes_clusters(queue, arguments)) return true;
    if (has_codes(pool) && !has_matrix_units(queue)) return false;
    const auto division = divide(queue, "attention_step", arguments, true);
    return division && division->heads % 2 == 0;
}

Result<> attention_step(Queue queue, const HeadArguments& heads, const AttentionArguments& arguments, std::span<const Ahead> ahead) {
    if (arguments.tokens <= 0) return {};
    HR_CHECK(check("attention_step", arguments.heads, arguments.pool));
    const int width = arguments.pool.head_dim;
    const bool codes = has_codes(arguments.pool);
    if ((width != 64 && width != 128) || arguments.pool.head_dim_v != width || (codes && !has_matrix_units(queue))) {
        HR_CHECK(head_rows(queue, heads));
        return attention_rows(queue, arguments);
    }
    if (takes_long(queue, arguments)) {
        if (const auto block = long_block(queue, arguments)) return attention_long(queue, *block, heads, arguments);
    }
    AheadAttentionArguments all{.heads = heads, .attention = arguments};
    std::ranges::copy(ahead.first(std::min(ahead.size(), std::size(all.ahead))), all.ahead);
    if (takes_clusters(queue, arguments)) return attention_in_clusters(queue, all);
    HR_TRY(const Division division, divide(queue, "attention_step", arguments, true));
    const auto of_width = [&](Kernel of_64, Kernel of_128) { return width == 64 ? of_64 : of_128; };
    const Kernel kernel = codes                   ? of_width(Kernel::attention_step_q8_64, Kernel::attention_step_q8_128)
                          : division.at_once == 1 ? of_width(Kernel::attention_step_64_1, Kernel::attention_step_128_1)
                          : division.at_once == 2 ? of_width(Kernel::attention_step_64_2, Kernel::attention_step_128_2)
                          : division.at_once == 4 ? of_width(Kernel::attention_step_64_4, Kernel::attention_step_128_4)
                                                  : of_width(Kernel::attention_step_64_8, Kernel::attention_step_128_8);
    division.describe(all.attention);
    if (kernel == Kernel::attention_step_q8_128 && arguments.tokens > 1) {
        return queue.kernels.launch(Kernel::attention_ahead_q8_128, division.grid, {division.block.threads}, division.block.shared_bytes, queue.stream, all);
    }
    const StepAttentionArguments both{.heads = heads, .attention = all.attention};
    return queue.kernels.launch(kernel, division.grid, {division.block.threads}, division.block.shared_bytes, queue.stream, both);
}

Result<> attention_prefill(Queue queue, const AttentionArguments& arguments) {
    if (arguments.tokens <= 0) return {};
    HR_CHECK(check("attention_prefill", arguments.heads, arguments.pool));
    const int group = arguments.heads / arguments.pool.kv_heads;
    const int tokens = kPrefillRows / group;  // of a block
    const gpu::Grid grid{static_cast<unsigned>((arguments.tokens + tokens - 1) / tokens), static_cast<unsigned>(arguments.pool.kv_heads)};
    const int width = arguments.pool.head_dim;
    const bool codes = has_codes(arguments.pool);
    if (has_matrix_units(queue) && width == arguments.pool.head_dim_v) {
        const auto on_tiles = [&](Kernel of_halves, int halves_bytes, Kernel of_codes, int codes_bytes) {
            return queue.kernels.launch(codes ? of_codes : of_halves, grid, {threads}, static_cast<unsigned>(codes ? codes_bytes : halves_bytes), queue.stream,
                                        arguments);
        };
        switch (width) {
            case 64: return on_tiles(Kernel::attention_prefill_64, kPrefillBytes<64>, Kernel::attention_prefill_q8_64, kPrefillCodesBytes<64>);
            case 96: return on_tiles(Kernel::attention_prefill_96, kPrefillBytes<96>, Kernel::attention_prefill_q8_96, kPrefillCodesBytes<96>);
            case 128: return on_tiles(Kernel::attention_prefill_128, kPrefillBytes<128>, Kernel::attention_prefill_q8_128, kPrefillCodesBytes<128>);
            case 256: return on_tiles(Kernel::attention_prefill_256, kPrefillBytes<256>, Kernel::attention_prefill_q8_256, kPrefillCodesBytes<256>);
            default: break;
        }
    }
    if (codes) {
        const std::int32_t bytes = code_block_bytes(threads / 32, plain_strip_bytes(arguments.pool.head_dim_v), width, arguments.pool.head_dim_v, false);
        return queue.kernels.launch(Kernel::attention_prefill_q8, grid, {threads}, static_cast<unsigned>(bytes), queue.stream, arguments);
    }
    const Block block = block_for(queue.kernels.shared_limit(), 4, width, false, false);
    AttentionArguments with_slots = arguments;
    with_slots.tile_slots = block.slots;
    return queue.kernels.launch(Kernel::attention_prefill, grid, {block.threads}, block.shared_bytes, queue.stream, with_slots);
}

}  // namespace headroom::kernels
