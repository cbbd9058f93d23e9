#include "cli/run.h"

#include <algorithm>
#include <exception>

#include "cli/commands.h"
#include "core/base/log.h"
#include "core/base/quote.h"
#include "core/vmm/self_test_process.h"

namespace headroom::cli {
namespace {

constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr int kWrongUsage = 2;

int report(const Program& program, const Error& error) {
    program.notice(fmt::format("headroom-cli: {}", error.message));
    return error.kind == ErrorKind::invalid_argument ? kWrongUsage : kFailed;
}

}  // namespace

int run(const std::vector<std::string>& arguments) {
    if (const auto code = vmm::run_hidden_command(arguments)) return *code;  // this process is the self-test of a GPU
    Program program;
    program.terminal = prepare_terminal();

    CLI::App app("Runs language models from GGUF files on this computer.", "headroom-cli");
    app.set_version_flag("--version", std::string("headroom-cli " HEADROOM_VERSION), "Print the version and end");
    app.set_help_flag("-h,--help", "Print this text and end");
    app.require_subcommand(1);
    app.get_formatter()->column_width(34);
    app.get_formatter()->label("SUBCOMMAND", "COMMAND");
    app.footer("headroom-cli COMMAND --help tells more about a command. Exit codes: 0 done, 1 it could not be done, 2 wrong usage.");
    for (auto* add : {add_chat, add_complete, add_tokenize, add_detokenize, add_template, add_inspect, add_eval, add_perplexity, add_bench, add_devices, add_serve, add_vram})
        add(app, program);

    const std::string first = arguments.empty() ? std::string() : arguments.front();
    const bool named = !first.empty() && !first.starts_with('-');
    const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
    const bool known = std::ranges::any_of(commands, [&](const CLI::App* command) { return command->get_name() == first; });
    if (first.empty() || (named && !known)) {
        program.notice(fmt::format("headroom-cli: {}; headroom-cli --help lists the commands",
                                   named ? fmt::format("There is no command {}", quote(first)) : "Name a command"));
        return kWrongUsage;
    }
    try {
        std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());  // as CLI11 takes them
        app.parse(reversed);
    } catch (const CLI::Success& end) {  // --help, --version
        return app.exit(end);
    } catch (const CLI::ParseError& error) {
        program.notice(fmt::format("headroom-cli: {}\nTry: headroom-cli {}--help", error.what(), named ? first + ' ' : ""));
        return kWrongUsage;
    }

    start_log(program.verbose ? LogLevel::debug : LogLevel::warning);
    try {
        const Result<> result = program.command();
        if (!result) return report(program, result.error());
    } catch (const std::exception& error) {  // memory that is not there: core's own errors are values
        return report(program, {ErrorKind::internal, fmt::format("The command failed: {}", error.what())});
    }
    if (!output_arrived()) return report(program, {ErrorKind::io, "The result could not be written to standard output"});
    return kDone;
}

}  // namespace headroom::cli
