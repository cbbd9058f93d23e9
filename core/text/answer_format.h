#pragma once

// How a model family marks the parts of an answer: reasoning and calls of tools.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/tokenizer.h"

namespace headroom::text {

enum class ToolSyntax : std::uint8_t {
    hermes,        // <tool_call>{"name": …, "arguments": {…}}</tool_call>, one after another (Hermes, Qwen); also where nothing is known
    llama3,        // {"name": …, "parameters": {…}}, one; <|python_tag|> may stand before it
    mistral,       // [TOOL_CALLS][{"name": …, "arguments": {…}}, …]
    mistral_args,  // [TOOL_CALLS]name[ARGS]{…}, one after another (since 2025)
};

struct AnswerFormat {
    ToolSyntax tools = ToolSyntax::hermes;
    bool tools_in_template = false;    // the template writes tools: calls may be expected
    std::string reasoning_open{};      // "<think>", "[THINK]"; empty: reasoning is not marked
    std::string reasoning_close{};     // "</think>"
    bool starts_in_reasoning = false;  // the prompt ends behind reasoning_open: the answer goes on there

    // The texts that are part of the syntax, whether or not they are control tokens of the vocabulary.
    [[nodiscard]] std::vector<std::string_view> markers() const;
};

// From the source of a chat template (tokenizer.chat_template) and the end of the prompt that it rendered (as text; empty: unknown).
[[nodiscard]] AnswerFormat detect_answer_format(std::string_view chat_template, std::string_view prompt);

// The control tokens that are markers: their text must reach the parser though control tokens have none else
// (engine::GenerateRequest::shown).
[[nodiscard]] std::vector<TokenId> shown_tokens(const AnswerFormat& format, const Tokenizer& tokenizer);

}  // namespace headroom::text
