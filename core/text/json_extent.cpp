#include "core/text/json_extent.h"

#include <algorithm>

namespace headroom::text {
namespace {

bool is_space(char c) noexcept { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

}  // namespace

JsonExtent::Found JsonExtent::push(char c) noexcept {
    constexpr int kMostDepth = 200;
    if (in_string_) {
        if (escaped_) {
            escaped_ = false;
        } else if (c == '\\') {
            escaped_ = true;
        } else if (c == '"') {
            in_string_ = false;
        }
        return Found::open;
    }
    if (c == '{' || c == '[') return ++depth_ > kMostDepth ? Found::none : Found::open;
    if (depth_ == 0) return Found::none;
    if (c == '"') in_string_ = true;
    if ((c == '}' || c == ']') && --depth_ == 0) return Found::end;
    return Found::open;
}

std::size_t behind_space(std::string_view json, std::size_t at) noexcept {
    while (at < json.size() && is_space(json[at])) ++at;
    return at;
}

std::size_t behind_value(std::string_view json, std::size_t at) noexcept {
    if (at >= json.size()) return json.size();
    if (json[at] == '{' || json[at] == '[') {
        JsonExtent extent;
        while (at < json.size() && extent.push(json[at]) == JsonExtent::Found::open) ++at;
        return std::min(at + 1, json.size());
    }
    if (json[at] == '"') {
        for (++at; at < json.size() && json[at] != '"'; ++at) {
            if (json[at] == '\\') ++at;
        }
        return std::min(at + 1, json.size());
    }
    while (at < json.size() && !is_space(json[at]) && json[at] != ',' && json[at] != '}' && json[at] != ']') ++at;
    return at;
}

std::optional<std::string_view> written_member(std::string_view object, std::string_view key) {
    std::optional<std::string_view> found;
    std::size_t at = behind_space(object, object.find('{') + 1);
    while (at < object.size() && object[at] != '}') {
        const std::size_t key_end = behind_value(object, at);
        const std::string_view name = object.substr(at, key_end - at);
        at = behind_space(object, behind_space(object, key_end) + 1);  // the colon
        const std::size_t end = behind_value(object, at);
        if (name.size() == key.size() + 2 && name.substr(1, key.size()) == key) found = object.substr(at, end - at);
        at = behind_space(object, end);
        if (at < object.size() && object[at] == ',') at = behind_space(object, at + 1);
    }
    return found;
}

}  // namespace headroom::text
