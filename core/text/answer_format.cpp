#include "core/text/answer_format.h"

#include <algorithm>

namespace headroom::text {

std::vector<std::string_view> AnswerFormat::markers() const {
    std::vector<std::string_view> all;
    switch (tools) {
        case ToolSyntax::hermes: all = {"<tool_call>", "</tool_call>"}; break;
        case ToolSyntax::llama3: all = {"<|python_tag|>"}; break;
        case ToolSyntax::mistral: all = {"[TOOL_CALLS]"}; break;
        case ToolSyntax::mistral_args: all = {"[TOOL_CALLS]", "[ARGS]", "[CALL_ID]"}; break;
    }
    if (!reasoning_open.empty()) {
        all.push_back(reasoning_open);
        all.push_back(reasoning_close);
    }
    return all;
}

AnswerFormat detect_answer_format(std::string_view chat_template, std::string_view prompt) {
    const auto has = [&](std::string_view text) { return chat_template.find(text) != std::string_view::npos; };
    AnswerFormat format;
    if (has("[TOOL_CALLS]")) {
        format.tools = has("[ARGS]") ? ToolSyntax::mistral_args : ToolSyntax::mistral;
    } else if (!has("<tool_call>") && (has("<|python_tag|>") || has("\"parameters\": "))) {
        format.tools = ToolSyntax::llama3;
    }
    format.tools_in_template = has("tools");
    if (has("<think>") || has("</think>")) {
        format.reasoning_open = "<think>";
        format.reasoning_close = "</think>";
    } else if (has("[THINK]")) {
        format.reasoning_open = "[THINK]";
        format.reasoning_close = "[/THINK]";
    }
    const auto end = prompt.find_last_not_of(" \t\r\n");
    if (!format.reasoning_open.empty() && end != std::string_view::npos) {
        format.starts_in_reasoning = prompt.substr(0, end + 1).ends_with(format.reasoning_open);
    }
    return format;
}

std::vector<TokenId> shown_tokens(const AnswerFormat& format, const Tokenizer& tokenizer) {
    std::vector<TokenId> ids;
    for (const std::string_view marker : format.markers()) {
        const auto id = tokenizer.find(marker);
        if (id && tokenizer.is_control(*id)) ids.push_back(*id);
    }
    return ids;
}

}  // namespace headroom::text
