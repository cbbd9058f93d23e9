#include "core/server/server.h"

#include <new>
#include <utility>

#include "core/base/log.h"
#include "core/base/quote.h"
#include "core/server/call.h"
#include "core/server/guard.h"
#include "core/server/router.h"

namespace headroom::server {
namespace {

// Ollama's users send JSON with whatever type their tool sends by default; a browser's cross-site requests all have an origin and are refused.
bool is_json(const HttpRequest& request, Dialect dialect) {
    if (request.count("Content-Encoding") > 0 && !equal_names(request.header("Content-Encoding"), "identity")) return false;
    std::string_view type = request.header("Content-Type");
    type = type.substr(0, type.find(';'));
    while (type.ends_with(' ')) type.remove_suffix(1);
    if (equal_names(type, "application/json")) return true;
    return dialect == Dialect::ollama && (type.empty() || equal_names(type, "application/x-www-form-urlencoded") || equal_names(type, "text/plain"));
}

}  // namespace

struct Server::State {
    explicit State(ServerOptions given)
        : options(std::move(given)),
          guard({.host = options.host, .api_key = options.api_key, .origins = options.origins, .names = options.names}),
          host(options.models),
          backend{.host = host, .log = log, .grammars = grammars, .version = options.version, .started = std::chrono::system_clock::now(),
                  .connections = [this] { return listener.connections(); }, .ping = options.ping},
          listener({.check = [this](const HttpRequest& request) { return check(request); },
                    .handle = [this](const HttpRequest& request, Client& client) { return handle(request, client); },
                    .refuse = [](int status) { return error_response(http_error(status), Dialect::openai); }},
                   options.limits) {}

    // What can be said before the body is read.
    std::optional<HttpResponse> check(const HttpRequest& request) {
        const Dialect dialect = dialect_of(request.path);
        const auto refused = [&](const ApiError& error) {
            HttpResponse response = error_response(error, dialect);
            if (error.status == 405) response.headers.emplace_back("Allow", methods_of(request.path));
            guard.allow_origin(request, {}, response);
            // The log tells of refusals too.
            log.begin(request.remote, request.method + " " + request.path)->set_status(error.status);
            return response;
        };
        if (const auto error = guard.check_source(request)) return refused(*error);
        if (Guard::is_preflight(request)) {
            HttpResponse response{.status = 204};
            guard.allow_origin(request, methods_of(request.path), response);
            return response;
        }
        const auto route = find_route(request.method, request.path);
        const bool open = route && !(*route)->needs_key;
        if (!open) {
            if (const auto error = guard.check_key(request)) return refused(*error);
        }
        if (!route) return refused(route.error());
        if ((*route)->method == "POST" && (*route)->body && !is_json(request, dialect)) return refused(http_error(415));
        return std::nullopt;
    }

    HttpResponse handle(const HttpRequest& request, Client& client) {
        const auto logged = log.begin(request.remote, request.method + " " + request.path);
        const auto answer = [&]() -> ApiResult<HttpResponse> {
            const auto route = find_route(request.method, request.path);
            if (!route) return std::unexpected(route.error());
            Call call{.backend = backend, .request = request, .body = Json::object(), .client = client, .logged = logged};
            if ((*route)->method == "POST" && ((*route)->body || !request.body.empty())) {
                auto body = parse_object(request.body);
                if (!body) return std::unexpected(body.error());
                call.body = std::move(*body);
            }
            return (*route)->handler(call);
        };
        ApiResult<HttpResponse> response = [&]() -> ApiResult<HttpResponse> {
            try {
                return answer();
            } catch (const std::bad_alloc&) {
                return std::unexpected(to_api_error({ErrorKind::out_of_memory, "There is not enough memory for the request"}));
            }
        }();
        if (!response) response = error_response(response.error(), dialect_of(request.path));
        if (logged->record().status == 0) logged->set_status(response->status);
        guard.allow_origin(request, {}, *response);
        return std::move(*response);
    }

    const ServerOptions options;
    const Guard guard;
    RequestLog log;
    GrammarCache grammars;
    engine::ModelHost host;
    Backend backend;
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
    auto state = std::make_unique<State>(std::move(options));
    const std::string host = state->options.host == "localhost" ? "127.0.0.1" : state->options.host;
    HR_CHECK(state->listener.start(host, state->options.port));
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
bool Server::cancel(std::uint64_t number) { return state_->log.cancel(number); }
engine::ModelHost& Server::models() noexcept { return state_->host; }

ServerStatus Server::status() const {
    return {.address = state_->address, .connections = state_->listener.connections(), .models = state_->host.status(),
            .in_progress = state_->log.in_progress(), .recent = state_->log.recent(), .totals = state_->log.totals()};
}

}  // namespace headroom::server
