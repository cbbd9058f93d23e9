// GET /api/tags, /api/ps, /api/version; POST /api/show, /api/embed; and what Ollama's handlers share.

#include "core/server/ollama.h"

#include <charconv>
#include <filesystem>

#include "core/base/quote.h"
#include "core/gguf/file.h"
#include "core/server/openai.h"

namespace headroom::server {
namespace {

using namespace std::chrono_literals;

Json details_of(const engine::ModelInfo& info) {
    return {{"parent_model", ""},
            {"format", "gguf"},
            {"family", info.family},
            {"families", Json::array({info.family})},
            {"parameter_size", info.parameters >= 1'000'000'000 ? fmt::format("{:.1f}B", static_cast<double>(info.parameters) / 1e9)
                                                                 : fmt::format("{:.1f}M", static_cast<double>(info.parameters) / 1e6)},
            {"quantization_level", info.quantization}};
}

// What a file says about its model; nothing where it cannot be read.
std::optional<engine::ModelInfo> look_at(const std::filesystem::path& path) {
    const auto file = gguf::File::open(path);
    if (!file) return std::nullopt;
    return engine::inspect(*file, 0).info;
}

std::string modified(const std::filesystem::path& path) {
    std::error_code code;
    const auto time = std::filesystem::last_write_time(path, code);
    if (code) return iso_time({});
    return iso_time(std::chrono::system_clock::now() +
                    std::chrono::duration_cast<std::chrono::system_clock::duration>(time - std::filesystem::file_time_type::clock::now()));
}

std::string to_go_duration(std::string_view text, std::chrono::milliseconds& out) {
    // A sequence of numbers with units, as Go writes durations.
    double total = 0;
    const bool negative = text.starts_with('-');
    if (negative) text.remove_prefix(1);
    if (text.empty()) return "is empty";
    while (!text.empty()) {
        double number = 0;
        const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
        if (code != std::errc()) return "is no duration";
        text.remove_prefix(static_cast<std::size_t>(end - text.data()));
        const auto unit_end = text.find_first_of("0123456789.");
        const std::string_view unit = text.substr(0, unit_end);
        double factor = 0;
        if (unit == "ms") factor = 1;
        if (unit == "s" || unit.empty()) factor = 1e3;
        if (unit == "m") factor = 60e3;
        if (unit == "h") factor = 3600e3;
        if (factor == 0) return "has an unknown unit";
        total += number * factor;
        text.remove_prefix(unit.size());
    }
    if (!(total < 1e15)) return "is too long";
    out = std::chrono::milliseconds(static_cast<std::int64_t>(negative ? -total : total));
    return {};
}

}  // namespace

std::string ollama_name(std::string name) {
    constexpr std::string_view kTag = ":latest";
    if (name.ends_with(kTag)) name.resize(name.size() - kTag.size());
    return name;
}

std::optional<KeepAlive> read_keep_alive(Fields& fields) {
    const Json* value = fields.any("keep_alive");
    if (value == nullptr) return std::nullopt;
    std::chrono::milliseconds time{};
    if (value->is_number()) {
        const auto seconds = value->get<double>();
        if (std::abs(seconds) > 1e12) fields.fail("keep_alive", "keep_alive is too long");
        time = std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1e3));
    } else if (value->is_string()) {
        const std::string problem = to_go_duration(value->get_ref<const std::string&>(), time);
        if (!problem.empty()) fields.fail("keep_alive", fmt::format("keep_alive {}: {} (expected \"5m\", \"1h\", 300, …)", problem, quote(value->get<std::string>())));
    } else {
        fields.fail("keep_alive", "keep_alive must be seconds or a duration such as \"5m\"");
    }
    return time < 0ms ? KeepAlive{} : KeepAlive{.time = time};
}

ApiResult<engine::ModelInUse> ollama_model(Call& call, Fields& fields) {
    auto name = fields.string("model");
    if (!name) name = fields.string("name");
    const auto keep = read_keep_alive(fields);
    if (!name || name->empty()) fields.fail("model", "model is missing");
    if (fields.error()) return std::unexpected(*fields.error());
    const auto nobody = [&] { return call.gone(); };
    auto use = call.backend.host.acquire(ollama_name(*name), nobody);
    if (!use) return std::unexpected(load_error(use.error()));
    call.logged->set_model(use->name());
    if (keep) use->stay_for(keep->time);
    return std::move(*use);
}

void read_ollama_options(Fields& fields, engine::GenerateRequest& out) {
    const Json* options = fields.object("options");
    if (options == nullptr) return;
    Fields inner(*options, "options");
    engine::SamplingOptions& sampling = out.sampling;
    read_common_sampling(inner, {.temperature = 100, .penalty = 100}, sampling);
    if (const auto window = inner.integer("repeat_last_n", -1, INT32_MAX)) sampling.penalty_window = static_cast<int>(*window);
    if (const auto most = inner.integer("num_predict", -2, INT32_MAX)) out.max_tokens = *most < 0 ? -1 : static_cast<int>(*most);
    out.stops = read_stops(inner, "stop");
    if (inner.error()) fields.fail("options", inner.error()->message);
}

void read_ollama_format(Fields& fields, text::AnswerRules& rules) {
    const Json* format = fields.any("format");
    if (format == nullptr || (format->is_string() && format->get_ref<const std::string&>().empty())) return;
    if (format->is_string() && format->get_ref<const std::string&>() == "json") {
        rules.text = text::AnswerRules::Text::json_object;
    } else if (format->is_object()) {
        rules.text = text::AnswerRules::Text::json_schema;
        rules.schema = *format;
    } else {
        fields.fail("format", "format must be \"json\" or a JSON schema");
    }
}

