// POST /v1/completions: text that goes on, without a template.

#include <variant>
#include "core/server/chat_request.h"
#include "core/server/openai.h"

namespace headroom::server {
namespace {

constexpr int kMostLegacyLikeliest = 5;

struct OpenAiCompletion {
    std::variant<std::string, std::vector<text::TokenId>> prompt;
    bool echo = false;
    engine::GenerateRequest generate;
    int count = 1;
    StreamWish stream;
};

void read_prompt(Fields& fields, OpenAiCompletion& out) {
    const Json* prompt = fields.any("prompt");
    if (prompt == nullptr) return fields.fail("prompt", "prompt is missing");
    const Json& one = prompt->is_array() && prompt->size() == 1 && prompt->front().is_string() ? prompt->front() : *prompt;
    if (one.is_string()) {
        out.prompt = one.get<std::string>();
        return;
    }
    std::vector<text::TokenId> ids;
    if (one.is_array()) {
        for (const Json& id : one) {
            if (!id.is_number_integer() || id.get<std::int64_t>() < 0 || id.get<std::int64_t>() > INT32_MAX) {
                ids.clear();
                break;
            }
            ids.push_back(static_cast<text::TokenId>(id.get<std::int64_t>()));
        }
    }
    if (ids.empty()) return fields.fail("prompt", "prompt must be one string, or an array of token ids");
    out.prompt = std::move(ids);
}

ApiResult<OpenAiCompletion> read_request(const Json& body) {
    OpenAiCompletion out;
    Fields fields(body);
    read_prompt(fields, out);
    out.generate.sampling = read_sampling(fields);
    out.generate.stops = read_stops(fields, "stop");
    out.generate.max_tokens = static_cast<int>(fields.integer("max_tokens", 0, INT32_MAX).value_or(16));
    out.count = static_cast<int>(fields.integer("n", 1, kMostChoices).value_or(1));
    if (const auto likeliest = fields.integer("logprobs", 0, kMostLegacyLikeliest)) out.generate.likeliest = static_cast<int>(*likeliest);
    out.echo = fields.boolean("echo").value_or(false);
    if (fields.string("suffix").value_or("") != "") fields.fail("suffix", "suffix is not supported");
    if (fields.integer("best_of", 1, kMostChoices).value_or(1) > out.count) fields.fail("best_of", "best_of is not supported beyond n");
    out.stream = read_stream_wish(fields);
    if (fields.error()) return std::unexpected(*fields.error());
    return out;
}

// The old form: four lists side by side.
struct OldLogprobs {
    Json tokens = Json::array(), logprobs = Json::array(), top = Json::array(), offsets = Json::array();
    std::size_t offset = 0;
    void add(const engine::TokenChoice& choice) {
        tokens.push_back(choice.token.bytes);
        logprobs.push_back(choice.token.logprob);
        offsets.push_back(offset);
        offset += choice.token.bytes.size();
        Json likeliest = Json::object();
        for (const auto& token : choice.likeliest) likeliest[token.bytes] = token.logprob;
        top.push_back(std::move(likeliest));
    }
    [[nodiscard]] Json take() {
        Json value{{"tokens", std::move(tokens)}, {"token_logprobs", std::move(logprobs)}, {"top_logprobs", std::move(top)}, {"text_offset", std::move(offsets)}};
        tokens = logprobs = top = offsets = Json::array();
        return value;
    }
};

struct Whole {
    std::string text;
    OldLogprobs logprobs;
    Json finish;
};

}  // namespace

ApiResult<HttpResponse> openai_completions(Call& call) {
    auto read = read_request(call.body);
    if (!read) return std::unexpected(read.error());
    auto use = call.use_model();
    if (!use) return std::unexpected(use.error());
    const text::Tokenizer& tokenizer = use->model().tokenizer();
    std::string echo;
    if (const auto* text = std::get_if<std::string>(&read->prompt)) {
        read->generate.prompt = tokenizer.encode(*text, {.parse_special = true, .add_bos = true});
        if (read->echo) echo = *text;
    } else {
        read->generate.prompt = std::move(std::get<1>(read->prompt));
        if (read->echo) echo = tokenizer.decode(read->generate.prompt, false);
    }
    const bool logprobs = read->generate.likeliest.has_value();
    const std::string model = use->name();
    auto started = Answers::start(call, std::move(*use), std::move(read->generate), read->count, std::nullopt);
    if (!started) return std::unexpected(started.error());
    const std::shared_ptr<Answers> answers = std::move(*started);

    Json head{{"id", new_id("cmpl-")}, {"object", "text_completion"}, {"created", unix_seconds(std::chrono::system_clock::now())}, {"model", model}};
    const auto choice = [](std::size_t index, const std::string& text, Json chosen, Json finish) {
        return Json{{"text", text}, {"index", index}, {"logprobs", std::move(chosen)}, {"finish_reason", std::move(finish)}};
    };
    if (read->stream.stream) {
        return event_stream([answers, &client = call.client, ping = call.backend.ping, head, choice, echo, logprobs, usage = read->stream.usage](ByteSink& sink) {
            const auto chunk = [&](Json one) {
                Json value = head;
                value["choices"] = Json::array({std::move(one)});
                if (usage) value["usage"] = nullptr;
                return sink.write(event(value));
            };
            std::vector<OldLogprobs> chosen(answers->size());
            for (std::size_t i = 0; !echo.empty() && i < answers->size(); ++i) chunk(choice(i, echo, {}, {}));
            const bool done = answers->run(
                client, ping,
                [&](const AnswerNews& news) {
                    if (news.error) return sink.write("data: " + error_body(*news.error, Dialect::openai) + "\n\n");
                    for (const auto& token : news.choices) chosen[news.index].add(token);
                    const bool some = !news.part.content.empty() || !news.choices.empty();
                    if (some && !chunk(choice(news.index, news.part.content, logprobs ? chosen[news.index].take() : Json(), {}))) return false;
                    return !news.ended || chunk(choice(news.index, "", {}, openai_finish(news)));
                },
                [&] { return sink.write(kPing); });
            if (!done) {
                answers->logged().set_status(kClientLeft);
                return false;
            }
            if (usage) {
                Json value = head;
                value["choices"] = Json::array();
                value["usage"] = openai_usage(answers->usage());
                sink.write(event(value));
            }
            return sink.write(kLastEvent);
        });
    }

    std::vector<Whole> wholes(answers->size());
    std::optional<ApiError> error;
    const bool done = answers->run(
        call.client, call.backend.ping,
        [&](const AnswerNews& news) {
            Whole& whole = wholes[news.index];
            whole.text += news.part.content;
            for (const auto& token : news.choices) whole.logprobs.add(token);
            if (news.ended) whole.finish = openai_finish(news);
            if (news.error) error = news.error;
            return !error;
        },
        [] { return true; });
    if (error) return std::unexpected(*error);
    if (!done) return left_response(call);
    head["choices"] = Json::array();
    for (std::size_t i = 0; i < wholes.size(); ++i)
        head["choices"].push_back(choice(i, echo + wholes[i].text, logprobs ? wholes[i].logprobs.take() : Json(), wholes[i].finish));
    head["usage"] = openai_usage(answers->usage());
    return json_response(head);
}

}  // namespace headroom::server
