// bench_attention [CASE…]: how long the kernels of attention, of rows of vectors and of sampling take on the first GPU, beside the least that
// its memory allows. Each case is a graph of 48 launches over different data (as the layers of a model are), replayed; the time is that of
// one launch.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <string_view>
#include <vector>

#include "core/compute/cpu/arithmetic.h"
#include "core/compute/gpu/ops.h"
#include "tests/compute/random_data.h"

using namespace headroom;

namespace {

constexpr int kLayers = 48;
constexpr double kBandwidth = 4.3e12;  // bytes a second: a large copy on an H200

template <class T>
T must(Result<T> result) {
    if (!result) {
        fmt::print(stderr, "{}\n", result.error().message);
        std::exit(1);
    }
    if constexpr (!std::is_void_v<T>) return std::move(*result);
}

class Bench {
public:
    explicit Bench(std::vector<std::string_view> wanted)
        : wanted_(std::move(wanted)), driver_(must(gpu::Driver::load(gpu::Backend::cuda, gpu::SearchPath{}))) {
        must(driver_->make_current(0));
        kernels_ = must(kernels::Kernels::load(*driver_, driver_->devices()[0]));
        stream_ = must(driver_->create_stream());
        Random random(1);
        for (float& v : floats_) v = random.value();
        for (std::uint16_t& v : halves_) v = cpu::float_to_half(random.value());
    }

    [[nodiscard]] bool wants(std::string_view name) const {
        return wanted_.empty() || std::ranges::any_of(wanted_, [&](std::string_view part) { return name.starts_with(part); });
    }
    kernels::Queue queue() { return {*kernels_, stream_}; }

    // Device memory with random content, for as long as the program runs.
    float* floats(std::size_t count) { return static_cast<float*>(filled(floats_.data(), floats_.size() * 4, count * 4)); }
    std::uint16_t* halves(std::size_t count) { return static_cast<std::uint16_t*>(filled(halves_.data(), halves_.size() * 2, count * 2)); }
    template <class T>
    T* bytes(std::size_t count, std::uint8_t value) {
        const auto at = must(driver_->allocate(count * sizeof(T)));
        must(driver_->fill(at, value, count * sizeof(T)));
        return reinterpret_cast<T*>(at);
    }
    template <class T>
    T* zeros(std::size_t count) {
        return bytes<T>(count, 0);
    }
    std::int32_t* integers(const std::vector<std::int32_t>& values) {
        const auto at = must(driver_->allocate(values.size() * 4));
        must(driver_->copy_to_device(at, values.data(), values.size() * 4));
        return reinterpret_cast<std::int32_t*>(at);
    }

    // launch(layer) enqueues one. bytes: what it has to move; operations: floating-point ones of matrix units.
    void measure(const std::string& name, double bytes, double operations, const std::function<Result<>(int)>& launch) {
        must(launch(0));
        must(driver_->synchronize());
        must(driver_->begin_capture(stream_));
        for (int layer = 0; layer < kLayers; ++layer) must(launch(layer));
        const auto graph = must(driver_->end_capture(stream_));
        const auto exec = must(driver_->instantiate_graph(graph));
        const auto begin = must(driver_->create_event(true)), end = must(driver_->create_event(true));
        std::vector<float> times;
        for (int i = 0; i < 12; ++i) {
            must(driver_->record_event(begin, stream_));
            must(driver_->launch_graph(exec, stream_));
            must(driver_->record_event(end, stream_));
            must(driver_->synchronize_event(end));
            if (i >= 3) times.push_back(must(driver_->elapsed_ms(begin, end)) * 1000 / kLayers);
        }
        std::ranges::sort(times);
        const double time = static_cast<double>(times[times.size() / 2]);
        fmt::print("{:44} {:9.2f} us", name, time);
        if (bytes > 0) fmt::print("  {:7.2f} us at {:.1f} TB/s: {:3.0f} %", bytes / kBandwidth * 1e6, kBandwidth / 1e12, bytes / kBandwidth * 1e8 / time);
        if (operations > 0) fmt::print("  {:5.0f} TFLOP/s", operations / time / 1e6);
        fmt::print("\n");
        std::fflush(stdout);
    }

private:
    void* filled(const void* content, std::size_t content_bytes, std::size_t bytes) {
        const auto at = must(driver_->allocate(bytes));
        must(driver_->copy_to_device(at, content, std::min(content_bytes, bytes)));
        for (std::size_t done = content_bytes; done < bytes; done *= 2) must(driver_->copy_on_device(at + done, at, std::min(done, bytes - done)));
        must(driver_->synchronize());
        return reinterpret_cast<void*>(at);
    }

