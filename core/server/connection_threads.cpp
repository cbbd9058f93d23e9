#include "core/server/connection_threads.h"

#include <system_error>
#include <thread>
#include <utility>

namespace headroom::server {
namespace {

constexpr std::chrono::seconds kKept{10};  // an idle thread

}  // namespace

bool ConnectionThreads::run(std::function<void()> task) {
    const std::scoped_lock lock(mutex_);
    if (finishing_) return false;
    if (idle_ <= static_cast<int>(tasks_.size())) {
        if (threads_ >= most_) return false;
        try {
            std::thread([this] { work(); }).detach();  // finish() waits for it
        } catch (const std::system_error&) {
            return false;
        }
        ++threads_;
        ++idle_;
    }
    tasks_.push_back(std::move(task));
    changed_.notify_one();
    return true;
}

void ConnectionThreads::work() {
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait_for(lock, kKept, [this] { return finishing_ || !tasks_.empty(); });
        if (tasks_.empty()) break;
        auto task = std::move(tasks_.front());
        tasks_.pop_front();
        --idle_;
        lock.unlock();
        task();
        task = nullptr;
        lock.lock();
        ++idle_;
    }
    --idle_;
    --threads_;
    changed_.notify_all();
}

void ConnectionThreads::finish() {
    std::unique_lock lock(mutex_);
    finishing_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return threads_ == 0; });
}

int ConnectionThreads::busy() const {
    const std::scoped_lock lock(mutex_);
    return threads_ - idle_;
}

}  // namespace headroom::server
