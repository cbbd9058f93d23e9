#pragma once

// What OpenAI's chat and text completions have in common.

#include "core/server/answers.h"
#include "core/server/call.h"

namespace headroom::server {

inline constexpr int kMostChoices = 16;
inline constexpr int kMostLikeliest = 20;

[[nodiscard]] Json openai_usage(const AnswerUsage& usage);
// "stop", "length", "tool_calls".
[[nodiscard]] std::string_view openai_finish(const AnswerNews& last);

// Server-sent events: "data: {…}\n\n".
[[nodiscard]] std::string event(const Json& value);
inline constexpr std::string_view kPing = ": ping\n\n";
inline constexpr std::string_view kLastEvent = "data: [DONE]\n\n";
[[nodiscard]] HttpResponse event_stream(std::function<bool(ByteSink&)> stream);

// The response where nobody is there to read it.
[[nodiscard]] HttpResponse left_response(Call& call);

// stream and stream_options.include_usage.
struct StreamWish {
    bool stream = false;
    bool usage = false;
};
[[nodiscard]] StreamWish read_stream_wish(Fields& fields);

// A string, an array of strings, an array of token ids, or an array of these, as tokens. Errors: 400.
[[nodiscard]] ApiResult<std::vector<std::vector<text::TokenId>>> read_embedding_inputs(const Json& input, const text::Tokenizer& tokenizer);

}  // namespace headroom::server
