// GET /health, /v1/status, /metrics; POST /v1/load, /v1/unload. The first three neither wake nor keep a model.

#include "core/server/call.h"

namespace headroom::server {
namespace {

Json record_json(const RequestRecord& record) {
    return {{"number", record.number},
            {"time", iso_time(record.time)},
            {"remote", record.remote},
            {"action", record.action},
            {"model", record.model.empty() ? Json() : Json(record.model)},
            {"stage", record.stage},
            {"status", record.status == 0 ? Json() : Json(record.status)},
            {"prompt_tokens", record.prompt_tokens},
            {"cached_tokens", record.reused_tokens},
            {"completion_tokens", record.completion_tokens},
            {"seconds", record.seconds},
            {"completion_tps", record.completion_tps}};
}

Json model_json(const engine::ModelHostStatus& status) {
    if (status.name.empty()) return nullptr;
    Json json{{"name", status.name}, {"state", status.loading ? "loading" : "loaded"}};
    if (status.loading) json["progress"] = status.progress;
    if (!status.model) return json;
    const engine::ModelInfo& info = status.model->info();
    json["family"] = info.family;
    json["quantization"] = info.quantization;
    json["context"] = info.context;
    json["loaded_at"] = iso_time(*status.loaded_at);
    json["leaves_at"] = status.leaves_at ? Json(iso_time(*status.leaves_at)) : Json();
    json["users"] = status.users;
    Json devices = Json::array();
    for (const engine::DeviceUse& use : info.devices) devices.push_back({{"id", use.id}, {"name", use.name}, {"layers", use.layers}, {"bytes", use.bytes}});
    json["devices"] = std::move(devices);
    json["warnings"] = info.warnings;
    return json;
}

}  // namespace

ApiResult<HttpResponse> read_health(Call&) { return json_response({{"status", "ok"}}); }

ApiResult<HttpResponse> read_status(Call& call) {
    const engine::ModelHostStatus status = call.backend.host.status();
    Json running = Json::array(), recent = Json::array();
    for (const RequestRecord& record : call.backend.log.in_progress()) running.push_back(record_json(record));
    for (const RequestRecord& record : call.backend.log.recent()) recent.push_back(record_json(record));
    const engine::SchedulerFigures& figures = status.figures;
    return json_response({{"version", call.backend.version},
                          {"started", iso_time(call.backend.started)},
                          {"model", model_json(status)},
                          {"scheduler",
                           {{"running", figures.running}, {"queued", figures.queued}, {"kept_conversations", figures.kept}, {"kv_bytes", figures.kv_bytes}}},
                          {"connections", call.backend.connections()},
                          {"in_progress", std::move(running)},
                          {"recent", std::move(recent)}});
}

ApiResult<HttpResponse> read_metrics(Call& call) {
    const engine::ModelHostStatus status = call.backend.host.status();
    const engine::SchedulerFigures& figures = status.figures;
    const RequestTotals totals = call.backend.log.totals();
    std::string out;
    const auto metric = [&](std::string_view name, std::string_view type, std::string_view help, auto value) {
        out += fmt::format("# HELP headroom_{0} {2}\n# TYPE headroom_{0} {1}\nheadroom_{0} {3}\n", name, type, help, value);
    };
    out += "# HELP headroom_requests_total Requests that have ended, by class of their status.\n# TYPE headroom_requests_total counter\n";
    for (int i = 2; i < 6; ++i) out += fmt::format("headroom_requests_total{{status=\"{}xx\"}} {}\n", i, totals.by_class[i]);
    metric("prompt_tokens_total", "counter", "Tokens of the prompts of ended requests.", totals.prompt_tokens);
    metric("completion_tokens_total", "counter", "Tokens answered by ended requests.", totals.completion_tokens);
    metric("requests_running", "gauge", "Answers under way.", figures.running);
    metric("requests_queued", "gauge", "Requests that wait for their turn.", figures.queued);
    metric("requests_waiting_for_model", "gauge", "Requests that wait for a model to be loaded.", status.waiting);
    metric("kv_bytes", "gauge", "Keys and values held, in bytes.", figures.kv_bytes);
    metric("kept_conversations", "gauge", "Ended conversations that are kept for requests that begin alike.", figures.kept);
    metric("model_loaded", "gauge", "Whether a model is loaded.", status.model ? 1 : 0);
    metric("model_loads_total", "counter", "Models loaded since the start.", status.loads);
    metric("connections", "gauge", "Connections open now.", call.backend.connections());
    return HttpResponse{.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = std::move(out)};
}

ApiResult<HttpResponse> load_model(Call& call) {
    {
        auto use = call.use_model();
        if (!use) return std::unexpected(use.error());
    }
    return json_response({{"model", model_json(call.backend.host.status())}});
}

ApiResult<HttpResponse> unload_model(Call& call) {
    Fields fields(call.body);
    const std::string name = fields.string("model").value_or("");
    if (fields.error()) return std::unexpected(*fields.error());
    const auto gone = [&] { return call.gone(); };
    if (auto done = call.backend.host.unload(name, gone); !done) return std::unexpected(to_api_error(done.error()));
    return json_response({{"model", nullptr}});
}

}  // namespace headroom::server
