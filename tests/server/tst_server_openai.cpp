// OpenAI's API over a socket: every field, streamed and not streamed the same.

#include <cmath>

#include <QTest>

#include "tests/server/test_server.h"

using namespace headroom::test;

namespace {

std::string content_of(const Reply& reply, std::size_t i = 0) { return reply.json()["choices"][i]["message"]["content"].get<std::string>(); }

// What a stream adds up to, as one answer.
struct Streamed {
    std::string content;
    std::string finish;
    Json logprobs = Json::array();
    Json usage;
    bool role_first = false;
};
Streamed add_up(const std::vector<Json>& chunks, std::size_t index = 0) {
    Streamed out;
    bool first = true;
    for (const Json& chunk : chunks) {
        if (chunk.contains("usage") && !chunk["usage"].is_null()) out.usage = chunk["usage"];
        for (const Json& choice : chunk["choices"]) {
            if (choice["index"] != index) continue;
            const Json& delta = choice["delta"];
            if (first) out.role_first = delta.value("role", "") == "assistant";
            first = false;
            out.content += delta.value("content", "");
            if (!choice["finish_reason"].is_null()) out.finish = choice["finish_reason"].get<std::string>();
            if (choice.contains("logprobs") && !choice["logprobs"].is_null()) {
                for (const Json& token : choice["logprobs"]["content"]) out.logprobs.push_back(token);
            }
        }
    }
    return out;
}

}  // namespace

class TstServerOpenai : public QObject {
    Q_OBJECT

    std::unique_ptr<TestServer> server_;
    [[nodiscard]] int port() const { return server_->port(); }
    [[nodiscard]] Reply chat(const Json& request) const { return post(port(), "/v1/chat/completions", request); }
    [[nodiscard]] Reply complete(const Json& request) const { return post(port(), "/v1/completions", request); }

private slots:
    void initTestCase() { server_ = std::make_unique<TestServer>(); }
    void cleanupTestCase() {
        QVERIFY(server_->settle());
        server_.reset();
    }

    void models() {
        const Reply reply = get(port(), "/v1/models");
        QCOMPARE(reply.status, 200);
        QCOMPARE(reply.headers.at("content-type"), std::string("application/json"));
        std::vector<std::string> names;
        const Json list = reply.json();
        for (const Json& model : list["data"]) {
            QCOMPARE(model["object"], Json("model"));
            names.push_back(model["id"]);
        }
        QCOMPARE(names.front(), std::string("synthetic"));
        QVERIFY(std::ranges::find(names, "other") != names.end());
        QCOMPARE(get(port(), "/v1/models/other").json()["id"], Json("other"));
        QCOMPARE(get(port(), "/v1/models/nothing").status, 404);
        QCOMPARE(get(port(), "/v1/models/nothing").error("code"), std::string("model_not_found"));
    }

