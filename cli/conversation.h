#pragma once

#include <string>
#include <string_view>

#include "cli/options.h"

namespace headroom::cli {

// A conversation in the terminal, or over pipes: a line in, an answer out.
class Conversation {
public:
    // All of them must outlive it.
    Conversation(const Program& program, Interrupt& interrupt, engine::Model& model, engine::Session& session,
                 const AnswerOptions& options);

    void set_system(std::string text) { system_ = std::move(text); }

    // Answers and keeps question and answer, the answer as far as it came where Ctrl-C stopped it. show: written to standard
    // output as it comes, with a line end behind it.
    [[nodiscard]] Result<engine::GenerateResult> ask(const std::string& question, bool show);

    // Reads lines until the input ends or /exit. An answer that fails is told, and the conversation goes on.
    [[nodiscard]] Result<> run();

private:
    // False where there is nothing more to read. A line that ends in a backslash goes on in the next one.
    bool read_question(std::string& question);
    // Obeys "/help" and its like. False where the text is no command.
    bool obey(std::string_view text);
    void greet() const;

    const Program& program_;
    Interrupt& interrupt_;
    engine::Model& model_;
    engine::Session& session_;
    const AnswerOptions& options_;
    std::string system_;
    text::Json turns_ = text::Json::array();  // messages of user and assistant in turn
    bool ended_ = false;
};

}  // namespace headroom::cli
