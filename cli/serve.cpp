#include <condition_variable>
#include <mutex>

#include "cli/commands.h"
#include "cli/options.h"
#include "core/base/paths.h"
#include "core/base/quote.h"
#include "core/server/guard.h"
#include "core/server/server.h"

namespace headroom::cli {
namespace {

struct Options {
    ModelOptions model;
    server::ServerOptions server;
    double idle_minutes = 0;
    bool lazy = false;
};

// Returns when `stop` is asked for.
void wait_for(const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any changed;
    std::unique_lock lock(mutex);
    changed.wait(lock, stop, [] { return false; });
}

// What requests call the model that was named with -m.
std::string model_name(const std::string& named, const std::filesystem::path& path) {
    if (named == "builtin") return named;
    return printable(to_utf8(path.stem()));
}

Result<> serve(const Program& program, const Options& options) {
    server::ServerOptions server = options.server;
    server.version = HEADROOM_VERSION;
    engine::ModelHostOptions& models = server.models;
    models.model_folder = default_model_folder();
    HR_TRY(models.first_path, engine::find_model(options.model.model, models.model_folder));
    models.first_name = model_name(options.model.model, models.first_path);
    HR_TRY(models.load, load_options(options.model));
    if (options.idle_minutes > 0) models.idle = std::chrono::milliseconds(static_cast<std::int64_t>(options.idle_minutes * 60'000));
    Interrupt interrupt(program.terminal);
    std::string where = "it is loaded when somebody asks for it";
    if (!options.lazy) {
        HR_TRY(models.first_model, load_model(program, options.model, interrupt));
        where = where_it_runs(*models.first_model);
    }
    const std::string name = models.first_name;
    HR_TRY(const auto running, server::Server::start(std::move(server)));
    if (program.json) {
        program.print_json({{"address", running->address()}, {"model", name}});
    } else {
        program.notice(fmt::format("Serving {} at {} ({}); Ctrl-C ends", name, running->address(), where));
    }
    wait_for(interrupt.begin());
    interrupt.end();
    running->stop();
    return {};
}

}  // namespace

void add_serve(CLI::App& app, Program& program) {
    auto options = std::make_shared<Options>();
    CLI::App* command = add_command(app, program, "serve", "Answer other programs over HTTP (OpenAI's and Ollama's API)",
                                    [&program, options] { return serve(program, *options); });
    server::ServerOptions& server = options->server;
    const auto text = [&](const char* name, auto& target, const char* type, const char* help) { return command->add_option(name, target, help)->type_name(type); };
    text("--host", server.host, "ADDRESS", "Listen on this address (default: 127.0.0.1, this computer alone)");
    text("--port", server.port, "PORT", "Listen on this port; 0: any free one (default: 8080)");
    text("--api-key", server.api_key, "KEY", "Clients must send this key");
    command->add_flag("--no-key", server.no_key, "Other computers may do without a key");
    text("--origin", server.origins, "ORIGIN", "Web pages of this origin may use the server; may be given several times; *: all")->allow_extra_args(false);
    text("--name", server.names, "NAME", "A further name that clients use for this computer; may be given several times")->allow_extra_args(false);
    text("--parallel", server.models.scheduler.max_running, "N", "Answers under way at once (default: 64)")->check(positive());
    text("--queue", server.models.scheduler.max_queued, "N", "Requests that may wait (default: 256)")->check(not_negative());
    text("--idle-unload", options->idle_minutes, "MINUTES", "Unload a model that nobody has used for so long (default: never)")->check(positive());
    command->add_flag("--lazy", options->lazy, "Load the model when the first request comes");
    add_compute_options(*command, options->model);
}

}  // namespace headroom::cli
