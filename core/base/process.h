#pragma once

// Child processes with a time limit: for work that may hang or crash, such as the first calls to an unknown GPU driver.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"

namespace headroom {

struct ChildCommand {
    std::filesystem::path program;         // an absolute path
    std::vector<std::string> arguments;    // UTF-8, without the program's name
    std::chrono::milliseconds time_limit{20'000};
    std::size_t output_limit = 1 << 20;    // bytes of output that are kept; the rest is read and dropped
    std::function<void(std::string_view output)> on_output = {};  // each piece of output as it comes, in the calling thread
    std::stop_token stop = {};             // ends the child before its time
};

struct ChildResult {
    enum class End : std::uint8_t { exited, crashed, timed_out, stopped } end = End::exited;
    int code = 0;                          // exit code
    std::string crash;                     // for `crashed`: "signal 11, Segmentation fault", "exception 0xc0000005"
    std::string output;                    // what it wrote to its standard output; its standard error goes nowhere
    double seconds = 0;
};

// Starts a program and waits until it has ended, its time is over or the caller stops it; then it, and on Linux every process of its group, is killed.
// Blocks the calling thread for time_limit at most (and for some milliseconds more). Thread-safe.
// Errors: io where the program cannot be started.
[[nodiscard]] Result<ChildResult> run_child(const ChildCommand& command);

// Writes to this process's standard output at once, without buffers, also in a window program of Windows that was started with a
// pipe for it. False where nobody reads any more.
bool write_standard_output(std::string_view text) noexcept;

// How a child ended, for people: "ended with code 3", "crashed (signal 11, segmentation fault)", "did not finish in 20 s".
[[nodiscard]] std::string describe_end(const ChildResult& result, std::chrono::milliseconds time_limit);

// The calling process's id, as the system's counters name it.
[[nodiscard]] std::uint32_t process_id() noexcept;

}  // namespace headroom
