#pragma once

// Errors as the APIs tell them: a status and a body.

#include <expected>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "core/server/http.h"

namespace headroom::server {

struct ApiError {
    int status = 400;
    std::string message;
    std::string type = "invalid_request_error";  // OpenAI's: "authentication_error", "rate_limit_error", "server_error", …
    std::string code{};                          // "model_not_found"; empty: null
    std::string param{};                         // the field: "messages[2].content"; empty: null
    int retry_after = 0;                         // seconds; 0: not told
};

template <class T>
using ApiResult = std::expected<T, ApiError>;

template <class... Args>
[[nodiscard]] std::unexpected<ApiError> refuse(std::string param, fmt::format_string<Args...> text, Args&&... args) {
    return std::unexpected(ApiError{.message = fmt::format(text, std::forward<Args>(args)...), .code = "invalid_value", .param = std::move(param)});
}

// What the engine could not do.
[[nodiscard]] ApiError to_api_error(const Error& error);
// Why a model cannot be had: that its file is damaged or of an unknown kind is not the request's fault.
[[nodiscard]] ApiError load_error(const Error& error);
template <class T>
[[nodiscard]] ApiResult<T> to_api(Result<T> result) {
    if (!result) return std::unexpected(to_api_error(result.error()));
    if constexpr (std::is_void_v<T>) {
        return {};
    } else {
        return std::move(*result);
    }
}

// What HTTP itself has to say: 403, 404, 405, 413, …
[[nodiscard]] ApiError http_error(int status);

enum class Dialect : std::uint8_t { openai, ollama };
// {"error": {"message", "type", "param", "code"}}, or {"error": "message"} for Ollama's clients.
[[nodiscard]] std::string error_body(const ApiError& error, Dialect dialect);
[[nodiscard]] HttpResponse error_response(const ApiError& error, Dialect dialect);

}  // namespace headroom::server
