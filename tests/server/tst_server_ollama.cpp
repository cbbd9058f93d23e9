// Ollama's API over a socket.

#include <thread>

#include <QTest>

#include "tests/server/test_server.h"

using namespace headroom::test;

class TstServerOllama : public QObject {
    Q_OBJECT

    std::unique_ptr<TestServer> server_;
    [[nodiscard]] int port() const { return server_->port(); }
    [[nodiscard]] static Json chat_body(const char* text) {
        return {{"model", "synthetic"}, {"messages", Json::array({{{"role", "user"}, {"content", text}}})}, {"options", {{"temperature", 0}, {"num_predict", 12}}}};
    }
    [[nodiscard]] bool loaded() const { return !get(port(), "/api/ps").json()["models"].empty(); }

private slots:
    void init() { server_ = std::make_unique<TestServer>(); }
    void cleanup() { server_.reset(); }

    void version() { QVERIFY(get(port(), "/api/version").json()["version"].is_string()); }

    void tags() {
        const Json models = get(port(), "/api/tags").json()["models"];
        std::vector<std::string> names;
        for (const Json& model : models) {
            names.push_back(model["name"]);
            QVERIFY(model["size"].get<std::int64_t>() > 0);
            QVERIFY(model["modified_at"].is_string());
            QCOMPARE(model["details"]["format"], Json("gguf"));
        }
        QVERIFY(std::ranges::find(names, "synthetic") != names.end());
        QVERIFY(std::ranges::find(names, "other") != names.end());
        QVERIFY(std::ranges::find(names, "broken") == names.end());  // it cannot be read
    }

    void show() {
        const Json shown = post(port(), "/api/show", {{"model", "other:latest"}}).json();
        QCOMPARE(shown["details"]["family"], Json("qwen3"));
        QCOMPARE(shown["model_info"]["qwen3.context_length"], Json(2000));
        QVERIFY(shown["template"].get<std::string>().size() > 10);
        QVERIFY(shown["capabilities"].is_array());
        const Reply none = post(port(), "/api/show", {{"model", "nothing"}});
        QCOMPARE(none.status, 404);
        QVERIFY(none.json()["error"].is_string());
    }

    void a_stream_says_the_same() {
        for (const bool generate : {false, true}) {
            Json body = chat_body("Hello");
            const std::string path = generate ? "/api/generate" : "/api/chat";
            if (generate) {
                body.erase("messages");
                body["prompt"] = "Hello";
            }
            const Reply streamed = post(port(), path, body);
            QCOMPARE(streamed.headers.at("content-type"), std::string("application/x-ndjson"));
            const auto lines = streamed.lines();
            QVERIFY(!lines.empty());
            const auto text_of = [&](const Json& line) { return (generate ? line["response"] : line["message"]["content"]).get<std::string>(); };
            std::string text;
            for (std::size_t i = 0; i < lines.size(); ++i) {
                QCOMPARE(lines[i]["model"], Json("synthetic"));
                QVERIFY(lines[i]["created_at"].is_string());
                QCOMPARE(lines[i]["done"], Json(i + 1 == lines.size()));
                text += text_of(lines[i]);
            }
            body["stream"] = false;
            const Json whole = post(port(), path, body).json();
            QCOMPARE(text_of(whole), text);
            QCOMPARE(whole["done_reason"], lines.back()["done_reason"]);
            QCOMPARE(whole["eval_count"], lines.back()["eval_count"]);
            for (const char* field : {"total_duration", "load_duration", "prompt_eval_count", "prompt_eval_duration", "eval_count", "eval_duration"})
                QVERIFY2(whole[field].is_number_integer(), field);
        }
    }

