#pragma once

#include <condition_variable>
#include <mutex>

namespace headroom::residency {

// Keeps steps and changes of what lies where apart: one of them at a time enqueues work on the stream of the steps. Whoever steps comes
// again and again; a change that waits has precedence, so it waits for one step at most. Fair to nobody else: changes are few.
class StepGate {
public:
    class [[nodiscard]] Step {
    public:
        explicit Step(StepGate& gate) : gate_(gate) { gate_.enter_step(); }
        ~Step() { gate_.leave(); }
        Step(const Step&) = delete;
        Step& operator=(const Step&) = delete;

    private:
        StepGate& gate_;
    };
    class [[nodiscard]] Change {
    public:
        explicit Change(StepGate& gate) : gate_(gate) { gate_.enter_change(); }
        ~Change() { gate_.leave(); }
        Change(const Change&) = delete;
        Change& operator=(const Change&) = delete;

    private:
        StepGate& gate_;
    };

    // Whether a change waits.
    [[nodiscard]] bool change_waits() {
        const std::scoped_lock lock(mutex_);
        return waiting_ > 0;
    }

private:
    void enter_step() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return !taken_ && waiting_ == 0; });
        taken_ = true;
    }
    void enter_change() {
        std::unique_lock lock(mutex_);
        ++waiting_;
        changed_.wait(lock, [this] { return !taken_; });
        --waiting_;
        taken_ = true;
    }
    void leave() {
        {
            const std::scoped_lock lock(mutex_);
            taken_ = false;
        }
        changed_.notify_all();
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    bool taken_ = false;
    int waiting_ = 0;
};

}  // namespace headroom::residency
