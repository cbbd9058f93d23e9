#include "core/server/api_error.h"

#include "core/server/json.h"

namespace headroom::server {

ApiError to_api_error(const Error& error) {
    switch (error.kind) {
        case ErrorKind::invalid_argument: return {.message = error.message, .code = "invalid_value"};
        case ErrorKind::context_full: return {.message = error.message, .code = "context_length_exceeded", .param = "messages"};
        case ErrorKind::unsupported: return {.message = error.message, .code = "unsupported"};
        case ErrorKind::template_failed: return {.message = error.message, .code = "template_failed", .param = "messages"};
        case ErrorKind::not_found: return {.status = 404, .message = error.message, .code = "model_not_found", .param = "model"};
        case ErrorKind::out_of_memory:
            return {.status = 503, .message = error.message, .type = "server_error", .code = "out_of_memory", .retry_after = 10};
        case ErrorKind::cancelled: return {.status = 503, .message = error.message, .type = "server_error", .code = "cancelled"};
        case ErrorKind::invalid_file:
        case ErrorKind::io:
        case ErrorKind::device:
        case ErrorKind::internal: break;
    }
    return {.status = 500, .message = error.message, .type = "server_error", .code = to_string(error.kind)};
}

ApiError load_error(const Error& error) {
    ApiError api = to_api_error(error);
    if (api.status == 400) api = {.status = 500, .message = error.message, .type = "server_error", .code = to_string(error.kind), .param = "model"};
    return api;
}

ApiError http_error(int status) {
    switch (status) {
        case 401:
            return {.status = 401, .message = "An API key is needed: send it as \"Authorization: Bearer KEY\"", .type = "authentication_error",
                    .code = "invalid_api_key"};
        case 404: return {.status = 404, .message = "There is nothing at this address; docs/server.md lists what there is", .code = "not_found"};
        case 405: return {.status = 405, .message = "This method is not possible here", .code = "method_not_allowed"};
        case 413: return {.status = 413, .message = "The request is too large", .code = "request_too_large"};
        case 414: return {.status = 414, .message = "The address is too long", .code = "uri_too_long"};
        case 415:
            return {.status = 415, .message = "The body must be JSON, sent as Content-Type: application/json and not compressed",
                    .code = "unsupported_media_type"};
        case 431: return {.status = 431, .message = "The request has too many headers", .code = "headers_too_large"};
        case 500: return {.status = 500, .message = "The request failed; the server's log says more", .type = "server_error", .code = "internal"};
        case 503: return {.status = 503, .message = "The server cannot answer now", .type = "server_error", .code = "unavailable", .retry_after = 1};
        default: return {.status = status, .message = "The request is not valid HTTP", .code = "bad_request"};
    }
}

std::string error_body(const ApiError& error, Dialect dialect) {
    if (dialect == Dialect::ollama) return to_text({{"error", error.message}});
    const auto or_null = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
    return to_text({{"error", {{"message", error.message}, {"type", error.type}, {"param", or_null(error.param)}, {"code", or_null(error.code)}}}});
}

HttpResponse error_response(const ApiError& error, Dialect dialect) {
    HttpResponse response{.status = error.status, .body = error_body(error, dialect)};
    if (error.retry_after > 0) response.headers.emplace_back("Retry-After", std::to_string(error.retry_after));
    if (error.status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
    return response;
}

}  // namespace headroom::server
