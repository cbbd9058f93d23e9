#pragma once

// One request to a server, for commands that talk to a running one.

#include <string>

#include "core/base/error.h"

namespace headroom::server {

struct ClientResponse {
    int status = 0;
    std::string body;
};

// url: "http://127.0.0.1:8080". An empty body is a GET, else a POST of JSON. Errors: invalid_argument (the URL), io (nobody answers).
[[nodiscard]] Result<ClientResponse> ask(const std::string& url, const std::string& path, const std::string& api_key, const std::string& body);

}  // namespace headroom::server
