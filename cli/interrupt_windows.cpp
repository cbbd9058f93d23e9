#include <mutex>

#include <windows.h>

#include "cli/interrupt.h"

namespace headroom::cli {
namespace {

// The system calls its handler on a thread of its own, without an argument: what to call has to lie here.
std::mutex mutex;
std::function<void()> current;

BOOL WINAPI on_control(DWORD event) {
    if (event != CTRL_C_EVENT && event != CTRL_BREAK_EVENT) return FALSE;
    const std::lock_guard lock(mutex);
    if (!current) return FALSE;
    current();
    return TRUE;
}

}  // namespace

void listen_for_interrupts(std::function<void()> handler) {
    {
        const std::lock_guard lock(mutex);
        current = std::move(handler);
    }
    ::SetConsoleCtrlHandler(on_control, TRUE);
}

void stop_listening() {
    ::SetConsoleCtrlHandler(on_control, FALSE);
    const std::lock_guard lock(mutex);
    current = nullptr;
}

}  // namespace headroom::cli
