// Times the kernels of products on a real card at the shapes of qwen3-8b and qwen3moe-30b-a3b (q4_k_m): one launch in a graph of many, the
// weights from a pool larger than the card's cache, beside the bound (bytes over the memory's speed, operations over the matrix units').
//
//     bench_kernels [FILTER] [GB/S] [TOPS]    default: all, 4300 GB/s and 1979 TOPS of an H200; FILTER: parts of names, with bars between them
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "core/compute/cpu/kv_view.h"
#include "core/compute/gpu/ops.h"

using namespace headroom;
using namespace headroom::kernels;

namespace {

template <class T>
T required(Result<T> result) {
    if (!result) {
        fmt::print("{}\n", result.error().message);
        std::exit(1);
    }
    if constexpr (!std::is_void_v<T>) return std::move(*result);
}

constexpr std::uint32_t q4_k = 12, q6_k = 14, f32 = 0;

std::uint32_t row_bytes(std::uint32_t type, std::int32_t cols) {
    const auto& info = *gguf::find_type(type);
    return static_cast<std::uint32_t>(cols) / info.block_elements * info.block_bytes;
}

class Bench {
public:
    Bench(std::string filter, double bandwidth, double rate) : filter_(std::move(filter)), bandwidth_(bandwidth), rate_(rate) {
        driver_ = required(gpu::Driver::load(gpu::Backend::cuda, gpu::SearchPath{}));
        required(driver_->make_current(0));
        kernels_ = required(Kernels::load(*driver_, driver_->devices()[0]));
        stream_ = required(driver_->create_stream());
        // Bytes below 64: every half among them is a number of ordinary size.
        std::vector<std::uint32_t> pattern((64 << 20) / 4);
        std::mt19937 random(1);
        for (auto& word : pattern) word = random() & 0x3f3f3f3fU;
        pool_ = required(driver_->allocate(pool_bytes));
        for (std::uint64_t at = 0; at < pool_bytes; at += pattern.size() * 4) required(driver_->copy_to_device(pool_ + at, pattern.data(), pattern.size() * 4));
        space_ = required(driver_->allocate(space_bytes));
        for (std::uint64_t at = 0; at < space_bytes; at += pattern.size() * 4) required(driver_->copy_to_device(space_ + at, pattern.data(), pattern.size() * 4));
        fmt::print("{}, {} multiprocessors\n", driver_->devices()[0].name, driver_->devices()[0].multiprocessors);
        fmt::print("{:<44} {:>9} {:>8} {:>8} {:>6}\n", "", "us", "GB/s", "TOPS", "bound");
    }

    Queue queue() { return {*kernels_, stream_}; }
    // The i-th place for weights of so many bytes, one after the other and round again.
    const std::uint8_t* weights(std::uint64_t bytes) {
        bytes = (bytes + 255) / 256 * 256;
        if (next_ + bytes > pool_bytes) next_ = 0;
        const auto at = pool_ + next_;
        next_ += bytes;
        return reinterpret_cast<const std::uint8_t*>(at);
    }
    template <class T>
    T* space(std::uint64_t count) {
        const auto at = space_ + used_;
        used_ += (count * sizeof(T) + 255) / 256 * 256;
        if (used_ > space_bytes) std::abort();
        return reinterpret_cast<T*>(at);
    }
    template <class T>
    T* array(const std::vector<T>& values) {
        T* to = space<T>(values.size());
        required(driver_->copy_to_device(reinterpret_cast<gpu::DevicePointer>(to), values.data(), values.size() * sizeof(T)));
        required(driver_->synchronize());
        return to;
    }
    Quantized quantized(std::int64_t elements, std::int64_t group) {
        const auto n = static_cast<std::uint64_t>(elements);
        return {space<std::int8_t>(n), space<float>(n / static_cast<std::uint64_t>(group)), space<std::int16_t>(n / 16)};
    }
    void reset() { used_ = 0; }

