#pragma once

// The HTTP of it: listens, reads requests within limits, one thread for each connection, and writes responses. Built on cpp-httplib,
// which is named in http_listener.cpp only.

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/base/error.h"
#include "core/server/http.h"

namespace headroom::server {

struct HttpLimits {
    std::size_t body_bytes = std::size_t{16} << 20;
    std::size_t header_bytes = std::size_t{64} << 10;  // all of a request's, its first line too
    std::size_t headers = 100;
    int connections = 1024;                            // beyond, new ones are closed at once
    std::chrono::milliseconds header_time{10'000};     // from a request's first byte to the end of its headers
    std::chrono::milliseconds body_time{60'000};
    std::chrono::milliseconds idle_time{15'000};       // a connection without a request
    std::chrono::milliseconds write_time{30'000};      // a client that takes nothing
};

struct HttpHandlers {
    // Looks at a request before its body is read (body is empty). A response ends the matter; nothing: it goes on to handle().
    std::function<std::optional<HttpResponse>(const HttpRequest& request)> check;
    std::function<HttpResponse(const HttpRequest& request, Client& client)> handle;
    // The response for what never reaches the other two: a broken first line, a body that is too large.
    std::function<HttpResponse(int status)> refuse;
};

class HttpListener {
public:
    HttpListener(HttpHandlers handlers, const HttpLimits& limits);
    // Stops.
    ~HttpListener();
    HttpListener(const HttpListener&) = delete;
    HttpListener& operator=(const HttpListener&) = delete;

    // Listens; port 0: any free one. Handlers are called on threads of the listener's from now on, many at once. Errors: io (the address is in
    // use, or not this computer's).
    [[nodiscard]] Result<> start(const std::string& host, int port);
    [[nodiscard]] int port() const noexcept;
    [[nodiscard]] int connections() const noexcept;  // now
    // No new connections; those there are are told that their clients have gone. Returns when all threads have ended.
    void stop();

private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace headroom::server
