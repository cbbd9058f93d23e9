#pragma once

// Who may compute. The compute threads and the scratch memory of a model serve one session at a time; sessions take turns, step by step,
// in the order in which they asked.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <stop_token>

namespace headroom::engine {

class TurnLock {
public:
    // A turn, held until the object is destroyed. False: `stop` came before the turn did.
    class Turn {
    public:
        Turn(TurnLock& lock, const std::stop_token& stop) : lock_(lock), held_(lock.acquire(stop)) {}
        ~Turn() {
            if (held_) lock_.release();
        }
        Turn(const Turn&) = delete;
        Turn& operator=(const Turn&) = delete;
        explicit operator bool() const noexcept { return held_; }

    private:
        TurnLock& lock_;
        bool held_;
    };

private:
    [[nodiscard]] bool acquire(const std::stop_token& stop);
    void release() noexcept;

    std::mutex mutex_;
    std::condition_variable_any changed_;
    std::deque<std::uint64_t> queue_;  // the front has the turn
    std::uint64_t next_ = 0;
};

}  // namespace headroom::engine
