#include "core/server/router.h"

#include <array>

namespace headroom::server {
namespace {

constexpr std::array kRoutes{
    Route{"GET", "/v1/models", openai_models},
    Route{"GET", "/v1/models/", openai_models},
    Route{"POST", "/v1/chat/completions", openai_chat},
    Route{"POST", "/v1/completions", openai_completions},
    Route{"POST", "/v1/embeddings", openai_embeddings},
    Route{"GET", "/v1/status", read_status},
    Route{"GET", "/v1/vram", read_vram},
    Route{"POST", "/v1/vram", change_vram},
    Route{"POST", "/v1/load", load_model, Dialect::openai, true, false},
    Route{"POST", "/v1/unload", unload_model, Dialect::openai, true, false},
    Route{"GET", "/health", read_health, Dialect::openai, false},
    Route{"GET", "/metrics", read_metrics},
    Route{"GET", "/api/tags", ollama_tags, Dialect::ollama},
    Route{"GET", "/api/ps", ollama_ps, Dialect::ollama},
    Route{"GET", "/api/version", ollama_version, Dialect::ollama},
    Route{"POST", "/api/show", ollama_show, Dialect::ollama},
    Route{"POST", "/api/chat", ollama_chat, Dialect::ollama},
    Route{"POST", "/api/generate", ollama_generate, Dialect::ollama},
    Route{"POST", "/api/embed", ollama_embed, Dialect::ollama},
};

bool fits(const Route& route, std::string_view path) {
    if (!route.path.ends_with('/')) return path == route.path;
    return path.size() > route.path.size() && path.starts_with(route.path);
}

}  // namespace

std::span<const Route> routes() { return kRoutes; }

std::string methods_of(std::string_view path) {
    std::string methods;
    for (const Route& route : kRoutes) {
        if (!fits(route, path)) continue;
        if (!methods.empty()) methods += ", ";
        methods += route.method == "GET" ? "GET, HEAD" : "POST";
    }
    return methods;
}

Dialect dialect_of(std::string_view path) noexcept { return path.starts_with("/api/") ? Dialect::ollama : Dialect::openai; }

ApiResult<const Route*> find_route(std::string_view method, std::string_view path) {
    bool known = false;
    for (const Route& route : kRoutes) {
        if (!fits(route, path)) continue;
        known = true;
        if (route.method == method || (route.method == "GET" && method == "HEAD")) return &route;
    }
    return std::unexpected(http_error(known ? 405 : 404));
}

}  // namespace headroom::server
