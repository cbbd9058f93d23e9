#pragma once

#include <functional>
#include <mutex>
#include <stop_token>

#include "cli/terminal.h"

namespace headroom::cli {

// Ctrl-C. While an object of this class lives, Ctrl-C stops the work between begin() and end(). Where there is none, it ends the
// program (exit code 0: nothing is lost), and so does a second one while the work has not stopped yet (exit code 1). At most one
// object at a time.
class Interrupt {
public:
    // The line that Ctrl-C is shown on is ended where standard output is a terminal.
    explicit Interrupt(const Terminal& terminal);
    ~Interrupt();
    Interrupt(const Interrupt&) = delete;
    Interrupt& operator=(const Interrupt&) = delete;

    // Work begins: it ends early when this token is asked to stop.
    [[nodiscard]] std::stop_token begin();
    void end();

private:
    void on_interrupt();  // on a thread of the system's or our own

    const bool ends_line_;
    std::mutex mutex_;
    std::stop_source source_;
    bool working_ = false;
};

// The system's part: calls `handler` on another thread for each Ctrl-C, until stop_listening() has returned.
void listen_for_interrupts(std::function<void()> handler);
void stop_listening();

}  // namespace headroom::cli
