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

void ThreadPool::run(FunctionRef<void(int)> task) { section(task, true); }

// What is sequentially consistent here: either a worker that ends sees that it is the last one, or the caller sees that it has ended.
void ThreadPool::section(FunctionRef<void(int)> task, bool all) {
    const auto others = static_cast<std::uint32_t>(workers_.size());
    if (others == 0) {
        task(0);
        return;
    }
    task_ = &task;
    finished_.store(0, std::memory_order_relaxed);
    const std::uint32_t number = generation_.load(std::memory_order_relaxed) + 1;
    section_.store(std::uint64_t{number} << 32, std::memory_order_release);
    generation_.store(number, std::memory_order_seq_cst);
    wake(generation_);
    task(0);
    const auto await = [this](std::uint32_t wanted) {
        for (std::uint32_t finished = finished_.load(std::memory_order_seq_cst); finished != wanted;) finished = wait_change(finished_, finished);
    };
    if (all) await(others);
    await(entered(section_.fetch_or(kClosed, std::memory_order_seq_cst)));
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
    const auto pieces = [&](int thread) {
        while (true) {
            const std::int64_t begin = next.fetch_add(grain, std::memory_order_relaxed);
            if (begin >= count) return;
            body(begin, std::min(count, begin + grain), thread);
        }
    };
    section(pieces, false);
}

void ThreadPool::work(int thread) {
    std::uint32_t seen = 0;
    while (true) {
        wait_change(generation_, seen);
        if (stop_.load(std::memory_order_relaxed)) return;
        // Whoever comes late finds the section closed, or the next one open (which generation_ may not tell yet).
        std::uint64_t section = section_.load(std::memory_order_acquire);
        while (static_cast<std::uint32_t>(section >> 32) != seen) {
            if ((section & kClosed) != 0) {
                seen = static_cast<std::uint32_t>(section >> 32);
                break;
            }
            if (!section_.compare_exchange_weak(section, section + 1, std::memory_order_acq_rel, std::memory_order_acquire)) continue;
            seen = static_cast<std::uint32_t>(section >> 32);
            (*task_)(thread);
            const std::uint32_t finished = finished_.fetch_add(1, std::memory_order_seq_cst) + 1;
            const std::uint64_t now = section_.load(std::memory_order_seq_cst);
            if (finished == workers_.size() || ((now & kClosed) != 0 && finished == entered(now))) wake(finished_);
        }
    }
}

}  // namespace headroom
