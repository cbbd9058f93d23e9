#pragma once

// Splits an answer's text into reasoning, content and calls of tools, while it comes.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/answer_format.h"

namespace headroom::text {

struct ToolCall {
    std::string id;         // made here: nine letters and digits
    std::string name;
    std::string arguments;  // a JSON object as text, as the model wrote it
    bool operator==(const ToolCall&) const = default;
};

// What is new. Reasoning comes before content, content before calls.
struct AnswerPart {
    std::string reasoning{};
    std::string content{};
    std::vector<ToolCall> calls{};  // each once, whole
    bool operator==(const AnswerPart&) const = default;
};

struct AnswerParserOptions {
    bool tools = false;              // calls are looked for; else they are content
    std::vector<std::string> names;  // of the tools: a call of another one is content. Empty: any
    std::uint64_t id_seed = 0;       // of the calls' ids
    std::string begun{};             // text before what is pushed: it counts (a call may have begun in it), and is not told again
};

// However the text is cut, the joined parts are the same. What only looks like a call (damaged JSON, no name, an unknown one) comes out as
// content, as written: nothing is lost but white space beside reasoning and calls.
class AnswerParser {
public:
    AnswerParser(AnswerFormat format, AnswerParserOptions options);
    ~AnswerParser();
    AnswerParser(AnswerParser&&) noexcept;
    AnswerParser& operator=(AnswerParser&&) noexcept;

    // text: valid UTF-8, with the text of the control tokens in shown_tokens(). Returns what is certain.
    [[nodiscard]] AnswerPart push(std::string_view text);
    // The end: what was held back.
    [[nodiscard]] AnswerPart finish();
    [[nodiscard]] bool has_calls() const noexcept;  // any call so far: finish_reason is "tool_calls"

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace headroom::text
