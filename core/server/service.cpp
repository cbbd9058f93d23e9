#include "core/server/service.h"

#include <new>
#include <utility>

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

Service::Service(ServerOptions options, std::function<int()> connections)
    : guard_({.host = options.host, .api_key = options.api_key, .origins = options.origins, .names = options.names}),
      drivers_(options.models.load.drivers),
      data_folder_(options.models.load.data_folder),
      host_(std::move(options.models)),
      backend_{.host = host_, .log = log_, .grammars = grammars_, .version = options.version, .started = std::chrono::system_clock::now(),
               .connections = std::move(connections), .drivers = drivers_, .data_folder = data_folder_, .ping = options.ping} {}

std::optional<HttpResponse> Service::check(const HttpRequest& request) {
    const Dialect dialect = dialect_of(request.path);
    const auto refused = [&](const ApiError& error) {
        HttpResponse response = error_response(error, dialect);
        if (error.status == 405) response.headers.emplace_back("Allow", methods_of(request.path));
        guard_.allow_origin(request, {}, response);
        // The log tells of refusals too.
        log_.begin(request.remote, request.method + " " + request.path)->set_status(error.status);
        return response;
    };
    if (const auto error = guard_.check_source(request)) return refused(*error);
    if (Guard::is_preflight(request)) {
        HttpResponse response{.status = 204};
        guard_.allow_origin(request, methods_of(request.path), response);
        return response;
    }
    const auto route = find_route(request.method, request.path);
    const bool open = route && !(*route)->needs_key;
    if (!open) {
        if (const auto error = guard_.check_key(request)) return refused(*error);
    }
    if (!route) return refused(route.error());
    if ((*route)->method == "POST" && (*route)->body && !is_json(request, dialect)) return refused(http_error(415));
    return std::nullopt;
}

HttpResponse Service::handle(const HttpRequest& request, Client& client) {
    const auto logged = log_.begin(request.remote, request.method + " " + request.path);
    const auto answer = [&]() -> ApiResult<HttpResponse> {
        const auto route = find_route(request.method, request.path);
        if (!route) return std::unexpected(route.error());
        Call call{.backend = backend_, .request = request, .body = Json::object(), .client = client, .logged = logged};
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
    guard_.allow_origin(request, {}, *response);
    return std::move(*response);
}

}  // namespace headroom::server
