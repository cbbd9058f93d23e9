#include "cli/interrupt.h"

#include <cstdlib>

#include "core/base/process.h"

namespace headroom::cli {

Interrupt::Interrupt(const Terminal& terminal) : ends_line_(terminal.output) {
    listen_for_interrupts([this] { on_interrupt(); });
}

Interrupt::~Interrupt() { stop_listening(); }

std::stop_token Interrupt::begin() {
    const std::lock_guard lock(mutex_);
    source_ = std::stop_source();
    working_ = true;
    return source_.get_token();
}

void Interrupt::end() {
    const std::lock_guard lock(mutex_);
    working_ = false;
}

void Interrupt::on_interrupt() {
    const std::lock_guard lock(mutex_);
    if (working_ && source_.request_stop()) return;
    // The main thread waits for input or hangs: it cannot be asked to leave. Everything shown so far has been written out.
    if (ends_line_) (void)write_standard_output("\n");
    std::_Exit(working_ ? 1 : 0);
}

}  // namespace headroom::cli
