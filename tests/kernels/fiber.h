#pragma once

// A thread of control with its own stack that runs only when it is resumed, and until it leaves: switching takes nanoseconds and no
// system call, so that a block of a thousand emulated GPU threads is bearable.

#include <cstddef>
#include <memory>

namespace headroom::test {

class Fiber {
public:
    static constexpr std::size_t kStackBytes = 256 << 10;

    // body: called when the fiber is first resumed; it must not return.
    explicit Fiber(void (*body)());
    ~Fiber();
    Fiber(const Fiber&) = delete;
    Fiber& operator=(const Fiber&) = delete;

    // Runs the fiber until it leaves. From outside of any fiber; from one thread at a time.
    void resume();
    // From inside: goes back to the resume() that runs this fiber, and comes back from here at the next resume().
    void leave();

    struct Context;  // of the platform

private:
    std::unique_ptr<Context> context_;
};

}  // namespace headroom::test