Json ollama_end(const AnswerUsage& usage, engine::FinishReason finish, std::chrono::steady_clock::time_point begin,
                std::chrono::steady_clock::time_point loaded) {
    const auto nanoseconds = [](std::chrono::steady_clock::duration time) { return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count(); };
    const auto of_seconds = [](double seconds) { return static_cast<std::int64_t>(seconds * 1e9); };
    return {{"done_reason", finish == engine::FinishReason::length ? "length" : "stop"},
            {"total_duration", nanoseconds(std::chrono::steady_clock::now() - begin)},
            {"load_duration", nanoseconds(loaded - begin)},
            {"prompt_eval_count", usage.prompt_tokens},
            {"prompt_eval_duration", of_seconds(usage.prompt_seconds)},
            {"eval_count", usage.completion_tokens},
            {"eval_duration", of_seconds(usage.completion_seconds)}};
}

ApiResult<HttpResponse> ollama_tags(Call& call) {
    Json models = Json::array();
    for (const std::string& name : call.backend.host.names()) {
        const auto path = call.backend.host.find(name);
        if (!path) continue;
        const auto info = look_at(*path);
        if (!info) continue;
        models.push_back({{"name", name}, {"model", name}, {"modified_at", modified(*path)}, {"size", info->file_bytes}, {"digest", ""}, {"details", details_of(*info)}});
    }
    return json_response({{"models", std::move(models)}});
}

ApiResult<HttpResponse> ollama_show(Call& call) {
    Fields fields(call.body);
    auto name = fields.string("model");
    if (!name) name = fields.string("name");
    if (!name || name->empty()) fields.fail("model", "model is missing");
    if (fields.error()) return std::unexpected(*fields.error());
    auto path = to_api(call.backend.host.find(ollama_name(*name)));
    if (!path) return std::unexpected(path.error());
    auto file = to_api(gguf::File::open(*path));
    if (!file) return std::unexpected(file.error());
    const engine::ModelInfo info = engine::inspect(*file, 0).info;
    const auto chat_template = file->get_string("tokenizer.chat_template");
    const bool tools = chat_template && *chat_template && (*chat_template)->find("tools") != std::string_view::npos;
    Json capabilities = Json::array({"completion", "embedding"});
    if (tools) capabilities.push_back("tools");
    return json_response({{"modelfile", ""},
                          {"parameters", ""},
                          {"template", chat_template && *chat_template ? Json(std::string(**chat_template)) : Json("")},
                          {"details", details_of(info)},
                          {"model_info",
                           {{"general.architecture", info.family},
                            {"general.name", info.name},
                            {"general.parameter_count", info.parameters},
                            {info.family + ".context_length", info.trained_context},
                            {info.family + ".block_count", info.layers}}},
                          {"capabilities", std::move(capabilities)},
                          {"modified_at", modified(*path)}});
}

ApiResult<HttpResponse> ollama_ps(Call& call) {
    const engine::ModelHostStatus status = call.backend.host.status();
    Json models = Json::array();
    if (status.model) {
        const engine::ModelInfo& info = status.model->info();
        std::uint64_t vram = 0;
        for (const engine::DeviceUse& use : info.devices) vram += use.bytes;
        // Ollama's clients expect a time here always: one far away stands for never.
        const auto leaves = status.leaves_at.value_or(std::chrono::system_clock::now() + std::chrono::hours(24 * 365 * 100));
        models.push_back({{"name", status.name}, {"model", status.name}, {"size", info.file_bytes}, {"digest", ""}, {"details", details_of(info)},
                          {"expires_at", iso_time(leaves)}, {"size_vram", vram}, {"context_length", info.context}});
    }
    return json_response({{"models", std::move(models)}});
}

ApiResult<HttpResponse> ollama_version(Call&) { return json_response({{"version", kOllamaVersion}}); }

ApiResult<HttpResponse> ollama_embed(Call& call) {
    const auto begin = std::chrono::steady_clock::now();
    Fields fields(call.body);
    const Json* input = fields.any("input");
    const bool truncate = fields.boolean("truncate").value_or(true);
    if (input == nullptr) fields.fail("input", "input is missing");
    auto use = ollama_model(call, fields);
    if (!use) return std::unexpected(use.error());
    const auto loaded = std::chrono::steady_clock::now();
    auto inputs = read_embedding_inputs(*input, use->model().tokenizer());
    if (!inputs) return std::unexpected(inputs.error());
    Json embeddings = Json::array();
    std::size_t tokens = 0;
    for (auto& ids : *inputs) {
        if (call.gone()) return left_response(call);
        if (truncate && ids.size() > static_cast<std::size_t>(use->model().info().context)) ids.resize(static_cast<std::size_t>(use->model().info().context));
        auto vector = to_api(use->model().embed(ids));
        if (!vector) return std::unexpected(vector.error());
        embeddings.push_back(*vector);
        tokens += ids.size();
    }
    const Json end = ollama_end({.prompt_tokens = static_cast<int>(tokens)}, engine::FinishReason::stop, begin, loaded);
    return json_response({{"model", use->name()}, {"embeddings", std::move(embeddings)}, {"total_duration", end["total_duration"]},
                          {"load_duration", end["load_duration"]}, {"prompt_eval_count", tokens}});
}

}  // namespace headroom::server
