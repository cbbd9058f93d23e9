#pragma once

// Who may talk to the server: its name in the request (DNS rebinding), web pages of other origins, the API key.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/server/api_error.h"
#include "core/server/http.h"

namespace headroom::server {

struct GuardOptions {
    std::string host = "127.0.0.1";           // what is listened on
    std::string api_key{};                    // empty: none is asked for
    std::vector<std::string> origins{};       // web pages that may use the server: "https://chat.example", or "*"
    std::vector<std::string> names{};         // further names of this computer that clients may use
};

// Whether only this computer can reach an address that is listened on.
[[nodiscard]] bool is_loopback(std::string_view host) noexcept;
// Whether the strings are equal, in a time that tells nothing about where they differ.
[[nodiscard]] bool equal_secrets(std::string_view given, std::string_view secret) noexcept;
// A new key: 32 letters and digits from the system's source of randomness.
[[nodiscard]] std::string make_api_key();

class Guard {
public:
    explicit Guard(GuardOptions options) : options_(std::move(options)) {}

    // 403: a host name that is not this computer's, an origin that is not allowed.
    [[nodiscard]] std::optional<ApiError> check_source(const HttpRequest& request) const;
    // 401.
    [[nodiscard]] std::optional<ApiError> check_key(const HttpRequest& request) const;
    [[nodiscard]] static bool is_preflight(const HttpRequest& request);
    // Headers that let a page of an allowed origin read the response; methods: for a preflight, else empty.
    void allow_origin(const HttpRequest& request, std::string_view methods, HttpResponse& response) const;

private:
    [[nodiscard]] bool host_allowed(std::string_view host) const;
    [[nodiscard]] bool origin_allowed(std::string_view origin) const;

    GuardOptions options_;
};

}  // namespace headroom::server