    void options() {
        Json body = chat_body("Hello");
        body["stream"] = false;
        body["options"]["stop"] = Json::array({"Z"});
        const Reply reply = post(port(), "/api/chat", body);
        QCOMPARE(reply.status, 200);
        body["options"]["temperature"] = "hot";
        const Reply wrong = post(port(), "/api/chat", body);
        QCOMPARE(wrong.status, 400);
        QVERIFY(wrong.json()["error"].get<std::string>().find("temperature") != std::string::npos);
        QCOMPARE(post(port(), "/api/chat", {{"messages", Json::array()}}).status, 400);                    // no model
        QCOMPARE(post(port(), "/api/chat", {{"model", "nothing"}, {"messages", Json::array()}}).status, 404);
        Json image = chat_body("Look");
        image["messages"][0]["images"] = Json::array({"aGk="});
        QCOMPARE(post(port(), "/api/chat", image).status, 400);
        QCOMPARE(post(port(), "/api/generate", {{"model", "synthetic"}, {"prompt", "x"}, {"suffix", "y"}}).status, 400);
    }

    void raw_text() {
        Json body{{"model", "synthetic"}, {"prompt", "Once"}, {"raw", true}, {"stream", false}, {"options", {{"temperature", 0}, {"num_predict", 10}}}};
        const Json raw = post(port(), "/api/generate", body).json();
        const Json completion = post(port(), "/v1/completions", {{"prompt", "Once"}, {"max_tokens", 10}, {"temperature", 0}}).json();
        QCOMPARE(raw["response"], completion["choices"][0]["text"]);
        QCOMPARE(raw["prompt_eval_count"], Json(4));
    }

    void tools_that_send_forms_are_understood() {  // curl -d says application/x-www-form-urlencoded
        Json body = chat_body("Hello");
        body["stream"] = false;
        QCOMPARE(ask(port(), "POST", "/api/chat", body.dump(), {{"Content-Type", "application/x-www-form-urlencoded"}}).status, 200);
    }

    void embed() {
        const Json two = post(port(), "/api/embed", {{"model", "synthetic"}, {"input", Json::array({"a", "b"})}}).json();
        QCOMPARE(two["embeddings"].size(), 2u);
        QCOMPARE(two["prompt_eval_count"], Json(2));
        const Json one = post(port(), "/api/embed", {{"model", "synthetic"}, {"input", "b"}}).json();
        QCOMPARE(one["embeddings"][0], two["embeddings"][1]);
        // Longer than the context: cut, unless that is not wanted.
        QCOMPARE(post(port(), "/api/embed", {{"model", "synthetic"}, {"input", std::string(3000, 'x')}}).status, 200);
        QCOMPARE(post(port(), "/api/embed", {{"model", "synthetic"}, {"input", std::string(3000, 'x')}, {"truncate", false}}).status, 400);
    }

    void keep_alive() {
        QVERIFY(loaded());
        const Json empty{{"model", "synthetic"}, {"messages", Json::array()}};
        QCOMPARE(post(port(), "/api/chat", empty).json()["done_reason"], Json("load"));
        Json gone = empty;
        gone["keep_alive"] = 0;
        QCOMPARE(post(port(), "/api/chat", gone).json()["done_reason"], Json("unload"));
        for (int i = 0; i < 2000 && loaded(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
        QVERIFY(!loaded());
        Json again = chat_body("Hi");
        again["keep_alive"] = "90m";
        QCOMPARE(post(port(), "/api/chat", again).status, 200);
        QVERIFY(server_->settle());
        const auto status = server_->server().status().models;
        QVERIFY(status.leaves_at.has_value());
        const auto left = *status.leaves_at - std::chrono::system_clock::now();
        QVERIFY(left > std::chrono::minutes(88) && left < std::chrono::minutes(91));
        again["keep_alive"] = -1;
        QCOMPARE(post(port(), "/api/chat", again).status, 200);
        QVERIFY(server_->settle());
        QVERIFY(!server_->server().status().models.leaves_at.has_value());
        for (const char* wrong : {"soon", "5 parsecs", "", "m"}) {
            again["keep_alive"] = wrong;
            QCOMPARE(post(port(), "/api/chat", again).status, 400);
        }
    }
};

QTEST_GUILESS_MAIN(TstServerOllama)
#include "tst_server_ollama.moc"
