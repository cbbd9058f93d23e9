#include "cli/program.h"

#include <cstdio>
#include <iostream>
#include <iterator>
#include <utility>

#include "core/base/bytes.h"
#include "core/base/paths.h"
#include "core/base/quote.h"

namespace headroom::cli {
namespace {

constexpr std::uint64_t kLargestText = GiB;

}  // namespace

void Program::print_json(const Json& object) const {
    write_output(object.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

void Program::notice(std::string_view text) const {
    std::string line(text);
    line.push_back('\n');
    std::fwrite(line.data(), 1, line.size(), stderr);
    std::fflush(stderr);
}

CLI::App* add_command(CLI::App& app, Program& program, const std::string& name, const std::string& summary,
                      std::function<Result<>()> action) {
    CLI::App* command = app.add_subcommand(name, summary);
    command->group("Commands");
    command->footer("");  // not the program's
    command->add_flag("--json", program.json, "Print one JSON object and nothing else");
    command->add_flag("-v,--verbose", program.verbose, "Tell more about what happens, on standard error");
    command->callback([&program, action = std::move(action)] { program.command = action; });
    return command;
}

Result<std::string> read_text(const Program& program, const std::optional<std::string>& argument, const std::string& file,
                              std::string_view what) {
    if (argument) return *argument;
    if (!file.empty()) return read_file(from_utf8(file), kLargestText);
    if (program.terminal.input)
        return fail(ErrorKind::invalid_argument, "there is no text: give {}, or send it through a pipe", what);
    return std::string(std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>());
}

Result<Json> read_json(const std::string& file) {
    HR_TRY(const std::string text, read_file(from_utf8(file), kLargestText));
    try {
        return Json::parse(text);
    } catch (const Json::exception& error) {
        return fail(ErrorKind::invalid_file, "{} is not JSON: {}", quote(file), printable(error.what(), 300));
    }
}

}  // namespace headroom::cli
