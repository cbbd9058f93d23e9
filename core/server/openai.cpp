#include "core/server/openai.h"

namespace headroom::server {

Json openai_usage(const AnswerUsage& usage) {
    return {{"prompt_tokens", usage.prompt_tokens},
            {"completion_tokens", usage.completion_tokens},
            {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
            {"prompt_tokens_details", {{"cached_tokens", usage.cached_tokens}}}};
}

std::string_view openai_finish(const AnswerNews& last) {
    if (last.has_calls && last.finish == engine::FinishReason::stop) return "tool_calls";
    return last.finish == engine::FinishReason::length ? "length" : "stop";
}

std::string event(const Json& value) { return "data: " + to_text(value) + "\n\n"; }

HttpResponse event_stream(std::function<bool(ByteSink&)> stream) {
    return {.content_type = "text/event-stream", .headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}}, .stream = std::move(stream)};
}

HttpResponse left_response(Call& call) {
    call.logged->set_status(kClientLeft);
    return error_response({.status = 503, .message = "The request was cancelled", .type = "server_error", .code = "cancelled"}, Dialect::openai);
}

StreamWish read_stream_wish(Fields& fields) {
    StreamWish wish{.stream = fields.boolean("stream").value_or(false)};
    if (const Json* options = fields.object("stream_options")) {
        Fields inner(*options, "stream_options");
        wish.usage = inner.boolean("include_usage").value_or(false);
        if (inner.error()) {
            fields.fail("stream_options", inner.error()->message);
        } else if (!wish.stream) {
            fields.fail("stream_options", "stream_options is only possible with \"stream\": true");
        }
    }
    return wish;
}

}  // namespace headroom::server