    // Whether the filter, words between bars, is empty or has one that is part of the name.
    bool wanted(const std::string& name) const {
        if (filter_.empty()) return true;
        for (std::size_t at = 0; at <= filter_.size();) {
            const std::size_t end = std::min(filter_.find('|', at), filter_.size());
            if (name.find(filter_.substr(at, end - at)) != std::string::npos) return true;
            at = end + 1;
        }
        return false;
    }

    // bytes, operations: of one launch.
    void time(const std::string& name, double bytes, double operations, const std::function<Result<>()>& launch) {
        if (!wanted(name)) return;
        required(launch());  // what a first launch sets up is not captured
        required(driver_->synchronize());
        const int count = operations > 1e10 ? 5 : 60;
        required(driver_->begin_capture(stream_));
        for (int i = 0; i < count; ++i) required(launch());
        const auto graph = required(driver_->end_capture(stream_));
        const auto run = required(driver_->instantiate_graph(graph));
        const auto from = required(driver_->create_event(true)), to = required(driver_->create_event(true));
        required(driver_->launch_graph(run, stream_));
        std::vector<double> times;
        for (int i = 0; i < 7; ++i) {
            required(driver_->record_event(from, stream_));
            required(driver_->launch_graph(run, stream_));
            required(driver_->record_event(to, stream_));
            required(driver_->synchronize_event(to));
            times.push_back(1000.0 * static_cast<double>(required(driver_->elapsed_ms(from, to))) / count);
        }
        std::ranges::sort(times);
        const double us = times[times.size() / 2];
        const double bound = std::max(bytes / bandwidth_ / 1e3, operations / rate_ / 1e6);
        fmt::print("{:<44} {:>9.2f} {:>8.0f} {:>8.1f} {:>5.0f}%\n", name, us, bytes / us / 1e3, operations / us / 1e6, 100 * bound / us);
        required(driver_->destroy_graph_exec(run));
        required(driver_->destroy_graph(graph));
    }

private:
    static constexpr std::uint64_t pool_bytes = std::uint64_t{4} << 30, space_bytes = std::uint64_t{1} << 30;
    std::string filter_;
    double bandwidth_, rate_;
    std::unique_ptr<gpu::Driver> driver_;
    std::unique_ptr<Kernels> kernels_;
    gpu::StreamHandle stream_ = nullptr;
    gpu::DevicePointer pool_ = 0, space_ = 0;
    std::uint64_t next_ = 0, used_ = 0;
};

struct Weight {
    std::uint32_t type;
    std::int32_t rows;
};

// Matrices of the same activations in one launch.
void products(Bench& bench, const std::string& name, std::vector<Weight> matrices, std::int32_t cols, std::int32_t tokens, bool swiglu, bool norm) {
    bench.reset();
    ProductArguments a = {};
    a.target_count = static_cast<std::int32_t>(matrices.size());
    a.swiglu = swiglu;
    a.tokens = tokens;
    a.forms = matrices[0].type == f32 ? kFormFloats : kForm256;
    a.x = bench.space<float>(static_cast<std::uint64_t>(tokens) * static_cast<std::uint64_t>(cols));
    a.norm = norm ? bench.space<float>(static_cast<std::uint64_t>(cols)) : nullptr;
    a.groups_256 = bench.quantized(std::int64_t{tokens} * cols, 256);
    double bytes = 0, operations = 0;
    for (std::size_t i = 0; i < matrices.size(); ++i) {
        const auto [type, rows] = matrices[i];
        a.targets[i] = {{nullptr, type, rows, cols, row_bytes(type, cols)}, nullptr,
                        bench.space<float>(static_cast<std::uint64_t>(tokens) * static_cast<std::uint64_t>(rows)), rows, 0};
        bytes += static_cast<double>(row_bytes(type, cols)) * rows;
        operations += 2.0 * tokens * rows * cols;
    }
    bench.time(name, bytes, operations, [&] {
        for (std::size_t i = 0; i < matrices.size(); ++i) {
            a.targets[i].w.data = bench.weights(std::uint64_t{a.targets[i].w.row_bytes} * static_cast<std::uint64_t>(matrices[i].rows));
        }
        return tokens == 1 ? product_row(bench.queue(), a) : product_rows(bench.queue(), a);
    });
}

void tiles(Bench& bench, const std::string& name, Weight matrix, std::int32_t cols, std::int32_t tokens) {
    bench.reset();
    const std::uint64_t bytes = std::uint64_t{row_bytes(matrix.type, cols)} * static_cast<std::uint64_t>(matrix.rows);
    ProductTilesArguments a = {{{nullptr, matrix.type, matrix.rows, cols, row_bytes(matrix.type, cols)}, nullptr,
                                bench.space<float>(static_cast<std::uint64_t>(tokens) * static_cast<std::uint64_t>(matrix.rows)), matrix.rows, 0},
                               bench.quantized(std::int64_t{tokens} * cols, 256),
                               tokens};
    bench.time(name, static_cast<double>(bytes), 2.0 * tokens * matrix.rows * cols, [&] {
        a.target.w.data = bench.weights(bytes);
        return product_tiles(bench.queue(), a);
    });
}

constexpr std::int32_t experts = 128, used = 8, width = 2048, hidden = 768;

// A layer of experts at a new place, and the tokens' choices.
struct Mixture {
    Mixture(Bench& bench, std::int32_t tokens, std::uint32_t down_type) : down(down_type) {
        shape = {q4_k, q4_k, down, row_bytes(q4_k, width), row_bytes(q4_k, width), row_bytes(down, hidden), experts, used, width, hidden};
        std::mt19937 random(2);
        // Several tables, so that a launch finds none of its weights in the cache.
        for (int copy = 0; copy < 12; ++copy) {
            std::vector<ExpertAddresses> addresses;
            for (std::int32_t e = 0; e < experts; ++e) {
                addresses.push_back({bench.weights(std::uint64_t{shape.gate_row_bytes} * hidden), bench.weights(std::uint64_t{shape.up_row_bytes} * hidden),
                                     bench.weights(std::uint64_t{shape.down_row_bytes} * width)});
            }
            tables.push_back(bench.array(addresses));
        }
        std::vector<std::int32_t> all(experts), values;
        std::iota(all.begin(), all.end(), 0);
        for (std::int32_t t = 0; t < tokens; ++t) {
            std::ranges::shuffle(all, random);
            values.insert(values.end(), all.begin(), all.begin() + used);
        }
        chosen = bench.array(values);
        const std::set<std::int32_t> once(values.begin(), values.end());
        different = static_cast<double>(once.size());
        std::vector<std::int32_t> offsets_here, rows_here;
        for (std::int32_t e = 0; e < experts; ++e) {
            offsets_here.push_back(static_cast<std::int32_t>(rows_here.size()));
            for (std::size_t i = 0; i < values.size(); ++i) {
                if (values[i] == e) rows_here.push_back(static_cast<std::int32_t>(i));
            }
        }
        offsets_here.push_back(static_cast<std::int32_t>(rows_here.size()));
        offsets = bench.array(offsets_here);
        rows = bench.array(rows_here);
        shares = bench.space<float>(values.size());
        list = bench.space<std::uint8_t>(static_cast<std::uint64_t>(few_list_bytes(tokens * used)));
    }
    const ExpertAddresses* table() { return tables[turn_++ % tables.size()]; }

