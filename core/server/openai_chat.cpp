// POST /v1/chat/completions.

#include "core/base/quote.h"
#include "core/server/chat_request.h"
#include "core/server/openai.h"

namespace headroom::server {
namespace {

struct OpenAiChat {
    ChatRequest chat;
    engine::GenerateRequest generate;
    int count = 1;
    StreamWish stream;
};

void read_format(Fields& fields, text::AnswerRules& rules) {
    const Json* format = fields.object("response_format");
    if (format == nullptr) return;
    Fields inner(*format, "response_format");
    const std::string type = inner.string("type").value_or("");
    if (type == "json_object") {
        rules.text = text::AnswerRules::Text::json_object;
    } else if (type == "json_schema") {
        rules.text = text::AnswerRules::Text::json_schema;
        const Json* wrapper = inner.object("json_schema");
        const Json* schema = wrapper != nullptr ? Fields(*wrapper).any("schema") : nullptr;
        if (schema == nullptr || !(schema->is_object() || schema->is_boolean())) {
            fields.fail("response_format", "response_format.json_schema.schema is missing");
        } else {
            rules.schema = *schema;
        }
    } else if (type != "text") {
        fields.fail("response_format", fmt::format("response_format.type is {}, possible are text, json_object and json_schema", quote(type)));
    }
}

void read_tool_fields(Fields& fields, text::AnswerRules& rules) {
    using Choice = text::AnswerRules::Choice;
    if (const Json* tools = fields.array("tools")) {
        auto read = read_tools(*tools);
        if (!read) {
            fields.fail("tools", read.error().message);
        } else {
            rules.tools = std::move(*read);
        }
    }
    rules.parallel = fields.boolean("parallel_tool_calls").value_or(true);
    const bool any = !rules.tools.empty();
    rules.choice = any ? Choice::automatic : Choice::none;
    const Json* choice = fields.any("tool_choice");
    if (choice == nullptr) return;
    const auto unknown = [&] {
        fields.fail("tool_choice", "tool_choice must be \"none\", \"auto\", \"required\" or {\"type\": \"function\", \"function\": {\"name\": …}}");
    };
    if (choice->is_string()) {
        const auto& word = choice->get_ref<const std::string&>();
        if (word == "none") {
            rules.choice = Choice::none;
        } else if (word == "required") {
            rules.choice = Choice::required;
        } else if (word != "auto") {
            return unknown();
        }
    } else if (choice->is_object()) {
        const auto function = choice->find("function");
        if (function == choice->end() || !function->is_object()) return unknown();
        const auto name = function->find("name");
        if (name == function->end() || !name->is_string()) return unknown();
        rules.choice = Choice::named;
        rules.name = name->get<std::string>();
    } else {
        return unknown();
    }
    if (!any && rules.choice != Choice::none) fields.fail("tool_choice", "tool_choice needs tools");
}

ApiResult<OpenAiChat> read_request(const Json& body) {
    OpenAiChat out;
    Fields fields(body);
    const Json* messages = fields.array("messages");
    out.generate.sampling = read_sampling(fields);
    out.generate.stops = read_stops(fields, "stop");
    const auto most = fields.integer("max_completion_tokens", 1, INT32_MAX);
    const auto old_most = fields.integer("max_tokens", 1, INT32_MAX);
    if (most || old_most) out.generate.max_tokens = static_cast<int>(most.value_or(old_most.value_or(0)));
    out.count = static_cast<int>(fields.integer("n", 1, kMostChoices).value_or(1));
    const bool logprobs = fields.boolean("logprobs").value_or(false);
    const auto likeliest = fields.integer("top_logprobs", 0, kMostLikeliest);
    if (likeliest && !logprobs) fields.fail("top_logprobs", "top_logprobs needs \"logprobs\": true");
    if (logprobs) out.generate.likeliest = static_cast<int>(likeliest.value_or(0));
    out.stream = read_stream_wish(fields);
    read_format(fields, out.chat.rules);
    read_tool_fields(fields, out.chat.rules);
    if (const Json* variables = fields.object("chat_template_kwargs")) out.chat.variables = *variables;
    if (fields.error()) return std::unexpected(*fields.error());
    if (messages == nullptr) return refuse("messages", "messages is missing");
    if (auto read = read_messages(*messages, out.chat); !read) return std::unexpected(read.error());
    return out;
}

Json bytes_of(const std::string& text) {
    Json bytes = Json::array();
    for (const char c : text) bytes.push_back(static_cast<int>(static_cast<unsigned char>(c)));
    return bytes;
}

Json logprobs_of(const std::vector<engine::TokenChoice>& choices) {
    Json content = Json::array();
    for (const engine::TokenChoice& choice : choices) {
        const auto one = [](const engine::TokenProbability& token) {
            return Json{{"token", token.bytes}, {"logprob", token.logprob}, {"bytes", bytes_of(token.bytes)}};
        };
        Json entry = one(choice.token);
        entry["top_logprobs"] = Json::array();
        for (const auto& token : choice.likeliest) entry["top_logprobs"].push_back(one(token));
        content.push_back(std::move(entry));
    }
    return content;
}

Json call_of(const text::ToolCall& call) {
    return {{"id", call.id}, {"type", "function"}, {"function", {{"name", call.name}, {"arguments", call.arguments}}}};
}

// One answer put together.
struct Whole {
    std::string reasoning, content;
    Json calls = Json::array();
    Json logprobs = Json::array();
    Json finish;

