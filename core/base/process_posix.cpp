#include "core/base/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "core/base/paths.h"

namespace headroom {
namespace {

using Clock = std::chrono::steady_clock;

struct Pipe {
    int read = -1, write = -1;
    ~Pipe() {
        if (read >= 0) ::close(read);
        if (write >= 0) ::close(write);
    }
};

// The whole group, so that what the child started goes with it.
void kill_group(pid_t child) noexcept {
    ::kill(-child, SIGKILL);
    ::kill(child, SIGKILL);
}

}  // namespace

Result<ChildResult> run_child(const ChildCommand& command) {
    Pipe pipe;
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return fail(ErrorKind::io, "a pipe cannot be made: {}", std::strerror(errno));
    pipe.read = ends[0];
    pipe.write = ends[1];
    const std::string program = to_utf8(command.program);
    std::vector<std::string> words{program};
    words.insert(words.end(), command.arguments.begin(), command.arguments.end());
    std::vector<char*> argv;
    for (auto& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);

    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawnattr_init(&attributes);
    ::posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&files, pipe.write, 1);
    ::posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
    sigset_t none;
    sigemptyset(&none);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    ::posix_spawnattr_setpgroup(&attributes, 0);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    pid_t child = -1;
    const auto start = Clock::now();
    const int code = ::posix_spawn(&child, program.c_str(), &files, &attributes, argv.data(), environ);
    ::posix_spawn_file_actions_destroy(&files);
    ::posix_spawnattr_destroy(&attributes);
    if (code != 0) return fail(ErrorKind::io, "{} cannot be started: {}", program, std::strerror(code));
    ::close(pipe.write);
    pipe.write = -1;

    ChildResult result;
    const auto deadline = start + command.time_limit;
    bool reading = true, killed = false;
    int status = 0;
    // The pipe may stay open in a grandchild after the child has ended, and the child may close it early: both are watched.
    for (;;) {
        const pid_t ended = ::waitpid(child, &status, WNOHANG);
        const bool over = ended == child || (ended < 0 && errno != EINTR);
        const bool stopped = command.stop.stop_requested();
        if (!over && !killed && (stopped || Clock::now() >= deadline)) {
            kill_group(child);
            killed = true;
            result.end = stopped ? ChildResult::End::stopped : ChildResult::End::timed_out;
        }
        if (!reading) {
            if (over) break;
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
            continue;
        }
        pollfd wait{pipe.read, POLLIN, 0};
        const int ready = ::poll(&wait, 1, over ? 0 : 5);
        if (ready > 0) {
            char buffer[16384];
            const ssize_t got = ::read(pipe.read, buffer, sizeof buffer);
            if (got > 0) {
                if (command.on_output) command.on_output({buffer, static_cast<std::size_t>(got)});
                const std::size_t room = command.output_limit - std::min(command.output_limit, result.output.size());
                result.output.append(buffer, std::min(room, static_cast<std::size_t>(got)));
            } else if (got == 0 || errno != EINTR) {
                reading = false;
            }
        } else if (over) {
            break;
        }
    }
    ::kill(-child, SIGKILL);  // what it may have left behind
    result.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (killed) return result;
    if (WIFSIGNALED(status)) {
        result.end = ChildResult::End::crashed;
        const char* name = ::sigdescr_np(WTERMSIG(status));
        result.crash = fmt::format("signal {}{}{}", WTERMSIG(status), name ? ", " : "", name ? name : "");
    } else {
        result.code = WEXITSTATUS(status);
    }
    return result;
}

bool write_standard_output(std::string_view text) noexcept {
    while (!text.empty()) {
        const ssize_t done = ::write(1, text.data(), text.size());
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return false;
        text.remove_prefix(static_cast<std::size_t>(done));
    }
    return true;
}

std::uint32_t process_id() noexcept { return static_cast<std::uint32_t>(::getpid()); }

}  // namespace headroom