    void an_answer_has_every_field() {
        const Reply reply = chat(chat_request("Hello", 12));
        QCOMPARE(reply.status, 200);
        const Json answer = reply.json();
        QVERIFY(answer["id"].get<std::string>().starts_with("chatcmpl-"));
        QCOMPARE(answer["object"], Json("chat.completion"));
        QVERIFY(answer["created"].get<std::int64_t>() > 1'700'000'000);
        QCOMPARE(answer["model"], Json("synthetic"));
        QCOMPARE(answer["choices"].size(), 1u);
        const Json& choice = answer["choices"][0];
        QCOMPARE(choice["index"], Json(0));
        QCOMPARE(choice["message"]["role"], Json("assistant"));
        QVERIFY(choice["message"]["content"].is_string());
        QVERIFY(choice["logprobs"].is_null());
        QVERIFY(choice["finish_reason"] == "length" || choice["finish_reason"] == "stop");
        const Json& usage = answer["usage"];
        QCOMPARE(usage["total_tokens"].get<int>(), usage["prompt_tokens"].get<int>() + usage["completion_tokens"].get<int>());
        QVERIFY(usage["completion_tokens"].get<int>() <= 12);
        QVERIFY(usage["prompt_tokens_details"].contains("cached_tokens"));
    }

    void a_stream_says_the_same_data() {
        QTest::addColumn<QByteArray>("extra");
        for (const char* extra : {R"({})", R"({"temperature": 1, "seed": 7})", R"({"temperature": 1.5, "seed": -3, "top_k": 5, "top_p": 0.9, "min_p": 0.01})",
                                  R"({"repeat_penalty": 1.3, "presence_penalty": 0.5, "frequency_penalty": -0.5})", R"({"logit_bias": {"65": 50, "66": -100}})",
                                  R"({"logprobs": true})", R"({"logprobs": true, "top_logprobs": 3})", R"({"n": 3, "temperature": 1, "seed": 11})",
                                  R"({"stop": "A", "logit_bias": {"65": 5}})", R"({"stop": ["q", "zz"]})", R"({"max_completion_tokens": 3})",
                                  R"({"top_p": 0})"}) {
            QTest::newRow(extra) << QByteArray(extra);
        }
    }
    void a_stream_says_the_same() {
        QFETCH(QByteArray, extra);
        Json request = chat_request("Tell me about it", 24);
        request.update(Json::parse(extra.toStdString()));
        const Reply whole = chat(request);
        QCOMPARE(whole.status, 200);
        request["stream"] = true;
        request["stream_options"] = {{"include_usage", true}};
        const Reply reply = chat(request);
        QCOMPARE(reply.status, 200);
        QCOMPARE(reply.headers.at("content-type"), std::string("text/event-stream"));
        const std::vector<Json> chunks = reply.chunks();
        QVERIFY(chunks.size() >= 3);
        for (std::size_t i = 0; i < chunks.size(); ++i) {
            QCOMPARE(chunks[i]["object"], Json("chat.completion.chunk"));
            QCOMPARE(chunks[i]["id"], chunks[0]["id"]);
            QCOMPARE(chunks[i]["usage"].is_null(), i + 1 < chunks.size());
        }
        QCOMPARE(chunks.back()["choices"], Json::array());
        const Json answer = whole.json();
        for (const Json& choice : answer["choices"]) {
            const Streamed streamed = add_up(chunks, choice["index"]);
            QVERIFY(streamed.role_first);
            QCOMPARE(streamed.content, choice["message"]["content"].get<std::string>());
            QCOMPARE(Json(streamed.finish), choice["finish_reason"]);
            QCOMPARE(streamed.logprobs, choice["logprobs"].is_null() ? Json::array() : choice["logprobs"]["content"]);
            QCOMPARE(streamed.usage["completion_tokens"], answer["usage"]["completion_tokens"]);
        }
    }

    void usage_comes_only_when_asked_for() {
        Json request = chat_request("Hi", 4);
        request["stream"] = true;
        for (const Json& chunk : chat(request).chunks()) {
            QVERIFY(!chunk.contains("usage"));
            QVERIFY(!chunk["choices"].empty());
        }
    }

    void a_seed_gives_the_same_words() {
        Json request = chat_request("Roll the dice", 30);
        request["temperature"] = 2;
        request["top_k"] = 0;
        request["seed"] = 1234;
        const std::string first = content_of(chat(request));
        QCOMPARE(content_of(chat(request)), first);
        request["seed"] = 1235;
        QVERIFY(content_of(chat(request)) != first);
        request["n"] = 2;
        request["seed"] = 1234;
        const Reply two = chat(request);
        QCOMPARE(content_of(two, 0), first);
        QVERIFY(content_of(two, 1) != first);
    }

    void a_bias_decides() {
        Json request = chat_request("What letter?", 5);
        request["logit_bias"] = {{"90", 100}};  // 'Z'
        const Reply reply = chat(request);
        QCOMPARE(content_of(reply), std::string("ZZZZZ"));
        QCOMPARE(reply.json()["choices"][0]["finish_reason"], Json("length"));
        QCOMPARE(reply.json()["usage"]["completion_tokens"], Json(5));
        // A stop sequence ends the answer before itself.
        request["logit_bias"] = {{"90", 100}};
        request["stop"] = Json::array({"ZZZ"});
        const Reply stopped = chat(request);
        QCOMPARE(content_of(stopped), std::string());
        QCOMPARE(stopped.json()["choices"][0]["finish_reason"], Json("stop"));
        QCOMPARE(stopped.json()["usage"]["completion_tokens"], Json(3));
    }

    void logprobs_are_probabilities() {
        Json request = chat_request("How sure are you?", 6);
        request["logprobs"] = true;
        request["top_logprobs"] = 20;
        const Json content = chat(request).json()["choices"][0]["logprobs"]["content"];
        QVERIFY(!content.empty());
        for (const Json& token : content) {
            QCOMPARE(token["top_logprobs"].size(), 20u);
            QCOMPARE(token["top_logprobs"][0]["logprob"], token["logprob"]);  // greedy: the likeliest
            double sum = 0, last = 0;
            for (const Json& likely : token["top_logprobs"]) {
                const double logprob = likely["logprob"];
                QVERIFY(logprob <= last);
                last = logprob;
                sum += std::exp(logprob);
            }
            QVERIFY(sum > 0 && sum <= 1.0001);
            QVERIFY(token["bytes"].is_array());
        }
    }

    void content_may_be_parts() {
        Json request = chat_request("", 8);
        request["messages"][0]["content"] = Json::array({{{"type", "text"}, {"text", "one"}}, {{"type", "text"}, {"text", "two"}}});
        const Reply parts = chat(request);
        request["messages"][0]["content"] = "one\ntwo";
        QCOMPARE(parts.json()["usage"], chat(request).json()["usage"].is_null() ? Json() : parts.json()["usage"]);
        QCOMPARE(content_of(parts), content_of(chat(request)));
    }

    void tool_messages_and_null_content() {
        Json request = chat_request("Weather?", 4);
        request["messages"].push_back({{"role", "assistant"}, {"content", nullptr},
                                       {"tool_calls", Json::array({{{"id", "1"}, {"type", "function"}, {"function", {{"name", "w"}, {"arguments", "{\"a\":1}"}}}}})}});
        request["messages"].push_back({{"role", "tool"}, {"tool_call_id", "1"}, {"content", "rain"}});
        QCOMPARE(chat(request).status, 200);
    }

    void an_assistant_message_is_continued() {
        Json request = chat_request("Count", 6);
        const Json before = chat(request).json();
        request["messages"].push_back({{"role", "assistant"}, {"content", "1, 2, 3"}});
        const Json after = chat(request).json();
        QCOMPARE(after["usage"]["prompt_tokens"].get<int>(), before["usage"]["prompt_tokens"].get<int>() + 7);  // a token a byte
    }

    // Held to a schema the answer goes on with what the message has begun, and together they are valid.
    void an_assistant_message_is_continued_by_the_schema() {
        Json request = chat_request("Which city?", 60);
        const Json schema = Json::parse(R"({"type": "object", "properties": {"city": {"enum": ["Paris", "Rome"]}}, "required": ["city"], "additionalProperties": false})");
        request["response_format"] = {{"type", "json_schema"}, {"json_schema", {{"schema", schema}}}};
        const auto goes_on = [&](const std::string& begun) {
            request["messages"] = Json::array({{{"role", "user"}, {"content", "Which city?"}}, {{"role", "assistant"}, {"content", begun}}});
            request["stream"] = false;
            const Reply reply = chat(request);
            if (reply.status != 200) return reply.error("message");
            const std::string content = reply.json()["choices"][0]["message"]["content"];
            request["stream"] = true;
            std::string streamed;
            for (const Json& chunk : chat(request).chunks()) streamed += chunk["choices"][0]["delta"].value("content", "");
            return streamed == content ? begun + content : "streamed " + streamed + ", not " + content;
        };
        QCOMPARE(Json::parse(goes_on("{\"city\": \"P"), nullptr, false), (Json{{"city", "Paris"}}));
        QCOMPARE(Json::parse(goes_on("{\"ci"), nullptr, false).size(), 1u);
        QCOMPARE(goes_on("{\"city\": \"Rome\"}"), std::string("{\"city\": \"Rome\"}"));  // nothing is left to say
        for (const char* wrong : {"Sure: ", "{\"city\": \"B", "{\"city\": \"Rome\"}}"}) {
            request["messages"] = Json::array({{{"role", "user"}, {"content", "Which city?"}}, {{"role", "assistant"}, {"content", wrong}}});
            request["stream"] = false;
            const Reply refused = chat(request);
            QCOMPARE(refused.status, 400);
            QCOMPARE(refused.error("param"), std::string("messages"));
            QVERIFY(refused.error("message").find("response_format") != std::string::npos);
        }
    }

    // A call that the message has begun is a call.
    void an_assistant_message_may_begin_a_call() {
        Json request = chat_request("Add", 400);
        request["parallel_tool_calls"] = false;
        request["tools"] = Json::parse(R"([{"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {"a": {"enum": [1, 2]}},
                                            "required": ["a"], "additionalProperties": false}}}])");
        request["tool_choice"] = "required";
        request["messages"].push_back({{"role", "assistant"}, {"content", "<tool_call>\n{\"name\": \"add\", \"argum"}});
        const Json choice = chat(request).json()["choices"][0];
        QCOMPARE(choice["finish_reason"], Json("tool_calls"));
        QCOMPARE(choice["message"]["content"], Json());
        QCOMPARE(choice["message"]["tool_calls"].size(), 1u);
        const Json arguments = Json::parse(choice["message"]["tool_calls"][0]["function"]["arguments"].get<std::string>());
        QVERIFY(arguments["a"] == Json(1) || arguments["a"] == Json(2));
        request["messages"].back()["content"] = "I shall add";
        const Reply refused = chat(request);
        QCOMPARE(refused.status, 400);
        QVERIFY(refused.error("message").find("tool_choice") != std::string::npos);
    }

    void system_and_developer_are_one() {
        Json request = chat_request("Hi", 6);
        request["messages"].insert(request["messages"].begin(), Json{{"role", "system"}, {"content", "Be brief"}});
        const std::string system = content_of(chat(request));
        request["messages"][0]["role"] = "developer";
        QCOMPARE(content_of(chat(request)), system);
    }

    void a_prefix_is_not_read_twice() {
        Json request = chat_request(std::string(300, 'x') + "?", 3);
        (void)chat(request);
        const Json usage = chat(request).json()["usage"];
        QCOMPARE(usage["prompt_tokens_details"]["cached_tokens"].get<int>(), usage["prompt_tokens"].get<int>() - 1);
    }

    void null_fields_are_missing_fields() {
        Json request = chat_request("Hi", 4);
        for (const char* field : {"top_p", "n", "stop", "seed", "logit_bias", "tools", "tool_choice", "response_format", "stream", "stream_options", "logprobs"})
            request[field] = nullptr;
        QCOMPARE(chat(request).status, 200);
    }

    void completions() {
        Json request{{"model", "synthetic"}, {"prompt", "Once"}, {"max_tokens", 10}, {"temperature", 0}, {"logprobs", 2}};
        const Json answer = complete(request).json();
        QCOMPARE(answer["object"], Json("text_completion"));
        const Json choice = answer["choices"][0];
        QVERIFY(choice["text"].is_string());
        QCOMPARE(choice["logprobs"]["tokens"].size(), choice["logprobs"]["token_logprobs"].size());
        QCOMPARE(choice["logprobs"]["text_offset"][0], Json(0));
        QVERIFY(choice["logprobs"]["top_logprobs"][0].size() <= 2);
        QCOMPARE(answer["usage"]["prompt_tokens"], Json(4));

        request["stream"] = true;
        request["stream_options"] = {{"include_usage", true}};
        std::string text, finish;
        Json tokens = Json::array();
        const auto chunks = complete(request).chunks();
        for (const Json& chunk : chunks) {
            for (const Json& one : chunk["choices"]) {
                text += one["text"].get<std::string>();
                if (!one["finish_reason"].is_null()) finish = one["finish_reason"].get<std::string>();
                if (!one["logprobs"].is_null()) tokens.insert(tokens.end(), one["logprobs"]["tokens"].begin(), one["logprobs"]["tokens"].end());
            }
        }
        QCOMPARE(Json(text), choice["text"]);
        QCOMPARE(Json(finish), choice["finish_reason"]);
        QCOMPARE(tokens, choice["logprobs"]["tokens"]);
        QCOMPARE(chunks.back()["usage"], answer["usage"].is_null() ? Json() : chunks.back()["usage"]);

        Json ids{{"prompt", Json::array({79, 110, 99, 101})}, {"max_tokens", 10}, {"temperature", 0}};  // "Once" in bytes; no model: the first one
        QCOMPARE(complete(ids).json()["choices"][0]["text"], choice["text"]);
        ids["echo"] = true;
        QCOMPARE(complete(ids).json()["choices"][0]["text"].get<std::string>(), "Once" + choice["text"].get<std::string>());
        QCOMPARE(complete({{"prompt", Json::array({"Once"})}, {"max_tokens", 0}}).json()["choices"][0]["text"], Json(""));
    }

    void embeddings() {
        const auto embed = [&](const Json& request) { return post(port(), "/v1/embeddings", request); };
        const Json two = embed({{"model", "synthetic"}, {"input", Json::array({"first", "second one"})}}).json();
        QCOMPARE(two["data"].size(), 2u);
        QCOMPARE(two["usage"]["prompt_tokens"], Json(15));
        for (std::size_t i = 0; i < 2; ++i) {
            QCOMPARE(two["data"][i]["index"], Json(i));
            double squares = 0;
            for (const Json& x : two["data"][i]["embedding"]) squares += x.get<double>() * x.get<double>();
            QVERIFY(std::abs(squares - 1) < 1e-4);
        }
        const Json one = embed({{"input", "second one"}}).json();
        QCOMPARE(one["data"][0]["embedding"], two["data"][1]["embedding"]);
        const Json ids = embed({{"input", Json::array({115, 101, 99, 111, 110, 100, 32, 111, 110, 101})}}).json();
        QCOMPARE(ids["data"][0]["embedding"], one["data"][0]["embedding"]);
        const Json last = embed({{"input", "second one"}, {"pooling", "last"}}).json();
        QVERIFY(last["data"][0]["embedding"] != one["data"][0]["embedding"]);
        QCOMPARE(embed({{"input", "e"}, {"pooling", "last"}}).json()["data"], embed({{"input", "e"}, {"pooling", "mean"}}).json()["data"]);
        const Json coded = embed({{"input", "second one"}, {"encoding_format", "base64"}}).json();
        const QByteArray bytes = QByteArray::fromBase64(QByteArray::fromStdString(coded["data"][0]["embedding"]));
        const Json& numbers = one["data"][0]["embedding"];
        QCOMPARE(static_cast<std::size_t>(bytes.size()), numbers.size() * sizeof(float));
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            float x = 0;
            std::memcpy(&x, bytes.data() + i * sizeof(float), sizeof x);
            QCOMPARE(x, numbers[i].get<float>());
        }
    }

    void a_model_is_loaded_by_its_name() {
        Json request = chat_request("Hi", 5);
        const std::string synthetic = content_of(chat(request));
        request["model"] = "other";
        const Reply other = chat(request);
        QCOMPARE(other.status, 200);
        QCOMPARE(other.json()["model"], Json("other"));
        QCOMPARE(get(port(), "/v1/status").json()["model"]["name"], Json("other"));
        request["model"] = "synthetic";
        QCOMPARE(content_of(chat(request)), synthetic);
    }

    void pings_while_nothing_comes() {
        TestServer impatient([](auto& options) { options.ping = std::chrono::milliseconds(1); });
        Json request = chat_request(std::string(1500, 'a'), 200);
        request["stream"] = true;
        const Reply reply = post(impatient.port(), "/v1/chat/completions", request);
        QVERIFY(!reply.chunks().empty());
        QVERIFY2(reply.body.find(": ping\n\n") != std::string::npos, "no ping");
    }
};

QTEST_GUILESS_MAIN(TstServerOpenai)
#include "tst_server_openai.moc"