    void add(const AnswerNews& news) {
        reasoning += news.part.reasoning;
        content += news.part.content;
        for (const text::ToolCall& call : news.part.calls) calls.push_back(call_of(call));
        for (Json& entry : logprobs_of(news.choices)) logprobs.push_back(std::move(entry));
        if (news.ended) finish = openai_finish(news);
    }
    [[nodiscard]] Json choice(std::size_t index, bool with_logprobs) const {
        Json message{{"role", "assistant"}, {"content", content.empty() && !calls.empty() ? Json() : Json(content)}, {"refusal", nullptr}};
        if (!reasoning.empty()) message["reasoning_content"] = reasoning;
        if (!calls.empty()) message["tool_calls"] = calls;
        return {{"index", index},
                {"message", std::move(message)},
                {"logprobs", with_logprobs ? Json{{"content", logprobs}, {"refusal", nullptr}} : Json()},
                {"finish_reason", finish}};
    }
};

// The chunks of a stream.
class Chunks {
public:
    Chunks(std::string model, bool usage, bool logprobs) : usage_(usage), logprobs_(logprobs) {
        head_ = {{"id", new_id("chatcmpl-")}, {"object", "chat.completion.chunk"}, {"created", unix_seconds(std::chrono::system_clock::now())},
                 {"model", std::move(model)}};
    }
    [[nodiscard]] std::string first(std::size_t index) const { return chunk(index, {{"role", "assistant"}, {"content", ""}}, {}, {}); }
    // Everything that is new of an answer.
    [[nodiscard]] std::string news(const AnswerNews& news, int& calls) const {
        std::string out;
        const Json logprobs = news.choices.empty() ? Json() : Json{{"content", logprobs_of(news.choices)}, {"refusal", nullptr}};
        if (!news.part.reasoning.empty()) out += chunk(news.index, {{"reasoning_content", news.part.reasoning}}, {}, {});
        if (!news.part.content.empty() || !news.choices.empty()) out += chunk(news.index, {{"content", news.part.content}}, {}, logprobs);
        for (const text::ToolCall& call : news.part.calls) {
            Json entry = call_of(call);
            entry["index"] = calls++;
            out += chunk(news.index, {{"tool_calls", Json::array({std::move(entry)})}}, {}, {});
        }
        if (news.ended && !news.error) out += chunk(news.index, Json::object(), openai_finish(news), {});
        return out;
    }
    [[nodiscard]] std::string last(const AnswerUsage& usage) const {
        if (!usage_) return std::string(kLastEvent);
        Json value = head_;
        value["choices"] = Json::array();
        value["usage"] = openai_usage(usage);
        return event(value) + std::string(kLastEvent);
    }

private:
    [[nodiscard]] std::string chunk(std::size_t index, Json delta, std::string_view finish, Json logprobs) const {
        Json value = head_;
        Json choice{{"index", index}, {"delta", std::move(delta)}};
        if (logprobs_) choice["logprobs"] = std::move(logprobs);
        choice["finish_reason"] = finish.empty() ? Json() : Json(finish);
        value["choices"] = Json::array({std::move(choice)});
        if (usage_) value["usage"] = nullptr;
        return event(value);
    }
    Json head_;
    bool usage_;
    bool logprobs_;
};

}  // namespace

ApiResult<HttpResponse> openai_chat(Call& call) {
    auto read = read_request(call.body);
    if (!read) return std::unexpected(read.error());
    auto use = call.use_model();
    if (!use) return std::unexpected(use.error());
    auto plan = plan_chat(use->model(), call.backend.grammars, read->chat);
    if (!plan) return std::unexpected(plan.error());
    read->generate.prompt = std::move(plan->prompt);
    read->generate.grammar = std::move(plan->grammar);
    read->generate.begun = std::move(plan->begun);
    read->generate.shown = std::move(plan->shown);
    const bool logprobs = read->generate.likeliest.has_value();
    const std::string model = use->name();
    auto started = Answers::start(call, std::move(*use), std::move(read->generate), read->count, plan->parser);
    if (!started) return std::unexpected(started.error());
    const std::shared_ptr<Answers> answers = std::move(*started);

    if (read->stream.stream) {
        return event_stream([answers, &client = call.client, ping = call.backend.ping, chunks = Chunks(model, read->stream.usage, logprobs)](ByteSink& sink) {
            for (std::size_t i = 0; i < answers->size(); ++i) sink.write(chunks.first(i));
            std::vector<int> calls(answers->size());
            const bool done = answers->run(
                client, ping,
                [&](const AnswerNews& news) {
                    if (!sink.write(chunks.news(news, calls[news.index]))) return false;
                    return !news.error || sink.write("data: " + error_body(*news.error, Dialect::openai) + "\n\n");
                },
                [&] { return sink.write(kPing); });
            if (done && sink.write(chunks.last(answers->usage()))) return true;
            answers->logged().set_status(kClientLeft);
            return false;
        });
    }

    std::vector<Whole> wholes(answers->size());
    std::optional<ApiError> error;
    const bool done = answers->run(
        call.client, call.backend.ping,
        [&](const AnswerNews& news) {
            wholes[news.index].add(news);
            if (news.error) error = news.error;
            return !error;
        },
        [] { return true; });
    if (error) return std::unexpected(*error);
    if (!done) return left_response(call);
    Json choices = Json::array();
    for (std::size_t i = 0; i < wholes.size(); ++i) choices.push_back(wholes[i].choice(i, logprobs));
    return json_response({{"id", new_id("chatcmpl-")},
                          {"object", "chat.completion"},
                          {"created", unix_seconds(std::chrono::system_clock::now())},
                          {"model", model},
                          {"choices", std::move(choices)},
                          {"usage", openai_usage(answers->usage())}});
}

}  // namespace headroom::server
