#include "cli/commands.h"
#include "cli/conversation.h"
#include "cli/options.h"

namespace headroom::cli {
namespace {

struct Options {
    ModelOptions model;
    AnswerOptions answer;
    std::optional<std::string> prompt;
    std::string system;
};

// One question, one answer.
Result<> ask(const Program& program, Conversation& conversation, const std::string& prompt) {
    HR_TRY(const auto result, conversation.ask(prompt, !program.json));
    if (program.json) {
        program.print_json(answer_json(result));
    } else if (program.verbose) {
        program.notice(answer_figures(result));
    }
    return {};
}

Result<> chat(const Program& program, const Options& options) {
    HR_CHECK(engine::check(options.answer.sampling));
    std::optional<std::string> prompt = options.prompt;
    if (!prompt && program.json) {
        HR_TRY(prompt, read_text(program, std::nullopt, {}, "-p TEXT"));
    }
    Interrupt interrupt(program.terminal);
    HR_TRY(const auto model, load_model(program, options.model, interrupt));
    HR_TRY(auto session, engine::Session::create(model));
    Conversation conversation(program, interrupt, *model, *session, options.answer);
    conversation.set_system(options.system);
    return prompt ? ask(program, conversation, *prompt) : conversation.run();
}

}  // namespace

void add_chat(CLI::App& app, Program& program) {
    auto options = std::make_shared<Options>();
    CLI::App* command = add_command(app, program, "chat", "Answer a question, or talk in the terminal",
                                    [&program, options] { return chat(program, *options); });
    command->add_option("-p,--prompt", options->prompt, "Answer this and end (default: a conversation)")->type_name("TEXT");
    command->add_option("--system", options->system, "What the model is told before the conversation")->type_name("TEXT");
    add_answer_options(*command, options->answer);
    add_compute_options(*command, options->model);
}

}  // namespace headroom::cli
