#include "core/server/guard.h"

#include <algorithm>
#include <random>

#include "core/base/quote.h"

namespace headroom::server {
namespace {

bool is_digits(std::string_view text) {
    return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

bool is_ipv4(std::string_view text) {
    int parts = 0;
    for (;; ++parts) {
        const auto dot = text.find('.');
        const std::string_view part = text.substr(0, dot);
        if (!is_digits(part) || part.size() > 3) return false;
        if (dot == std::string_view::npos) break;
        text.remove_prefix(dot + 1);
    }
    return parts == 3;
}

// Host without the port: "localhost:8080", "[::1]:8080". Empty where it is none.
std::string_view host_name(std::string_view host) {
    if (host.starts_with('[')) {
        const auto end = host.find(']');
        if (end == std::string_view::npos) return {};
        const std::string_view rest = host.substr(end + 1);
        if (!rest.empty() && (rest[0] != ':' || !is_digits(rest.substr(1)))) return {};
        return host.substr(1, end - 1);
    }
    const auto colon = host.find(':');
    if (colon != std::string_view::npos && !is_digits(host.substr(colon + 1))) return {};
    return host.substr(0, colon);
}

bool is_loopback_name(std::string_view name) {
    if (name.ends_with('.')) name.remove_suffix(1);
    constexpr std::string_view kEnding = ".localhost";
    return equal_names(name, "localhost") || name == "::1" || (is_ipv4(name) && name.starts_with("127.")) ||
           (name.size() > kEnding.size() && equal_names(name.substr(name.size() - kEnding.size()), kEnding));
}

}  // namespace

bool is_loopback(std::string_view host) noexcept { return is_loopback_name(host); }

bool equal_secrets(std::string_view given, std::string_view secret) noexcept {
    std::size_t difference = given.size() ^ secret.size();
    for (std::size_t i = 0; i < given.size(); ++i) {
        const char expected = secret.empty() ? '\0' : secret[i % secret.size()];
        difference |= static_cast<unsigned char>(given[i] ^ expected);
    }
    return difference == 0;
}

std::string make_api_key() {
    constexpr std::string_view letters = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789";
    std::random_device random;
    std::uniform_int_distribution<std::size_t> draw(0, letters.size() - 1);
    std::string key = "hr-";
    for (int i = 0; i < 32; ++i) key += letters[draw(random)];
    return key;
}

bool Guard::host_allowed(std::string_view host) const {
    const std::string_view name = host_name(host);
    if (name.empty()) return false;
    if (is_loopback_name(name) || equal_names(name, options_.host)) return true;
    if (std::ranges::any_of(options_.names, [&](const auto& other) { return equal_names(name, other); })) return true;
    // Other computers reach this one by its addresses too; a name could be an attacker's that leads here.
    return !is_loopback(options_.host) && (is_ipv4(name) || name.find(':') != std::string_view::npos);
}

bool Guard::origin_allowed(std::string_view origin) const {
    return std::ranges::any_of(options_.origins, [&](const auto& allowed) { return allowed == "*" || equal_names(allowed, origin); });
}

std::optional<ApiError> Guard::check_source(const HttpRequest& request) const {
    if (request.count("Host") != 1 || !host_allowed(request.header("Host"))) {
        return ApiError{.status = 403, .message = fmt::format("The host {} is not a name of this server", quote(request.header("Host"))),
                        .type = "permission_error", .code = "host_not_allowed"};
    }
    if (const auto origin = request.header("Origin"); !origin.empty() && !origin_allowed(origin)) {
        return ApiError{.status = 403, .message = fmt::format("Web pages of {} may not use this server; --origin allows them", quote(origin)),
                        .type = "permission_error", .code = "origin_not_allowed"};
    }
    return std::nullopt;
}

std::optional<ApiError> Guard::check_key(const HttpRequest& request) const {
    if (options_.api_key.empty()) return std::nullopt;
    constexpr std::string_view kBearer = "bearer ";
    std::string_view given = request.header("Authorization");
    if (given.size() >= kBearer.size() && equal_names(given.substr(0, kBearer.size()), kBearer)) {
        given.remove_prefix(kBearer.size());
        if (equal_secrets(given, options_.api_key)) return std::nullopt;
    }
    return http_error(401);
}

bool Guard::is_preflight(const HttpRequest& request) {
    return request.method == "OPTIONS" && request.count("Origin") > 0 && request.count("Access-Control-Request-Method") > 0;
}

void Guard::allow_origin(const HttpRequest& request, std::string_view methods, HttpResponse& response) const {
    const auto origin = request.header("Origin");
    if (origin.empty() || !origin_allowed(origin)) return;
    response.headers.emplace_back("Access-Control-Allow-Origin", origin);
    response.headers.emplace_back("Vary", "Origin");
    if (methods.empty()) return;
    response.headers.emplace_back("Access-Control-Allow-Methods", methods);
    const auto wanted = request.header("Access-Control-Request-Headers");
    response.headers.emplace_back("Access-Control-Allow-Headers", wanted.empty() ? "Authorization, Content-Type" : wanted);
    response.headers.emplace_back("Access-Control-Max-Age", "600");
}

}  // namespace headroom::server
