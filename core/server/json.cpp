#include "core/server/json.h"

#include <cmath>

#include "core/base/quote.h"

namespace headroom::server {

std::string to_text(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

HttpResponse json_response(const Json& value, int status) { return {.status = status, .body = to_text(value)}; }

ApiResult<Json> parse_object(std::string_view text) {
    const auto broken = [](std::string message) {
        return std::unexpected(ApiError{.message = std::move(message), .code = "invalid_json"});
    };
    if (text.empty()) return broken("The request has no body; a JSON object is expected");
    bool deep = false;
    const auto look = [&](int depth, Json::parse_event_t, Json&) {
        deep = deep || depth > kDeepestJson;
        return !deep;  // what is too deep is left out
    };
    try {
        Json value = Json::parse(text, look);
        if (deep) return broken(fmt::format("The request is nested more than {} levels deep", kDeepestJson));
        if (!value.is_object()) return broken("The request must be a JSON object");
        return value;
    } catch (const Json::exception& error) {
        return broken(fmt::format("The request is not JSON: {}", printable(error.what(), 200)));
    }
}

std::string Fields::param(std::string_view name) const { return at_.empty() ? std::string(name) : fmt::format("{}.{}", at_, name); }

void Fields::fail(std::string_view name, std::string message) {
    if (!error_) error_ = ApiError{.message = std::move(message), .code = "invalid_value", .param = param(name)};
}

const Json* Fields::any(std::string_view name) const {
    const auto found = object_.find(name);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
}

std::optional<double> Fields::number(std::string_view name, double lowest, double highest) {
    const Json* value = any(name);
    if (value == nullptr) return std::nullopt;
    if (!value->is_number()) {
        fail(name, fmt::format("{} must be a number", param(name)));
        return std::nullopt;
    }
    const auto number = value->get<double>();
    if (!(number >= lowest && number <= highest)) {
        fail(name, fmt::format("{} is {}, possible are {} to {}", param(name), number, lowest, highest));
        return std::nullopt;
    }
    return number;
}

std::optional<std::int64_t> Fields::integer(std::string_view name, std::int64_t lowest, std::int64_t highest) {
    const Json* value = any(name);
    if (value == nullptr) return std::nullopt;
    std::optional<std::int64_t> number;
    if (value->is_number_unsigned()) {
        if (value->get<std::uint64_t>() <= INT64_MAX) number = static_cast<std::int64_t>(value->get<std::uint64_t>());
    } else if (value->is_number_integer()) {
        number = value->get<std::int64_t>();
    } else if (value->is_number_float()) {
        const auto real = value->get<double>();
        if (real == std::floor(real) && std::fabs(real) < 1e15) number = static_cast<std::int64_t>(real);  // 128.0
    } else {
        fail(name, fmt::format("{} must be a whole number", param(name)));
        return std::nullopt;
    }
    if (!number || *number < lowest || *number > highest) {
        fail(name, fmt::format("{} is {}, possible are whole numbers from {} to {}", param(name), value->dump(), lowest, highest));
        return std::nullopt;
    }
    return number;
}

std::optional<bool> Fields::boolean(std::string_view name) {
    const Json* value = any(name);
    if (value == nullptr) return std::nullopt;
    if (value->is_boolean()) return value->get<bool>();
    fail(name, fmt::format("{} must be true or false", param(name)));
    return std::nullopt;
}

std::optional<std::string> Fields::string(std::string_view name) {
    const Json* value = any(name);
    if (value == nullptr) return std::nullopt;
    if (value->is_string()) return value->get<std::string>();
    fail(name, fmt::format("{} must be a string", param(name)));
    return std::nullopt;
}

const Json* Fields::object(std::string_view name) {
    const Json* value = any(name);
    if (value == nullptr || value->is_object()) return value;
    fail(name, fmt::format("{} must be an object", param(name)));
    return nullptr;
}

const Json* Fields::array(std::string_view name) {
    const Json* value = any(name);
    if (value == nullptr || value->is_array()) return value;
    fail(name, fmt::format("{} must be an array", param(name)));
    return nullptr;
}

}  // namespace headroom::server
