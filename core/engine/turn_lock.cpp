#include "core/engine/turn_lock.h"

#include <algorithm>

namespace headroom::engine {

bool TurnLock::acquire(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    const std::uint64_t ticket = next_++;
    queue_.push_back(ticket);
    const bool mine = changed_.wait(lock, stop, [&] { return queue_.front() == ticket; });
    if (!mine) queue_.erase(std::ranges::find(queue_, ticket));
    return mine;
}

void TurnLock::release() noexcept {
    {
        const std::scoped_lock lock(mutex_);
        queue_.pop_front();
    }
    changed_.notify_all();
}

}  // namespace headroom::engine