    std::uint32_t down;
    double different = 0;  // experts that are chosen
    ExpertShape shape = {};
    std::vector<const ExpertAddresses*> tables;
    std::uint8_t* list = nullptr;  // of few_experts
    std::int32_t *chosen = nullptr, *offsets = nullptr, *rows = nullptr;
    float* shares = nullptr;

private:
    std::size_t turn_ = 0;
};

void mixture_decode(Bench& bench, std::int32_t tokens) {
    for (const auto& [type, type_name] : {std::pair{q4_k, "q4_k"}, {q6_k, "q6_k"}}) {
        bench.reset();
        Mixture m(bench, tokens, type);
        const auto count = static_cast<std::uint64_t>(tokens);
        float* x = bench.space<float>(count * width);
        float* middle = bench.space<float>(count * used * hidden);
        const Quantized groups = bench.quantized(std::int64_t{tokens} * width, 256);
        float* outputs = tokens > 1 ? bench.space<float>(count * used * width) : nullptr;
        const double gate_up = 2.0 * m.different * hidden * row_bytes(q4_k, width), down = m.different * width * row_bytes(type, hidden);
        if (tokens > 1) {
            bench.time(fmt::format("30b experts of {} tokens, down {}", tokens, type_name), gate_up + down, 6.0 * tokens * used * hidden * width, [&] {
                const ExpertAddresses* table = m.table();
                return few_experts(bench.queue(), {table, m.shape, m.chosen, tokens, x, groups, {}, middle, 1}, {table, m.shape, m.chosen, m.shares, tokens, middle, x, outputs}, m.list);
            });
            continue;
        }
        if (type == q4_k) {
            bench.time(fmt::format("30b gate and up of 8 experts, {} tokens", tokens), gate_up, 4.0 * tokens * used * hidden * width, [&] {
                return experts_gate_up(bench.queue(), {m.table(), m.shape, m.chosen, tokens, x, groups, {}, middle, 1});
            });
        }
        bench.time(fmt::format("30b down of 8 experts {}, {} tokens", type_name, tokens), down, 2.0 * tokens * used * hidden * width, [&] {
            return experts_down(bench.queue(), {m.table(), m.shape, m.chosen, m.shares, tokens, middle, x, outputs});
        });
    }
}

void router_decode(Bench& bench, std::int32_t tokens) {
    bench.reset();
    const auto count = static_cast<std::uint64_t>(tokens);
    RouterArguments a = {};
    a.x = bench.space<float>(count * width);
    a.norm = bench.space<float>(width);
    a.epsilon = 1e-6F;
    a.used = used;
    a.normalize = 1;
    a.normed = bench.space<float>(count * width);
    a.groups_256 = bench.quantized(std::int64_t{tokens} * width, 256);
    a.scores = bench.space<float>(count * experts);
    a.chosen = bench.space<std::int32_t>(count * used);
    a.shares = bench.space<float>(count * used);
    a.ticket = bench.array(std::vector<std::int32_t>(count));
    a.tokens = tokens;
    bench.time(fmt::format("30b router 128 f32, with its choice, {} tokens", tokens), 4.0 * experts * width, 2.0 * experts * width, [&] {
        a.w = {bench.weights(std::uint64_t{4} * experts * width), f32, experts, width, 4 * width};
        return router_row(bench.queue(), a);
    });
    if (tokens > 1) return;
    a.chosen = nullptr;
    bench.time("30b router 128 f32, without its choice", 4.0 * experts * width, 2.0 * experts * width, [&] {
        a.w = {bench.weights(std::uint64_t{4} * experts * width), f32, experts, width, 4 * width};
        return router_row(bench.queue(), a);
    });
}

const char* q8(cpu::KvType type) { return type == cpu::KvType::q8_0 ? " q8" : ""; }

// A token of each of some sessions at position `position`, heads of 128.
struct Attention {
    Attention(Bench& bench, cpu::KvType type, std::int32_t heads, std::int32_t kv_heads, std::int32_t position, std::int32_t tokens) {
        constexpr std::int32_t dim = 128, page = 256;
        const auto count = static_cast<std::uint64_t>(tokens);
        const std::int32_t chunks = position / page + 1;
        const auto k_bytes = static_cast<std::uint64_t>(cpu::kv_part_bytes(type, kv_heads, dim)), page_bytes = 2 * k_bytes;
        std::vector<std::int32_t> pages(count * static_cast<std::uint64_t>(chunks)), tables(count), positions(count, position);
        std::iota(tables.begin(), tables.end(), 0);
        std::iota(pages.begin(), pages.end(), 0);
        pool_bytes = page_bytes * pages.size();
        bytes = static_cast<double>(page_bytes) / page * tokens * (position + 1);
        h.q = bench.space<float>(count * static_cast<std::uint64_t>(heads) * dim);
        h.k = bench.space<float>(count * static_cast<std::uint64_t>(kv_heads) * dim);
        h.v = bench.space<float>(count * static_cast<std::uint64_t>(kv_heads) * dim);
        h.q_norm = h.k_norm = bench.space<float>(dim);
        h.epsilon = 1e-6F;
        h.cosine = h.sine = bench.space<float>(count * dim / 2);
        h.half = dim / 2;
        h.layout = 1;
        h.heads = heads;
        h.tokens = tokens;
        h.pool = {nullptr, page_bytes, 0, k_bytes, kv_heads, dim, dim, static_cast<std::int32_t>(type)};
        h.places = {bench.array(positions), bench.array(tables), bench.array(pages), chunks};
        a.q = h.q;
        a.out = bench.space<float>(count * static_cast<std::uint64_t>(heads) * dim);
        a.heads = heads;
        a.tokens = tokens;
        a.scale = 0.088F;
        a.max_chunks = chunks;
        a.partials = reinterpret_cast<float*>(bench.array(std::vector<std::uint32_t>(count * static_cast<std::uint64_t>(heads * chunks) * (dim + 2), 0xffffffffU)));
        a.parts_to_hand = reinterpret_cast<float*>(bench.array(std::vector<std::uint32_t>(count * static_cast<std::uint64_t>(heads * chunks * long_part_floats(dim)), 0xffffffffU)));
        a.tickets = bench.array(std::vector<std::int32_t>(count * static_cast<std::uint64_t>(heads)));
    }
    Result<> launch(Bench& bench, std::span<const Ahead> ahead = {}) {
        h.pool.base = const_cast<std::uint8_t*>(bench.weights(pool_bytes));
        a.pool = h.pool;
        a.places = h.places;
        return attention_step(bench.queue(), h, a, ahead);
    }

