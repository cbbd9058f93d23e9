#pragma once

// One request to one of the APIs, and what its handler may use.

#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "core/engine/model_host.h"
#include "core/server/api_error.h"
#include "core/server/grammar_cache.h"
#include "core/server/http.h"
#include "core/server/json.h"
#include "core/server/request_log.h"

namespace headroom::server {

// What all handlers share. Lives as long as the server.
struct Backend {
    engine::ModelHost& host;
    RequestLog& log;
    GrammarCache& grammars;
    std::string version;                          // of the program
    std::chrono::system_clock::time_point started;
    std::function<int()> connections;
    const gpu::SearchPath& drivers;               // where those of the machine's devices are looked for
    const std::filesystem::path& data_folder;     // verdicts and wishes; empty: there are none
    std::mutex finding_devices{};
    std::chrono::milliseconds ping{10'000};       // a stream without news for so long gets a sign of life
};

struct Call {
    Backend& backend;
    const HttpRequest& request;
    Json body;                                    // of a POST: an object
    Client& client;
    std::shared_ptr<LoggedRequest> logged;

    // Whether nobody wants the answer any more.
    [[nodiscard]] bool gone() const { return logged->is_cancelled() || client.gone(); }
    // The model of the body's field "model", loaded where it has to be.
    [[nodiscard]] ApiResult<engine::ModelInUse> use_model();
};

using Handler = ApiResult<HttpResponse> (*)(Call& call);

// Status of the log for a client that left before its answer was there. No response can be read by anybody.
inline constexpr int kClientLeft = 499;

// A random name for an answer: "chatcmpl-8f3a…".
[[nodiscard]] std::string new_id(std::string_view prefix);
[[nodiscard]] std::int64_t unix_seconds(std::chrono::system_clock::time_point time);
// "2026-11-30T02:41:00.123Z"
[[nodiscard]] std::string iso_time(std::chrono::system_clock::time_point time);

// The handlers, one file for each API.
ApiResult<HttpResponse> openai_models(Call& call);
ApiResult<HttpResponse> openai_chat(Call& call);
ApiResult<HttpResponse> openai_completions(Call& call);
ApiResult<HttpResponse> openai_embeddings(Call& call);
ApiResult<HttpResponse> ollama_tags(Call& call);
ApiResult<HttpResponse> ollama_show(Call& call);
ApiResult<HttpResponse> ollama_chat(Call& call);
ApiResult<HttpResponse> ollama_generate(Call& call);
ApiResult<HttpResponse> ollama_embed(Call& call);
ApiResult<HttpResponse> ollama_ps(Call& call);
ApiResult<HttpResponse> ollama_version(Call& call);
ApiResult<HttpResponse> read_vram(Call& call);
ApiResult<HttpResponse> change_vram(Call& call);
ApiResult<HttpResponse> read_status(Call& call);
ApiResult<HttpResponse> read_health(Call& call);
ApiResult<HttpResponse> read_metrics(Call& call);
ApiResult<HttpResponse> load_model(Call& call);
ApiResult<HttpResponse> unload_model(Call& call);

}  // namespace headroom::server
