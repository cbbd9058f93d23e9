#include "cli/commands.h"
#include "cli/options.h"

namespace headroom::cli {
namespace {

struct Options {
    ModelOptions model;
    AnswerOptions answer;
    std::optional<std::string> prompt;
    std::string file;
    bool special = false;
};

Result<> complete(const Program& program, const Options& options) {
    HR_CHECK(engine::check(options.answer.sampling));
    HR_TRY(const std::string prompt, read_text(program, options.prompt, options.file, "-p TEXT or --file"));
    Interrupt interrupt(program.terminal);
    HR_TRY(const auto model, load_model(program, options.model, interrupt));
    HR_TRY(const auto session, engine::Session::create(model));

    engine::GenerateRequest request;
    request.prompt = model->tokenizer().encode(prompt, {.parse_special = options.special});
    request.sampling = options.answer.sampling;
    request.max_tokens = options.answer.max_tokens;
    request.stops = options.answer.stops;
    engine::GenerateCallbacks callbacks;
    if (!program.json)
        callbacks.on_text = [&](std::string_view text, const engine::GenerateStats&) {
            write_output(program.terminal.output ? without_control_characters(text) : std::string(text));
        };
    const auto result = session->generate(request, callbacks, interrupt.begin());
    interrupt.end();
    HR_CHECK(result);
    if (program.json) {
        program.print_json(answer_json(*result));
    } else {
        write_output("\n");
        if (program.terminal.output || program.verbose) program.notice(answer_figures(*result));
    }
    return {};
}

}  // namespace

void add_complete(CLI::App& app, Program& program) {
    auto options = std::make_shared<Options>();
    CLI::App* command = add_command(app, program, "complete", "Go on with a text, without a chat template",
                                    [&program, options] { return complete(program, *options); });
    command->add_option("-p,--prompt", options->prompt, "The text to go on with (default: standard input)")->type_name("TEXT");
    command->add_option("--file", options->file, "Read the text from this file")->type_name("FILE");
    command->add_flag("--special", options->special, "Special tokens written in the text (<|im_end|>) become those tokens");
    add_answer_options(*command, options->answer);
    add_compute_options(*command, options->model);
}

}  // namespace headroom::cli
