#pragma once

// JSON of requests and responses: read with limits, fields with their types and ranges.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/server/api_error.h"
#include "core/text/chat_template.h"

namespace headroom::server {

using text::Json;

inline constexpr int kDeepestJson = 100;

// One line; bytes that are no UTF-8 as U+FFFD.
[[nodiscard]] std::string to_text(const Json& value);
[[nodiscard]] HttpResponse json_response(const Json& value, int status = 200);
// An object. Errors: 400: no JSON (with the place), no object, nested too deeply.
[[nodiscard]] ApiResult<Json> parse_object(std::string_view text);

// Reads an object's fields. A field that is missing or null is nothing; one of the wrong type or out of range is an error, and the first one is
// kept: look at error() when all fields have been read.
class Fields {
public:
    // at: where the object stands in the request, for the error's param ("messages[2]"); empty: the request itself.
    explicit Fields(const Json& object, std::string at = {}) : object_(object), at_(std::move(at)) {}

    [[nodiscard]] std::optional<double> number(std::string_view name, double lowest, double highest);
    [[nodiscard]] std::optional<std::int64_t> integer(std::string_view name, std::int64_t lowest, std::int64_t highest);
    [[nodiscard]] std::optional<bool> boolean(std::string_view name);
    [[nodiscard]] std::optional<std::string> string(std::string_view name);
    // Null where it is missing.
    [[nodiscard]] const Json* object(std::string_view name);
    [[nodiscard]] const Json* array(std::string_view name);
    [[nodiscard]] const Json* any(std::string_view name) const;

    [[nodiscard]] std::string param(std::string_view name) const;
    void fail(std::string_view name, std::string message);
    [[nodiscard]] const std::optional<ApiError>& error() const noexcept { return error_; }

private:
    const Json& object_;
    std::string at_;
    std::optional<ApiError> error_;
};

}  // namespace headroom::server