    HeadArguments h = {};
    AttentionArguments a = {};
    std::uint64_t pool_bytes;
    double bytes;
};

void attention(Bench& bench, const std::string& name, std::int32_t heads, std::int32_t kv_heads, std::int32_t position, std::int32_t tokens) {
    for (const cpu::KvType type : {cpu::KvType::f16, cpu::KvType::q8_0}) {
        bench.reset();
        Attention one(bench, type, heads, kv_heads, position, tokens);
        bench.time(fmt::format("{} attention{} at {}, {} tokens", name, q8(type), position, tokens), one.bytes, 0, [&] { return one.launch(bench); });
    }
}

// The kernels of a layer of the mixture for one token, or one of each of several sessions, one behind the other as in a step; then without each of them:
// what it costs there.
void layers(Bench& bench, cpu::KvType kv_type, std::int32_t position, std::int32_t tokens, std::uint32_t down_type) {
    bench.reset();
    const auto count = static_cast<std::uint64_t>(tokens);
    Mixture m(bench, tokens, down_type);
    Attention at(bench, kv_type, 32, 4, position, tokens);
    ProductArguments qkv = {}, out = {};
    const auto target = [&](std::uint32_t type, std::int32_t rows, std::int32_t cols, float* y, bool add) {
        return Target{{nullptr, type, rows, cols, row_bytes(type, cols)}, nullptr, y, rows, add ? 1 : 0};
    };
    float* x = bench.space<float>(count * width);
    float* middle = bench.space<float>(count * used * hidden);
    float* outputs = tokens > 1 ? bench.space<float>(count * used * width) : nullptr;
    qkv.targets[0] = target(q4_k, 4096, width, at.h.q, false);
    qkv.targets[1] = target(q4_k, 512, width, const_cast<float*>(at.h.k), false);
    qkv.targets[2] = target(q6_k, 512, width, const_cast<float*>(at.h.v), false);
    qkv.target_count = 3;
    out.targets[0] = target(q4_k, width, 4096, x, true);
    out.target_count = 1;
    qkv.tokens = out.tokens = tokens;
    const Quantized groups = bench.quantized(std::int64_t{tokens} * 4096, 256);
    if (tokens > 1) qkv.groups_256 = out.groups_256 = groups;
    qkv.forms = out.forms = kForm256;
    at.a.pool = at.h.pool;
    if (attention_quantizes(bench.queue(), at.a)) at.a.groups_256 = groups;
    qkv.x = x;
    out.x = at.a.out;
    qkv.norm = bench.space<float>(width);
    qkv.epsilon = 1e-6F;
    RouterArguments r = {};
    r.x = x;
    r.norm = qkv.norm;
    r.epsilon = 1e-6F;
    r.used = used;
    r.normalize = 1;
    r.normed = bench.space<float>(count * width);
    r.groups_256 = bench.quantized(std::int64_t{tokens} * width, 256);
    r.scores = bench.space<float>(count * experts);
    r.tokens = tokens;
    // The choice is made from other scores: those of random rows might choose the same experts for all.
    std::vector<float> random_scores(count * experts);
    std::mt19937 random(3);
    for (float& score : random_scores) score = static_cast<float>(random() >> 8);
    const float* scores = bench.array(random_scores);
    // Several tokens' rows are quantized by kernels of their own, the first of which also adds what the experts of the layer before have left.
    const NormArguments norm{.x = x, .rows = nullptr, .weight = qkv.norm, .epsilon = qkv.epsilon, .count = tokens, .n = width, .out = nullptr, .groups_256 = groups, .groups_32 = {}};
    const NormArguments heads{.x = at.a.out, .rows = nullptr, .weight = nullptr, .epsilon = 0, .count = tokens, .n = 4096, .out = nullptr, .groups_256 = groups, .groups_32 = {}};
    bool placed = false;  // the output matrix and the router, by attention, which sends for them
    const auto place = [&](Matrix& w) { w.data = bench.weights(std::uint64_t{w.row_bytes} * static_cast<std::uint64_t>(w.rows)); };
    const auto product = [&](ProductArguments& a) {
        for (std::int32_t i = 0; i < a.target_count; ++i) {
            if (!placed || a.target_count > 1) place(a.targets[i].w);
        }
        return tokens == 1 ? product_row(bench.queue(), a) : product_rows(bench.queue(), a);
    };
    const std::pair<const char*, std::function<Result<>()>> parts[] = {
        {"norm",
         [&]() -> Result<> {
             if (tokens == 1) return {};
             return combine_norm_rows(bench.queue(), {{nullptr, m.chosen, m.shares, outputs, nullptr, x, tokens, used, width}, norm});
         }},
        {"q k v", [&] { return product(qkv); }},
        {"attention",
         [&] {
             if (tokens == 1) return at.launch(bench);
             // The next two kernels' weights.
             placed = true;
             place(out.targets[0].w);
             r.w = {nullptr, f32, experts, width, 4 * width};
             place(r.w);
             const auto ahead_of = [](const Matrix& w) { return Ahead{w.data, std::int64_t{w.rows} * w.row_bytes}; };
             const Ahead ahead[] = {ahead_of(out.targets[0].w), ahead_of(r.w)};
             return at.launch(bench, ahead);
         }},
        {"heads", [&] { return tokens == 1 || at.a.groups_256.codes != nullptr ? Result<>{} : norm_rows(bench.queue(), heads); }},
        {"o", [&] { return product(out); }},
        {"router",
         [&] {
             if (!placed) r.w = {bench.weights(std::uint64_t{4} * experts * width), f32, experts, width, 4 * width};
             return router_row(bench.queue(), r);
         }},
        {"gate and up",
         [&]() -> Result<> {
             if (tokens > 1) return {};
             return experts_gate_up(bench.queue(), {m.table(), m.shape, m.chosen, tokens, r.normed, r.groups_256, {}, middle, 1, scores, 1, m.shares, nullptr});
         }},
        {"down",
         [&]() -> Result<> {
             if (tokens > 1) return {};
             return experts_down(bench.queue(), {m.table(), m.shape, m.chosen, m.shares, tokens, middle, x, outputs});
         }},
        {"experts",
         [&]() -> Result<> {
             if (tokens == 1) return {};
             const ExpertAddresses* table = m.table();
             return few_experts(bench.queue(), {table, m.shape, m.chosen, tokens, r.normed, r.groups_256, {}, middle, 1, scores, 1, m.shares, nullptr},
                                {table, m.shape, m.chosen, m.shares, tokens, middle, x, outputs}, m.list);
         }},
    };
    const auto time = [&](const std::string& name, std::size_t left_out) {
        bench.time(fmt::format("30b layer{} at {}, {} tokens{}", q8(kv_type), position, tokens, name), 0, 0, [&]() -> Result<> {
            placed = false;
            for (std::size_t i = 0; i < std::size(parts); ++i) {
                if (i != left_out) HR_CHECK(parts[i].second());
            }
            return {};
        });
    };
    time("", std::size(parts));
    for (std::size_t i = 0; i < std::size(parts); ++i) time(fmt::format(" without {}", parts[i].first), i);
}

void mixture_prefill(Bench& bench, std::int32_t tokens) {
    for (const auto& [type, type_name] : {std::pair{q4_k, "q4_k"}, {q6_k, "q6_k"}}) {
        bench.reset();
        Mixture m(bench, tokens, type);
        const std::int32_t choices = tokens * used;
        const Quantized x = bench.quantized(std::int64_t{tokens} * width, 256), middle = bench.quantized(std::int64_t{choices} * hidden, 256);
        float* y = bench.space<float>(static_cast<std::uint64_t>(choices) * width);
        ExpertsTilesArguments a = {nullptr, 0, hidden, width, row_bytes(q4_k, width), experts, choices, used, m.offsets, m.rows, x, y};
        const double operations = 2.0 * choices * hidden * width;
        if (type == q4_k) {
            bench.time(fmt::format("30b gate of experts, {} tokens", tokens), 1.0 * experts * hidden * a.row_bytes, operations, [&] {
                a.table = m.table();
                return experts_tiles(bench.queue(), static_cast<gguf::TensorType>(q4_k), a);
            });
            bench.time(fmt::format("30b sorting {} tokens", tokens), 8.0 * choices, 0, [&] {
                return group_rows(bench.queue(), {m.chosen, choices, experts, m.offsets, m.rows});
            });
        }
        ExpertsTilesArguments down = {nullptr, 2, width, hidden, row_bytes(type, hidden), experts, choices, 1, m.offsets, m.rows, middle, y};
        bench.time(fmt::format("30b down of experts {}, {} tokens", type_name, tokens), 1.0 * experts * width * down.row_bytes, operations, [&] {
            down.table = m.table();
            return experts_tiles(bench.queue(), static_cast<gguf::TensorType>(type), down);
        });
    }
}

}  // namespace

