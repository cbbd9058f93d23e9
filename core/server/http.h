#pragma once

// A request and its response, as the APIs see them.

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace headroom::server {

struct HttpRequest {
    std::string method;                // "POST"
    std::string path;                  // decoded, without the query
    std::vector<std::pair<std::string, std::string>> headers;  // in no particular order, as they came
    std::string body;
    std::string remote;                // the client's address

    // The value of a header, its name in any case; empty where it is missing. count(): how often it is there.
    [[nodiscard]] std::string_view header(std::string_view name) const noexcept;
    [[nodiscard]] std::size_t count(std::string_view name) const noexcept;
};

// The client's side of an exchange, while it is answered.
class Client {
public:
    virtual ~Client() = default;
    // Whether it has closed the connection (or the server is stopping): nobody wants the answer any more.
    [[nodiscard]] virtual bool gone() = 0;
};

// The body of a response as it comes.
class ByteSink {
public:
    virtual ~ByteSink() = default;
    // False: the client has gone, or takes nothing for too long.
    virtual bool write(std::string_view bytes) = 0;
};

struct HttpResponse {
    int status = 200;
    std::string content_type = "application/json";
    std::vector<std::pair<std::string, std::string>> headers{};
    std::string body{};
    std::function<bool(ByteSink&)> stream{};  // in place of body: called on the connection's thread, writes all of it; false: it could not,
                                              // and the client is to see that the body has no end
};

// Compares in any case (ASCII).
[[nodiscard]] bool equal_names(std::string_view a, std::string_view b) noexcept;

}  // namespace headroom::server
