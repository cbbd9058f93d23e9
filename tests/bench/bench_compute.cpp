// Times the CPU operators on shapes of real models: bench_compute [threads] [filter]. Weights are cycled through enough copies that
// they come from memory, as in a decode step; "cached" is one copy again and again.

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "core/compute/cpu/ops.h"
#include "tests/compute/random_data.h"
#include "tests/compute/targets.h"

using namespace headroom;
using namespace headroom::cpu;

namespace {

// The seconds of the quickest tenth of calls of work(round), for about a quarter of a second: what the machine can do undisturbed.
template <class Work>
double typical_seconds(Work work) {
    using Clock = std::chrono::steady_clock;
    std::vector<double> times;
    const auto begin = Clock::now();
    for (int round = 0; round < 3 || Clock::now() - begin < std::chrono::milliseconds(250); ++round) {
        const auto start = Clock::now();
        work(round);
        times.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    }
    std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 10), times.end());
    return times[times.size() / 10];
}

void bench_matmul(ThreadPool& pool, const Layout& layout, std::int64_t rows, std::int64_t cols, std::int64_t tokens, bool cached) {
    Random random(1);
    const std::int64_t bytes = rows * (cols / layout.elements) * layout.bytes;
    const std::int64_t copies = cached || tokens >= 64 ? 1 : std::max<std::int64_t>(1, (96 << 20) / bytes);
    static std::string made;
    static std::vector<RandomMatrix> w;
    const std::string key = fmt::format("{} {} {} {}", layout.name, rows, cols, copies);
    if (made != key) {
        w.clear();
        w.emplace_back(layout, rows, cols, random);
        for (std::int64_t i = 1; i < copies; ++i) {
            w.push_back(w[0]);
            w.back().matrix.data = w.back().bytes.data();
        }
        made = key;
    }
    const std::vector<float> x = random.values(tokens * cols);
    std::vector<float> y(static_cast<std::size_t>(tokens * rows));
    Activations activations;
    activations.assign(x.data(), tokens, cols, cols);
    activations.require(pool, form_for(layout.type));
    const double seconds = typical_seconds([&](int round) {
        const Product product{w[static_cast<std::size_t>(round % copies)].matrix, y.data(), rows};
        matmul(pool, {&product, 1}, activations);
    });
    fmt::print("matmul {:6} {:6} x {:5}, {:3} tokens{}: {:9.1f} us {:6.1f} GB/s {:7.1f} GMAC/s\n", layout.name, rows, cols, tokens,
               cached ? ", cached" : "        ", seconds * 1e6,
               static_cast<double>(bytes) / seconds / 1e9, static_cast<double>(rows * cols * tokens) / seconds / 1e9);
}

}  // namespace

int main(int argc, char** argv) {
    const int threads = argc > 1 ? std::atoi(argv[1]) : 2;
    const std::string filter = argc > 2 ? argv[2] : "";
    const std::string only = argc > 3 ? argv[3] : "";
    ThreadPool pool(threads);
    forEachTarget([&](const char* target) {
        if (std::string(target) == "SCALAR" || (!only.empty() && only != target)) return;
        fmt::print("{}, {} threads\n", target, threads);
        for (const Layout& layout : layouts()) {
            if (!filter.empty() && filter != layout.name) continue;
            bench_matmul(pool, layout, 3072, 1024, 1, true);
            for (const std::int64_t tokens : {1, 2, 4, 8, 512}) bench_matmul(pool, layout, 3072, 1024, tokens, false);
        }
    });
    return 0;
}
