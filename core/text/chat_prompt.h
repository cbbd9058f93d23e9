#pragma once

// From a conversation to the tokens of a prompt, through the model's chat template.

#include <string>
#include <vector>

#include "core/text/chat_template.h"
#include "core/text/tokenizer.h"

namespace headroom::text {

// A mark that is put inside every control token written out in a user's text (behind its first character) before the template is
// rendered, so that it does not become the control token: U+FDD0, a noncharacter that no text may hold. A U+FDD0 that is
// already in the user's text is removed.
inline constexpr std::string_view kPlainMark = "\xEF\xB7\x90";

// Renders `context` (its "messages", "tools", …; bos_token, eos_token are added from the tokenizer where absent) and encodes the
// result. Strings anywhere in messages and tools are plain text: a control token written in them stays text. Tool-call arguments
// given as a JSON string are parsed to an object first. No second BOS where the template has written one.
[[nodiscard]] Result<std::vector<TokenId>> chat_prompt(const ChatTemplate& chat_template, const Tokenizer& tokenizer,
                                                       Json context, std::chrono::local_seconds now);

// Tool-call arguments that are given as a JSON string, as parsed objects: templates expect these. Others stay as they are.
void parse_tool_arguments(Json& context);

// The local time of this computer, for strftime_now.
[[nodiscard]] std::chrono::local_seconds local_now();

}  // namespace headroom::text
