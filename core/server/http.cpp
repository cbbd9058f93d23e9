#include "core/server/http.h"

#include <algorithm>

namespace headroom::server {
namespace {

char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

bool equal_names(std::string_view a, std::string_view b) noexcept {
    return std::ranges::equal(a, b, {}, lower, lower);
}

std::string_view HttpRequest::header(std::string_view name) const noexcept {
    const auto found = std::ranges::find_if(headers, [&](const auto& entry) { return equal_names(entry.first, name); });
    return found == headers.end() ? std::string_view() : std::string_view(found->second);
}

std::size_t HttpRequest::count(std::string_view name) const noexcept {
    return static_cast<std::size_t>(std::ranges::count_if(headers, [&](const auto& entry) { return equal_names(entry.first, name); }));
}

}  // namespace headroom::server
