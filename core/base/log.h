#pragma once

// The program's log: spdlog's default logger. Log lines go to standard error (results go to standard output) and, where the
// window asks for it, to a file and to the Log page.

#include <filesystem>

#include <spdlog/spdlog.h>

namespace headroom {

enum class LogLevel { error, warning, info, debug };

// Sets up the default logger once, from main. Thread-safe afterwards. `file`, if not empty, is written too (rotated at 5 MiB,
// 3 files); a file that cannot be opened is reported on standard error and left out.
void start_log(LogLevel level, const std::filesystem::path& file = {});

}  // namespace headroom