int main(int argc, char** argv) {
    Bench bench(argc > 1 ? argv[1] : "", argc > 2 ? std::atof(argv[2]) : 4300, argc > 3 ? std::atof(argv[3]) : 1979);
    products(bench, "30b q k v", {{q4_k, 4096}, {q4_k, 512}, {q6_k, 512}}, 2048, 1, false, true);
    products(bench, "30b o", {{q4_k, 2048}}, 4096, 1, false, false);
    router_decode(bench, 1);
    mixture_decode(bench, 1);
    for (const std::int32_t position : {200, 300, 2000, 4000, 8000, 16383, 32000}) {
        attention(bench, "30b", 32, 4, position, 1);
        attention(bench, "8b", 32, 8, position, 1);
    }
    for (const cpu::KvType type : {cpu::KvType::f16, cpu::KvType::q8_0}) {
        for (const std::int32_t position : {200, 300, 16400}) layers(bench, type, position, 1, q4_k);
    }
    for (const std::int32_t position : {200, 300}) {
        for (const std::uint32_t down : {q4_k, q6_k}) layers(bench, cpu::KvType::f16, position, 8, down);
        for (const std::int32_t tokens : {2, 4, 8}) {
            attention(bench, "30b", 32, 4, position, tokens);
            attention(bench, "8b", 32, 8, position, tokens);
        }
    }
    products(bench, "30b logits", {{q6_k, 151936}}, 2048, 1, false, true);
    products(bench, "30b logits, 8 tokens", {{q6_k, 151936}}, 2048, 8, false, false);
    products(bench, "8b q k v", {{q4_k, 4096}, {q4_k, 1024}, {q6_k, 1024}}, 4096, 1, false, true);
    products(bench, "8b o", {{q4_k, 4096}}, 4096, 1, false, false);
    products(bench, "8b gate and up", {{q4_k, 12288}, {q4_k, 12288}}, 4096, 1, true, true);
    products(bench, "8b down q4_k", {{q4_k, 4096}}, 12288, 1, false, false);
    products(bench, "8b down q6_k", {{q6_k, 4096}}, 12288, 1, false, false);
    products(bench, "8b logits", {{q6_k, 151936}}, 4096, 1, false, true);
    for (const std::int32_t tokens : {2, 4, 8}) {
        products(bench, fmt::format("8b gate and up, {} tokens", tokens), {{q4_k, 12288}, {q4_k, 12288}}, 4096, tokens, true, false);
        products(bench, fmt::format("8b down q4_k, {} tokens", tokens), {{q4_k, 4096}}, 12288, tokens, false, false);
        products(bench, fmt::format("8b down q6_k, {} tokens", tokens), {{q6_k, 4096}}, 12288, tokens, false, false);
        products(bench, fmt::format("8b q k v, {} tokens", tokens), {{q4_k, 4096}, {q4_k, 1024}, {q6_k, 1024}}, 4096, tokens, false, false);
        products(bench, fmt::format("30b q k v, {} tokens", tokens), {{q4_k, 4096}, {q4_k, 512}, {q6_k, 512}}, 2048, tokens, false, false);
        products(bench, fmt::format("30b o, {} tokens", tokens), {{q4_k, 2048}}, 4096, tokens, false, false);
    }
    router_decode(bench, 8);
    mixture_decode(bench, 8);
    for (const auto& [type, name] : {std::pair{q4_k, "q4_k"}, {q6_k, "q6_k"}}) {
        tiles(bench, fmt::format("4096 x 4096 {}, 2048 tokens", name), {type, 4096}, 4096, 2048);
        tiles(bench, fmt::format("4096 x 12288 {}, 2048 tokens", name), {type, 4096}, 12288, 2048);
    }
    tiles(bench, "12288 x 4096 q4_k, 2048 tokens", {q4_k, 12288}, 4096, 2048);
    tiles(bench, "12288 x 4096 q4_k, 4096 tokens", {q4_k, 12288}, 4096, 4096);
    tiles(bench, "1024 x 4096 q6_k, 2048 tokens", {q6_k, 1024}, 4096, 2048);
    products(bench, "router 128 f32, 2048 tokens", {{f32, 128}}, 2048, 2048, false, false);
    for (const std::int32_t tokens : {2048, 4096}) mixture_prefill(bench, tokens);
}
