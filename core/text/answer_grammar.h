#pragma once

// From what a request asks of an answer (response_format, tools, tool_choice) to a grammar.

#include <memory>
#include <string>

#include "core/base/error.h"
#include "core/text/answer_format.h"
#include "core/text/json_schema.h"

namespace headroom::text {

struct AnswerRules {
    enum class Text : std::uint8_t { free, json_object, json_schema } text = Text::free;
    Json schema{};                    // with json_schema
    enum class Choice : std::uint8_t {
        none,       // no call
        automatic,  // text, or calls: what begins as a call is held to be a whole one
        required,   // at least one call
        named,      // one of `name`
    } choice = Choice::none;
    Json tools{};                     // [{"type": "function", "function": {"name", "description"?, "parameters"?}}, …]
    std::string name{};
    bool parallel = true;             // more than one call (where the family can)
};

// Null where nothing is to be held to: free text without tools. Reasoning may come first where the format marks it. With a text that is
// not free and Choice::automatic: either that text or calls.
// Errors: compile_json_schema's (paths begin with "response_format" or "tools[2].function.parameters"), invalid_argument for tools
// without a name, names twice or with other characters than letters, digits, '_', '-' and '.', and a `name` that no tool has.
[[nodiscard]] Result<std::shared_ptr<const Grammar>> compile_answer_grammar(const AnswerFormat& format, const AnswerRules& rules);

}  // namespace headroom::text
