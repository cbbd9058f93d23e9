#pragma once

// What all commands share: the streams, the flags, how results and problems are told.

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/terminal.h"
#include "core/base/error.h"

namespace headroom::cli {

using Json = nlohmann::ordered_json;

struct Program {
    Terminal terminal;
    bool json = false;
    bool verbose = false;
    std::function<Result<>()> command;  // set by the one that was named

    // The object and a line end, bytes that are no UTF-8 as U+FFFD.
    void print_json(const Json& object) const;
    // A line for people, on standard error.
    void notice(std::string_view text) const;
};

// A command with --json and --verbose; `action` runs when it is named and its options are right.
CLI::App* add_command(CLI::App& app, Program& program, const std::string& name, const std::string& summary,
                      std::function<Result<>()> action);

// Text for a command: `argument`, else `file`, else all of standard input unless that is a terminal.
[[nodiscard]] Result<std::string> read_text(const Program& program, const std::optional<std::string>& argument, const std::string& file,
                                            std::string_view what);

// A JSON file. Errors name the file and the place.
[[nodiscard]] Result<Json> read_json(const std::string& file);

}  // namespace headroom::cli
