#include "cli/conversation.h"

#include <algorithm>

namespace headroom::cli {
namespace {

constexpr std::string_view kHelp =
    "/help          this text\n"
    "/clear         forget the conversation\n"
    "/system TEXT   tell the model what it is to be; without TEXT: nothing\n"
    "/exit          end (so do Ctrl-D and Ctrl-C)\n"
    "A line that ends in \\ goes on in the next one. Ctrl-C stops an answer.";

std::string trimmed(std::string_view text) {
    const auto space = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
    while (!text.empty() && space(text.front())) text.remove_prefix(1);
    while (!text.empty() && space(text.back())) text.remove_suffix(1);
    return std::string(text);
}

}  // namespace

Conversation::Conversation(const Program& program, Interrupt& interrupt, engine::Model& model, engine::Session& session,
                           const AnswerOptions& options)
    : program_(program), interrupt_(interrupt), model_(model), session_(session), options_(options) {}

Result<engine::GenerateResult> Conversation::ask(const std::string& question, bool show) {
    text::Json messages = text::Json::array();
    if (!system_.empty()) messages.push_back({{"role", "system"}, {"content", system_}});
    for (const text::Json& turn : turns_) messages.push_back(turn);
    const text::Json asked{{"role", "user"}, {"content", question}};
    messages.push_back(asked);

    engine::GenerateRequest request;
    HR_TRY(request.prompt, model_.chat_prompt({{"messages", messages}}));
    request.sampling = options_.sampling;
    request.max_tokens = options_.max_tokens;
    request.stops = options_.stops;
    engine::GenerateCallbacks callbacks;
    bool line_ended = false;
    if (show)
        callbacks.on_text = [&](std::string_view text, const engine::GenerateStats&) {
            write_output(program_.terminal.output ? without_control_characters(text) : std::string(text));
            line_ended = text.ends_with('\n');
        };
    auto result = session_.generate(request, callbacks, interrupt_.begin());
    interrupt_.end();
    if (!result) return result;
    if (show && !line_ended) write_output("\n");
    turns_.push_back(asked);
    turns_.push_back({{"role", "assistant"}, {"content", result->text}});
    return result;
}

Result<> Conversation::run() {
    const bool talking = program_.terminal.input && program_.terminal.output;
    if (talking) greet();
    std::string question;
    while (!ended_ && read_question(question)) {
        if (question.empty() || obey(question)) continue;
        const auto result = ask(question, true);
        if (!result) {
            const bool full = result.error().kind == ErrorKind::context_full;
            program_.notice(result.error().message + (full && talking ? " (or type /clear)" : ""));
            // Without a person to read it, the exit code has to tell.
            if (!talking) return std::unexpected(result.error());
        } else if (talking) {
            program_.notice(fmt::format("\x1b[2m{}\x1b[0m\n", answer_figures(*result)));
        }
    }
    return {};
}

bool Conversation::read_question(std::string& question) {
    const bool talking = program_.terminal.input && program_.terminal.output;
    question.clear();
    std::string line;
    if (talking) write_output("> ");
    while (read_line(line)) {
        const bool goes_on = line.ends_with('\\');
        if (goes_on) line.back() = '\n';
        question += line;
        if (!goes_on) {
            question = trimmed(question);
            return true;
        }
        if (talking) write_output("… ");
    }
    question = trimmed(question);
    if (talking) write_output("\n");
    return !question.empty();
}

bool Conversation::obey(std::string_view text) {
    if (!text.starts_with('/')) return false;
    const std::size_t space = text.find(' ');
    const std::string_view name = text.substr(1, space == std::string_view::npos ? space : space - 1);
    const std::string rest = space == std::string_view::npos ? std::string() : trimmed(text.substr(space));
    if (name == "help" && rest.empty()) {
        program_.notice(kHelp);
    } else if (name == "clear" && rest.empty()) {
        turns_ = text::Json::array();
        program_.notice("The conversation is forgotten.");
    } else if (name == "system") {
        system_ = rest;
        program_.notice(rest.empty() ? "There is no system prompt now." : "The system prompt is set.");
    } else if ((name == "exit" || name == "quit") && rest.empty()) {
        ended_ = true;
    } else if (rest.empty() && !name.empty() && std::ranges::all_of(name, [](char c) { return c >= 'a' && c <= 'z'; })) {
        program_.notice(fmt::format("There is no command /{}; /help lists them.", name));
    } else {
        return false;
    }
    return true;
}

void Conversation::greet() const {
    const engine::ModelInfo& info = model_.info();
    program_.notice(fmt::format("\x1b[1m{}\x1b[0m  {}, {}, {:.1f} M parameters, context {}\n\x1b[2m/help lists commands, Ctrl-C stops an "
                                "answer, Ctrl-D ends.\x1b[0m\n",
                                info.name, info.family, info.quantization, static_cast<double>(info.parameters) / 1e6, info.context));
}

}  // namespace headroom::cli
