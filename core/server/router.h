#pragma once

// Which handler answers which path.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/server/call.h"

namespace headroom::server {

struct Route {
    std::string_view method;   // "GET" (HEAD too) or "POST"
    std::string_view path;     // a path that ends in '/' stands for all below it
    Handler handler;
    Dialect dialect = Dialect::openai;
    bool needs_key = true;
    bool body = true;          // a POST with a JSON object; false: an empty one will do
};

[[nodiscard]] std::span<const Route> routes();
// The route of a path and method. Errors: 404, 405.
[[nodiscard]] ApiResult<const Route*> find_route(std::string_view method, std::string_view path);
// "GET, HEAD"; empty where there is no such path.
[[nodiscard]] std::string methods_of(std::string_view path);
// Whose clients ask for this path.
[[nodiscard]] Dialect dialect_of(std::string_view path) noexcept;

}  // namespace headroom::server
