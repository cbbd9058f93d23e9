#include "core/server/server.h"

#include <utility>

#include "core/base/log.h"
#include "core/base/quote.h"
#include "core/server/service.h"

namespace headroom::server {

struct Server::State {
    explicit State(ServerOptions options)
        : limits(options.limits),
          service(std::move(options), [this] { return listener.connections(); }),
          listener({.check = [this](const HttpRequest& request) { return service.check(request); },
                    .handle = [this](const HttpRequest& request, Client& client) { return service.handle(request, client); },
                    .refuse = [](int status) { return error_response(http_error(status), Dialect::openai); }},
                   limits) {}

    const HttpLimits limits;
    Service service;
    std::string address;
    HttpListener listener;  // last: its threads use all of the above
};

Server::Server(std::unique_ptr<State> state) : state_(std::move(state)) {}
Server::~Server() { stop(); }

Result<std::unique_ptr<Server>> Server::start(ServerOptions options) try {
    if (!is_loopback(options.host) && options.api_key.empty() && !options.no_key) {
        return fail(ErrorKind::invalid_argument, "Other computers can reach {}: set a key with --api-key, or say with --no-key that none is wanted",
                    quote(options.host));
    }
    if (options.port < 0 || options.port > 65535) return fail(ErrorKind::invalid_argument, "The port is {}, possible are 0 (any) to 65535", options.port);
    const std::string host = options.host == "localhost" ? "127.0.0.1" : options.host;
    const int port = options.port;
    auto state = std::make_unique<State>(std::move(options));
    HR_CHECK(state->listener.start(host, port));
    const bool v6 = host.find(':') != std::string::npos;
    state->address = fmt::format("http://{}{}{}:{}", v6 ? "[" : "", host, v6 ? "]" : "", state->listener.port());
    spdlog::info("Listening on {}", state->address);
    return std::unique_ptr<Server>(new Server(std::move(state)));
} catch (const std::exception& error) {  // memory, threads
    return fail(ErrorKind::out_of_memory, "The server cannot be started: {}", error.what());
}

void Server::stop() { state_->listener.stop(); }
int Server::port() const noexcept { return state_->listener.port(); }
const std::string& Server::address() const noexcept { return state_->address; }
bool Server::cancel(std::uint64_t number) { return state_->service.log().cancel(number); }
engine::ModelHost& Server::models() noexcept { return state_->service.models(); }

ServerStatus Server::status() const {
    return {.address = state_->address, .connections = state_->listener.connections(), .models = state_->service.models().status(),
            .in_progress = state_->service.log().in_progress(), .recent = state_->service.log().recent(), .totals = state_->service.log().totals()};
}

}  // namespace headroom::server
