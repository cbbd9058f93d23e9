#pragma once

// The server without its sockets: from a request to its response.

#include <functional>
#include <optional>

#include "core/server/call.h"
#include "core/server/guard.h"
#include "core/server/server.h"

namespace headroom::server {

// Any thread may call anything.
class Service {
public:
    // connections: how many there are now.
    Service(ServerOptions options, std::function<int()> connections);

    // What can be said before the body is read (it is empty): a refusal, or nothing.
    [[nodiscard]] std::optional<HttpResponse> check(const HttpRequest& request);
    // A request that passed check(). Returns when there is an answer, or it has begun as a stream.
    [[nodiscard]] HttpResponse handle(const HttpRequest& request, Client& client);

    [[nodiscard]] RequestLog& log() noexcept { return log_; }
    [[nodiscard]] engine::ModelHost& models() noexcept { return host_; }
    [[nodiscard]] const engine::ModelHost& models() const noexcept { return host_; }

private:
    const Guard guard_;
    const gpu::SearchPath drivers_;
    const std::filesystem::path data_folder_;
    RequestLog log_;
    GrammarCache grammars_;
    engine::ModelHost host_;
    Backend backend_;
};

}  // namespace headroom::server