    std::vector<std::string_view> wanted_;
    std::unique_ptr<gpu::Driver> driver_;
    std::unique_ptr<kernels::Kernels> kernels_;
    gpu::StreamHandle stream_ = nullptr;
    std::vector<float> floats_ = std::vector<float>(1 << 22);
    std::vector<std::uint16_t> halves_ = std::vector<std::uint16_t>(1 << 22);
};

struct Shape {
    const char* name;
    std::int32_t heads, kv_heads, width;
};
constexpr Shape kShapes[] = {{"30b-a3b", 32, 4, 128}, {"8b", 32, 8, 128}, {"0.5b", 14, 2, 64}, {"4b-256", 8, 4, 256}};

// A pool with pages for `sessions` of `positions` each, one after another, kLayers layers in each page.
kernels::KvPool pool_for(Bench& bench, const Shape& shape, std::int64_t pages, kernels::Places& places, int sessions) {
    const std::int64_t layer = 2LL * shape.kv_heads * 256 * shape.width;  // halves
    std::vector<std::int32_t> numbers(static_cast<std::size_t>(pages * sessions));
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::int32_t>(i);
    places.pages = bench.integers(numbers);
    places.pages_stride = static_cast<std::int32_t>(pages);
    kernels::KvPool pool{};
    pool.base = reinterpret_cast<std::uint8_t*>(bench.halves(static_cast<std::size_t>(layer * kLayers * pages * sessions)));
    pool.page_bytes = static_cast<std::uint64_t>(layer * kLayers * 2);
    pool.kv_heads = shape.kv_heads;
    pool.head_dim = pool.head_dim_v = shape.width;
    return pool;
}
kernels::KvPool layer_of(kernels::KvPool pool, int layer) {
    const std::uint64_t half = 2ULL * static_cast<std::uint64_t>(pool.kv_heads) * 256 * static_cast<std::uint64_t>(pool.head_dim);
    pool.k_offset = static_cast<std::uint64_t>(layer) * 2 * half;
    pool.v_offset = pool.k_offset + half;
    return pool;
}

void decode(Bench& bench, const Shape& shape, int positions, int sessions) {
    const std::string name = fmt::format("decode {} {} x {}", shape.name, sessions, positions);
    if (!bench.wants(name)) return;
    kernels::Places places{};
    const std::int64_t pages = (positions + 255) / 256;
    const auto pool = pool_for(bench, shape, pages, places, sessions);
    std::vector<std::int32_t> at(static_cast<std::size_t>(sessions), positions - 1), tables;
    for (int i = 0; i < sessions; ++i) tables.push_back(i);
    places.positions = bench.integers(at);
    places.tables = bench.integers(tables);
    kernels::AttentionArguments a{};
    a.q = bench.floats(static_cast<std::size_t>(sessions * shape.heads * shape.width));
    a.out = bench.floats(static_cast<std::size_t>(sessions * shape.heads * shape.width));
    a.heads = shape.heads;
    a.tokens = sessions;
    a.scale = 0.088F;
    a.places = places;
    a.max_chunks = static_cast<std::int32_t>(pages);
    a.partials = bench.bytes<float>(static_cast<std::size_t>(sessions * shape.heads * pages * (shape.width + 2)), 0xff);
    bench.measure(name, 4.0 * sessions * positions * shape.kv_heads * shape.width, 0, [&](int layer) {
        a.pool = layer_of(pool, layer);
        return kernels::attention_rows(bench.queue(), a);
    });
}

void prefill(Bench& bench, const Shape& shape, int first, int tokens) {
    const std::string name = fmt::format("prefill {} {} from {}", shape.name, tokens, first);
    if (!bench.wants(name)) return;
    kernels::Places places{};
    const std::int64_t pages = (first + tokens + 255) / 256;
    const auto pool = pool_for(bench, shape, pages, places, 1);
    std::vector<std::int32_t> at, tables(static_cast<std::size_t>(tokens), 0);
    for (int i = 0; i < tokens; ++i) at.push_back(first + i);
    places.positions = bench.integers(at);
    places.tables = bench.integers(tables);
    kernels::AttentionArguments a{};
    a.q = bench.floats(static_cast<std::size_t>(tokens * shape.heads * shape.width));
    a.out = bench.floats(static_cast<std::size_t>(tokens * shape.heads * shape.width));
    a.heads = shape.heads;
    a.tokens = tokens;
    a.scale = 0.088F;
    a.places = places;
    const double pairs = (first + 0.5 * tokens) * tokens;
    bench.measure(name, 0, 4 * pairs * shape.heads * shape.width, [&](int layer) {
        a.pool = layer_of(pool, layer);
        return kernels::attention_prefill(bench.queue(), a);
    });

    const std::string heads = fmt::format("heads {} {}", shape.name, tokens);
    if (!bench.wants(heads)) return;
    kernels::HeadArguments h{};
    h.q = const_cast<float*>(a.q);
    h.k = bench.floats(static_cast<std::size_t>(tokens * shape.kv_heads * shape.width));
    h.v = bench.floats(static_cast<std::size_t>(tokens * shape.kv_heads * shape.width));
    h.q_norm = h.k_norm = bench.floats(static_cast<std::size_t>(shape.width));
    h.cosine = h.sine = bench.floats(static_cast<std::size_t>(tokens * shape.width / 2));
    h.half = shape.width / 2;
    h.layout = 1;
    h.heads = shape.heads;
    h.places = places;
    for (const int some : {1, tokens}) {
        h.tokens = some;
        const double bytes = 4.0 * some * shape.width * (2 * shape.heads + 3 * shape.kv_heads);
        bench.measure(fmt::format("heads {} {}", shape.name, some), bytes, 0, [&](int layer) {
            h.pool = layer_of(pool, layer);
            return kernels::head_rows(bench.queue(), h);
        });
    }
}

kernels::Quantized groups(Bench& bench, std::int64_t count) {
    return {bench.zeros<std::int8_t>(static_cast<std::size_t>(count)), bench.zeros<float>(static_cast<std::size_t>(count / 32)),
            bench.zeros<std::int16_t>(static_cast<std::size_t>(count / 16))};
}

void norm(Bench& bench, int rows, int n) {
    const std::string name = fmt::format("norm {} x {}", rows, n);
    if (!bench.wants(name)) return;
    kernels::NormArguments a{};
    a.x = bench.floats(static_cast<std::size_t>(rows) * n);
    a.weight = bench.floats(static_cast<std::size_t>(n));
    a.epsilon = 1e-6F;
    a.count = rows;
    a.n = n;
    a.groups_256 = groups(bench, std::int64_t{rows} * n);
    bench.measure(name + ", groups of 256", 5.14 * rows * n, 0, [&](int) { return kernels::norm_rows(bench.queue(), a); });
    a.out = bench.floats(static_cast<std::size_t>(rows) * n);
    bench.measure(name + ", groups of 256 and floats", 9.14 * rows * n, 0, [&](int) { return kernels::norm_rows(bench.queue(), a); });
}

void swiglu(Bench& bench, int rows, int n) {
    const std::string name = fmt::format("swiglu {} x {}", rows, n);
    if (!bench.wants(name)) return;
    kernels::SwigluArguments a{};
    a.gate = bench.floats(static_cast<std::size_t>(rows) * n);
    a.up = bench.floats(static_cast<std::size_t>(rows) * n);
    a.rows = rows;
    a.n = n;
    a.groups_256 = groups(bench, std::int64_t{rows} * n);
    bench.measure(name, 9.14 * rows * n, 0, [&](int) { return kernels::swiglu_rows(bench.queue(), a); });
}

void embed(Bench& bench, int tokens) {
    const std::string name = fmt::format("embed Q4_K {} x 2048", tokens);
    if (!bench.wants(name)) return;
    std::vector<std::int32_t> ids;
    for (int i = 0; i < tokens; ++i) ids.push_back(i * 7919 % 32000);
    kernels::EmbedArguments a{};
    a.table = {reinterpret_cast<const std::uint8_t*>(bench.halves(32000 * 1152 / 2)), 12, 32000, 2048, 1152};
    a.tokens = bench.integers(ids);
    a.x = bench.floats(static_cast<std::size_t>(tokens) * 2048);
    a.count = tokens;
    bench.measure(name, tokens * (8192.0 + 1152), 0, [&](int) { return kernels::embed_rows(bench.queue(), a); });
}

void sampling(Bench& bench, int rows, int k) {
    const std::string name = fmt::format("top {} of {} x 151936", k, rows);
    if (!bench.wants(name)) return;
    const float* x = bench.floats(static_cast<std::size_t>(rows) * 151936);
    auto* ids = bench.zeros<std::int32_t>(static_cast<std::size_t>(rows * 256));
    const kernels::TopArguments top{x, rows, 151936, k, bench.floats(static_cast<std::size_t>(rows * 256)), ids};
    bench.measure(name, 4.0 * rows * 151936, 0, [&](int) { return kernels::top_rows(bench.queue(), top); });
    const kernels::ArgmaxArguments largest{x, rows, 151936, ids};
    bench.measure(fmt::format("argmax of {} x 151936", rows), 4.0 * rows * 151936, 0, [&](int) { return kernels::argmax_rows(bench.queue(), largest); });
}

}  // namespace

int main(int count, char** arguments) {
    Bench bench(std::vector<std::string_view>(arguments + 1, arguments + count));
    for (const Shape& shape : kShapes) {
        for (const int positions : {128, 1024, 4096, 16384}) decode(bench, shape, positions, 1);
    }
    decode(bench, kShapes[0], 65536, 1);
    decode(bench, kShapes[0], 2048, 8);
    decode(bench, kShapes[0], 512, 64);
    for (const Shape& shape : kShapes) prefill(bench, shape, 0, 4096);
    prefill(bench, kShapes[0], 0, 512);
    prefill(bench, kShapes[0], 16384, 4096);
    for (const auto& [rows, n] : {std::pair(1, 2048), {1, 5120}, {8, 2048}, {4096, 2048}, {4096, 5120}}) norm(bench, rows, n);
    for (const auto& [rows, n] : {std::pair(8, 768), {32768, 768}, {4096, 12288}}) swiglu(bench, rows, n);
    embed(bench, 1);
    embed(bench, 4096);
    sampling(bench, 1, 40);
    sampling(bench, 1, 256);
    sampling(bench, 8, 40);
}
