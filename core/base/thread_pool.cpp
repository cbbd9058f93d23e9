#include "core/base/thread_pool.h"

#include <algorithm>

#include "core/base/address_wait.h"

namespace headroom {
namespace {

// About 20-50 microseconds of `pause` on current processors: longer than the gap between two sections of a decode step, short
// enough that a waiting program costs nothing that a person could notice.
constexpr int kSpins = 2000;
constexpr int kPatientSpins = 20 * kSpins;

inline void pause_cpu() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

}  // namespace

ThreadPool::ThreadPool(int threads) {
    workers_.reserve(static_cast<std::size_t>(std::max(0, threads - 1)));
    for (int thread = 1; thread < threads; ++thread) workers_.emplace_back([this, thread] { work(thread); });
}

ThreadPool::~ThreadPool() {
    stop_.store(true, std::memory_order_relaxed);
    generation_.fetch_add(1, std::memory_order_seq_cst);
    wake(generation_);
    for (std::thread& worker : workers_) worker.join();
}

std::uint32_t ThreadPool::wait_change(const std::atomic<std::uint32_t>& value, std::uint32_t old) noexcept {
    for (int spin = 0; spin < (patient_.load(std::memory_order_relaxed) ? kPatientSpins : kSpins); ++spin) {
        if (const std::uint32_t now = value.load(std::memory_order_acquire); now != old) return now;
        pause_cpu();
    }
    // Sequentially consistent, as in wake(): either the other side sees a sleeper or this side sees the change.
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    while (value.load(std::memory_order_seq_cst) == old) wait_on(value, old);
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
    return value.load(std::memory_order_acquire);
}

void ThreadPool::wake(std::atomic<std::uint32_t>& value) noexcept {
    if (sleepers_.load(std::memory_order_seq_cst) != 0) wake_all(value);  // a system call: not for those who spin
}

void ThreadPool::run(FunctionRef<void(int)> task) {
    const auto others = static_cast<std::uint32_t>(workers_.size());
    if (others == 0) {
        task(0);
        return;
    }
    task_ = &task;
    running_.store(others, std::memory_order_relaxed);
    generation_.fetch_add(1, std::memory_order_seq_cst);
    wake(generation_);
    task(0);
    std::uint32_t left = running_.load(std::memory_order_acquire);
    while (left != 0) left = wait_change(running_, left);
}

void ThreadPool::parallel_for(std::int64_t count, std::int64_t grain,
                              FunctionRef<void(std::int64_t, std::int64_t, int)> body) {
    if (count <= 0) return;
    grain = std::max<std::int64_t>(1, grain);
    if (count <= grain || workers_.empty()) {
        body(0, count, 0);
        return;
    }
    std::atomic<std::int64_t> next{0};
    run([&](int thread) {
        while (true) {
            const std::int64_t begin = next.fetch_add(grain, std::memory_order_relaxed);
            if (begin >= count) return;
            body(begin, std::min(count, begin + grain), thread);
        }
    });
}

void ThreadPool::work(int thread) {
    std::uint32_t seen = 0;
    while (true) {
        seen = wait_change(generation_, seen);
        if (stop_.load(std::memory_order_relaxed)) return;
        (*task_)(thread);
        if (running_.fetch_sub(1, std::memory_order_seq_cst) == 1) wake(running_);
    }
}

}  // namespace headroom
