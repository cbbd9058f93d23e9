#pragma once

// Threads for connections: as many as there are connections, kept for a while for the next ones.

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>

namespace headroom::server {

class ConnectionThreads {
public:
    explicit ConnectionThreads(int most) : most_(most) {}
    ~ConnectionThreads() { finish(); }
    ConnectionThreads(const ConnectionThreads&) = delete;
    ConnectionThreads& operator=(const ConnectionThreads&) = delete;

    // Runs the task on a thread that has nothing to do, else on a new one. False: all are busy.
    [[nodiscard]] bool run(std::function<void()> task);
    // Returns when all tasks and threads have ended.
    void finish();
    [[nodiscard]] int busy() const;

private:
    void work();

    const int most_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> tasks_;  // each has a thread that is about to take it
    int threads_ = 0;
    int idle_ = 0;
    bool finishing_ = false;
};

}  // namespace headroom::server
