#include <atomic>
#include <cerrno>
#include <csignal>
#include <functional>
#include <thread>

#include <fcntl.h>
#include <unistd.h>

#include "cli/interrupt.h"

namespace headroom::cli {
namespace {

// A signal handler may only touch such things: it writes a byte, a thread of ours reads it.
std::atomic<int> signal_pipe{-1};
constexpr char kInterrupt = 'i';
constexpr char kQuit = 'q';

struct Listener {
    int read_end = -1;
    int write_end = -1;
    struct sigaction before {};
    std::thread thread;
};
Listener listener;

void on_signal(int) {
    const int saved = errno;
    (void)!::write(signal_pipe.load(), &kInterrupt, 1);
    errno = saved;
}

}  // namespace

void listen_for_interrupts(std::function<void()> handler) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return;  // Ctrl-C then ends the program, as everywhere
    listener.read_end = ends[0];
    listener.write_end = ends[1];
    signal_pipe = ends[1];
    listener.thread = std::thread([handler = std::move(handler), fd = ends[0]] {
        char byte = 0;
        for (;;) {
            const ssize_t got = ::read(fd, &byte, 1);
            if (got < 0 && errno == EINTR) continue;
            if (got <= 0 || byte == kQuit) return;
            handler();
        }
    });
    struct sigaction action {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    ::sigemptyset(&action.sa_mask);
    ::sigaction(SIGINT, &action, &listener.before);
}

void stop_listening() {
    if (!listener.thread.joinable()) return;
    ::sigaction(SIGINT, &listener.before, nullptr);
    (void)!::write(listener.write_end, &kQuit, 1);
    listener.thread.join();
    signal_pipe = -1;
    ::close(listener.read_end);
    ::close(listener.write_end);
}

}  // namespace headroom::cli
