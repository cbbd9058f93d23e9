#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace headroom {

// A reference to a callable that outlives the call: a pointer and a trampoline, no allocation.
template <class Signature>
class FunctionRef;
template <class R, class... Args>
class FunctionRef<R(Args...)> {
public:
    template <class F>
        requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef>)
    FunctionRef(F&& function)  // NOLINT(google-explicit-constructor): a parameter type
        : object_(const_cast<void*>(static_cast<const void*>(std::addressof(function)))),
          call_([](void* object, Args... args) -> R {
              return (*static_cast<std::remove_reference_t<F>*>(object))(std::forward<Args>(args)...);
          }) {}
    R operator()(Args... args) const { return call_(object_, std::forward<Args>(args)...); }

private:
    void* object_;
    R (*call_)(void*, Args...);
};

// Fork and join over a fixed set of threads, made for hundreds of short parallel sections per token: workers spin for some tens
// of microseconds after a section and then sleep, so that a decode step wakes nobody and an idle program burns nothing.
// The calling thread works too, as thread 0. One section at a time: sections must not nest, and calls from two threads at once
// are not allowed.
class ThreadPool {
public:
    // threads >= 1, the caller included.
    explicit ThreadPool(int threads);
    ~ThreadPool();
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;

    [[nodiscard]] int size() const noexcept { return static_cast<int>(workers_.size()) + 1; }

    // Calls task(thread) once on each thread, thread in [0, size()), and returns when all have returned. task must not throw.
    void run(FunctionRef<void(int thread)> task);

    // While patient, workers spin for about a millisecond after a section instead: for sections that come at short intervals with something
    // else between them (a GPU's share of a layer). Any thread.
    void set_patient(bool patient) noexcept { patient_.store(patient, std::memory_order_relaxed); }

    // Calls body(begin, end, thread) for pieces of [0, count), each of `grain` (the last one less), handed out as threads
    // become free. Which thread gets which piece changes from run to run: results must not depend on it. A thread that has no core (some
    // other program's thread has it) or still sleeps when all pieces are handed out is not waited for.
    void parallel_for(std::int64_t count, std::int64_t grain, FunctionRef<void(std::int64_t begin, std::int64_t end, int thread)> body);

private:
    // A section; returns when all workers have taken part, or (all false) when those have ended that had begun when task(0) ended.
    void section(FunctionRef<void(int thread)> task, bool all);
    void work(int thread);
    // Waits until value differs from `old`: spins first, then sleeps.
    std::uint32_t wait_change(const std::atomic<std::uint32_t>& value, std::uint32_t old) noexcept;
    // Wakes those who sleep until value changes; call after changing it.
    void wake(std::atomic<std::uint32_t>& value) noexcept;

    static constexpr std::uint64_t kClosed = std::uint64_t{1} << 31;
    [[nodiscard]] static std::uint32_t entered(std::uint64_t section) noexcept { return static_cast<std::uint32_t>(section & (kClosed - 1)); }

    std::vector<std::thread> workers_;
    alignas(64) std::atomic<std::uint32_t> generation_{0};     // counts sections: what workers wait for
    alignas(64) std::atomic<std::uint64_t> section_{kClosed};  // generation << 32, whether no worker may begin any more, how many have begun
    alignas(64) std::atomic<std::uint32_t> finished_{0};       // how many of these have ended
    alignas(64) std::atomic<std::uint32_t> sleepers_{0};         // threads that sleep or are about to
    alignas(64) std::atomic<bool> stop_{false};
    std::atomic<bool> patient_{false};
    const FunctionRef<void(int)>* task_ = nullptr;          // written before section_ is opened
};

}  // namespace headroom
