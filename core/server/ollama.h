#pragma once

// What the handlers of Ollama's API have in common.

#include <chrono>
#include <optional>
#include <string>

#include "core/server/answers.h"
#include "core/server/call.h"
#include "core/server/chat_request.h"

namespace headroom::server {

inline constexpr std::string_view kOllamaVersion = "0.6.0";  // of the API that this follows

// "name:latest" is "name".
[[nodiscard]] std::string ollama_name(std::string name);
// The model of the field "model" (or, as old clients have it, "name"), with keep_alive taken to heart.
[[nodiscard]] ApiResult<engine::ModelInUse> ollama_model(Call& call, Fields& fields);

// keep_alive: seconds as a number, or "5m", "1h30m", "300ms"; negative: for ever.
struct KeepAlive {
    std::optional<std::chrono::milliseconds> time;  // none: for ever
};
[[nodiscard]] std::optional<KeepAlive> read_keep_alive(Fields& fields);

// "options": temperature, num_predict, stop, seed, …
void read_ollama_options(Fields& fields, engine::GenerateRequest& out);
// "format": "json" or a schema.
void read_ollama_format(Fields& fields, text::AnswerRules& rules);

// done_reason, token counts and durations in nanoseconds.
[[nodiscard]] Json ollama_end(const AnswerUsage& usage, engine::FinishReason finish, std::chrono::steady_clock::time_point begin,
                              std::chrono::steady_clock::time_point loaded);

}  // namespace headroom::server
