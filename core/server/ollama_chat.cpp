// POST /api/chat and /api/generate: answers as lines of JSON.

#include <algorithm>
#include <array>

#include "core/base/quote.h"
#include "core/server/ollama.h"
#include "core/server/openai.h"

namespace headroom::server {
namespace {

struct Timing {
    std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
    std::chrono::steady_clock::time_point loaded{};
};

// Ollama's message: content is a string, images are not for models that read text, tool calls have arguments as objects.
ApiResult<void> read_ollama_messages(const Json& messages, ChatRequest& out) {
    Json converted = messages;
    for (std::size_t i = 0; i < converted.size(); ++i) {
        Json& message = converted[i];
        if (!message.is_object()) continue;  // read_messages says so
        if (const auto images = message.find("images"); images != message.end() && !images->empty()) {
            return refuse(fmt::format("messages[{}].images", i), "messages[{}].images: the model reads text only", i);
        }
        if (!message.contains("content")) message["content"] = "";
        if (const auto name = message.find("tool_name"); name != message.end() && name->is_string()) message["name"] = *name;
    }
    return read_messages(converted, out);
}

Json call_json(const text::ToolCall& call) {
    Json arguments = Json::parse(call.arguments, nullptr, false);
    return {{"function", {{"name", call.name}, {"arguments", arguments.is_object() ? std::move(arguments) : Json::object()}}}};
}

// What differs between chat and generate: how a piece of an answer is written.
using Write = Json (*)(const text::AnswerPart& part);

Json chat_piece(const text::AnswerPart& part) {
    Json message{{"role", "assistant"}, {"content", part.content}};
    if (!part.reasoning.empty()) message["thinking"] = part.reasoning;
    if (!part.calls.empty()) {
        message["tool_calls"] = Json::array();
        for (const text::ToolCall& call : part.calls) message["tool_calls"].push_back(call_json(call));
    }
    return {{"message", std::move(message)}};
}

Json generate_piece(const text::AnswerPart& part) {
    Json piece{{"response", part.content}};
    if (!part.reasoning.empty()) piece["thinking"] = part.reasoning;
    return piece;
}

Json line(const std::string& model, Json piece, bool done) {
    Json value{{"model", model}, {"created_at", iso_time(std::chrono::system_clock::now())}};
    value.update(piece);
    value["done"] = done;
    return value;
}

ApiResult<HttpResponse> answer(Call& call, const std::shared_ptr<Answers>& answers, const std::string& model, bool stream, const Timing& timing, Write write) {
    if (stream) {
        const auto produce = [answers, &client = call.client, ping = call.backend.ping, model, timing, write](ByteSink& sink) {
            const bool done = answers->run(
                client, ping,
                [&](const AnswerNews& news) {
                    if (news.error) return sink.write(error_body(*news.error, Dialect::ollama) + "\n");
                    const bool some = !news.part.content.empty() || !news.part.reasoning.empty() || !news.part.calls.empty();
                    if (some && !sink.write(to_text(line(model, write(news.part), false)) + "\n")) return false;
                    if (!news.ended) return true;
                    Json last = line(model, write({}), true);
                    last.update(ollama_end(answers->usage(), news.finish, timing.begin, timing.loaded));
                    return sink.write(to_text(last) + "\n");
                },
                [] { return true; });  // lines have no form that means nothing
            if (!done) answers->logged().set_status(kClientLeft);
            return done;
        };
        return HttpResponse{.content_type = "application/x-ndjson", .stream = produce};
    }
    text::AnswerPart whole;
    engine::FinishReason finish = engine::FinishReason::stop;
    std::optional<ApiError> error;
    const bool done = answers->run(
        call.client, call.backend.ping,
        [&](const AnswerNews& news) {
            whole.reasoning += news.part.reasoning;
            whole.content += news.part.content;
            whole.calls.insert(whole.calls.end(), news.part.calls.begin(), news.part.calls.end());
            if (news.ended) finish = news.finish;
            error = news.error;
            return !error;
        },
        [] { return true; });
    if (error) return std::unexpected(*error);
    if (!done) return left_response(call);
    Json last = line(model, write(whole), true);
    last.update(ollama_end(answers->usage(), finish, timing.begin, timing.loaded));
    return json_response(last);
}

// Neither messages nor a prompt: the model is loaded, or (keep_alive 0) unloaded, and that is all.
HttpResponse loaded_response(const std::string& model, Write write, bool unloads) {
    Json value = line(model, write({}), true);
    value["done_reason"] = unloads ? "unload" : "load";
    return json_response(value);
}

bool unloads(Fields& fields) {
    const auto keep = read_keep_alive(fields);
    return keep && keep->time && keep->time->count() == 0;
}

}  // namespace

ApiResult<HttpResponse> ollama_chat(Call& call) {
    Timing timing;
    Fields fields(call.body);
    ChatRequest chat;
    engine::GenerateRequest generate;
    const Json* messages = fields.array("messages");
    const bool stream = fields.boolean("stream").value_or(true);
    read_ollama_options(fields, generate);
    read_ollama_format(fields, chat.rules);
    if (const Json* tools = fields.array("tools")) {
        auto read = read_tools(*tools);
        if (!read) return std::unexpected(read.error());
        chat.rules.tools = std::move(*read);
        if (!chat.rules.tools.empty()) chat.rules.choice = text::AnswerRules::Choice::automatic;
    }
    if (const Json* think = fields.any("think"); think != nullptr && think->is_boolean()) chat.variables["enable_thinking"] = *think;
    const bool only_load = messages == nullptr || messages->empty();
    if (!only_load) {
        if (auto read = read_ollama_messages(*messages, chat); !read) return std::unexpected(read.error());
    }
    auto use = ollama_model(call, fields);
    if (!use) return std::unexpected(use.error());
    timing.loaded = std::chrono::steady_clock::now();
    const std::string model = use->name();
    if (only_load) return loaded_response(model, chat_piece, unloads(fields));
    auto plan = plan_chat(use->model(), call.backend.grammars, chat);
    if (!plan) return std::unexpected(plan.error());
    generate.prompt = std::move(plan->prompt);
    generate.grammar = std::move(plan->grammar);
    generate.begun = std::move(plan->begun);
    generate.shown = std::move(plan->shown);
    auto started = Answers::start(call, std::move(*use), std::move(generate), 1, plan->parser);
    if (!started) return std::unexpected(started.error());
    return answer(call, *started, model, stream, timing, chat_piece);
}

ApiResult<HttpResponse> ollama_generate(Call& call) {
    Timing timing;
    Fields fields(call.body);
    ChatRequest chat;
    engine::GenerateRequest generate;
    const std::string prompt = fields.string("prompt").value_or("");
    const std::string system = fields.string("system").value_or("");
    const bool raw = fields.boolean("raw").value_or(false);
    const bool stream = fields.boolean("stream").value_or(true);
    read_ollama_options(fields, generate);
    read_ollama_format(fields, chat.rules);
    if (const Json* images = fields.array("images"); images != nullptr && !images->empty()) fields.fail("images", "images: the model reads text only");
    if (fields.string("suffix").value_or("") != "") fields.fail("suffix", "suffix is not supported");
    if (const Json* think = fields.any("think"); think != nullptr && think->is_boolean()) chat.variables["enable_thinking"] = *think;
    auto use = ollama_model(call, fields);
    if (!use) return std::unexpected(use.error());
    timing.loaded = std::chrono::steady_clock::now();
    const std::string model = use->name();
    if (prompt.empty()) return loaded_response(model, generate_piece, unloads(fields));
    std::optional<std::pair<text::AnswerFormat, text::AnswerParserOptions>> parser;
    if (raw || !use->model().info().has_chat_template) {
        if (chat.rules.text != text::AnswerRules::Text::free) return refuse("format", "format is not possible with \"raw\"");
        generate.prompt = use->model().tokenizer().encode(prompt, {.parse_special = true, .add_bos = true});
    } else {
        if (!system.empty()) chat.messages.push_back({{"role", "system"}, {"content", system}});
        chat.messages.push_back({{"role", "user"}, {"content", prompt}});
        auto plan = plan_chat(use->model(), call.backend.grammars, chat);
        if (!plan) return std::unexpected(plan.error());
        generate.prompt = std::move(plan->prompt);
        generate.grammar = std::move(plan->grammar);
        generate.begun = std::move(plan->begun);
        generate.shown = std::move(plan->shown);
        parser = std::move(plan->parser);
    }
    auto started = Answers::start(call, std::move(*use), std::move(generate), 1, parser);
    if (!started) return std::unexpected(started.error());
    return answer(call, *started, model, stream, timing, generate_piece);
}

}  // namespace headroom::server
