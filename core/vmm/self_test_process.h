#pragma once

// The self-test in a child process: the same program, started with a hidden command. A driver that hangs or crashes takes the child with
// it, not the program.

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/gpu/device.h"
#include "core/gpu/search_path.h"
#include "core/vmm/self_test.h"
#include "core/vmm/verdict.h"

namespace headroom::vmm {

// To be called first in main(), with its arguments in UTF-8 and without the program's name. Where they are the hidden command, runs the
// self-test, writes what it sees to the standard output (one JSON object a line) and returns the exit code; else nothing.
[[nodiscard]] std::optional<int> run_hidden_command(const std::vector<std::string>& arguments);

struct SelfTestProcess {
    gpu::SearchPath path;
    std::filesystem::path program;                  // whose main() calls run_hidden_command; empty: this one
    std::chrono::milliseconds time_limit{20'000};
    SelfTestOptions options = {};                   // `pause` stays the default
    std::function<void(std::string_view step)> on_step = {};  // each step as it begins, in the calling thread; names as in verdict_text.h
    std::stop_token stop = {};                      // ends the test: the verdict then means nothing
};

// Tests a device in a child. Blocks until it has ended or the time is over. Never fails: a test that cannot be started, hangs or crashes is
// a verdict with that reason. Thread-safe.
[[nodiscard]] Verdict test_in_child(const gpu::DeviceInfo& device, const SelfTestProcess& process);

}  // namespace headroom::vmm
