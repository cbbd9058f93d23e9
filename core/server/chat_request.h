#pragma once

// What a chat request asks, apart from how an API writes it: messages for the template, tools, what the answer must look like.

#include <optional>
#include <string>

#include "core/engine/engine.h"
#include "core/server/api_error.h"
#include "core/server/grammar_cache.h"
#include "core/server/json.h"
#include "core/text/answer_format.h"
#include "core/text/answer_grammar.h"
#include "core/text/answer_parser.h"

namespace headroom::server {

inline constexpr std::size_t kMostMessages = 4096;
inline constexpr std::size_t kMostTools = 256;

struct ChatRequest {
    Json messages = Json::array();          // as templates read them
    std::optional<std::string> prefill{};   // the last message was the assistant's: the answer goes on with it
    Json variables = Json::object();        // further variables of the template
    text::AnswerRules rules{};
};

// OpenAI's "messages" (Ollama's are a subset but for images, and arguments that are objects): content as string, parts or null. Errors: 400.
[[nodiscard]] ApiResult<void> read_messages(const Json& messages, ChatRequest& out);
// OpenAI's "tools": checked and handed on.
[[nodiscard]] ApiResult<Json> read_tools(const Json& tools);

// What is needed to answer.
struct ChatPlan {
    std::vector<text::TokenId> prompt;
    std::shared_ptr<const text::TokenGrammar> grammar{};
    std::string begun{};                    // of an answer by the grammar, what stands at the prompt's end
    std::vector<text::TokenId> shown{};
    std::optional<std::pair<text::AnswerFormat, text::AnswerParserOptions>> parser{};
};
[[nodiscard]] ApiResult<ChatPlan> plan_chat(engine::Model& model, GrammarCache& grammars, const ChatRequest& request);

// OpenAI's sampling fields, with `top_k`, `min_p` and `repeat_penalty` beside them.
[[nodiscard]] engine::SamplingOptions read_sampling(Fields& fields);
// Those that Ollama's options have too, under the same names; each has its own idea of how far they go.
struct SamplingLimits {
    double temperature;
    double penalty;  // presence and frequency, both ways
};
void read_common_sampling(Fields& fields, const SamplingLimits& most, engine::SamplingOptions& sampling);
// A string or an array of them.
[[nodiscard]] std::vector<std::string> read_stops(Fields& fields, std::string_view name);

}  // namespace headroom::server
