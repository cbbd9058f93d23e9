#include "core/base/log.h"

#include <memory>
#include <vector>

#include <spdlog/sinks/rotating_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include "core/base/bytes.h"
#include "core/base/paths.h"

namespace headroom {
namespace {

spdlog::level::level_enum spdlog_level(LogLevel level) {
    switch (level) {
        case LogLevel::error: return spdlog::level::err;
        case LogLevel::warning: return spdlog::level::warn;
        case LogLevel::info: return spdlog::level::info;
        case LogLevel::debug: return spdlog::level::debug;
    }
    return spdlog::level::info;
}

}  // namespace

void start_log(LogLevel level, const std::filesystem::path& file) {
    std::vector<spdlog::sink_ptr> sinks{std::make_shared<spdlog::sinks::stderr_sink_mt>()};
    std::string problem;
    if (!file.empty()) {
        try {
            std::filesystem::create_directories(file.parent_path());
            sinks.push_back(std::make_shared<spdlog::sinks::rotating_file_sink_mt>(file.string(), 5 * MiB, 3));
        } catch (const std::exception& error) {
            problem = error.what();
        }
    }
    auto logger = std::make_shared<spdlog::logger>("headroom", sinks.begin(), sinks.end());
    logger->set_level(spdlog_level(level));
    logger->set_pattern("%H:%M:%S.%e %l: %v");
    logger->flush_on(spdlog::level::warn);
    spdlog::set_default_logger(std::move(logger));
    if (!problem.empty()) spdlog::warn("the log file {} could not be opened: {}", to_utf8(file), problem);
}

}  // namespace headroom
