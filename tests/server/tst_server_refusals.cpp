// Malformed requests and their right answers.

#include <QTest>

#include "tests/server/test_server.h"

using namespace headroom::test;

class TstServerRefusals : public QObject {
    Q_OBJECT

    std::unique_ptr<TestServer> server_;

private slots:
    void initTestCase() {
        server_ = std::make_unique<TestServer>([](auto& options) { options.limits.body_bytes = 200'000; });
    }
    void cleanupTestCase() {
        // It still answers after all of them.
        QCOMPARE(post(server_->port(), "/v1/chat/completions", chat_request("Hi", 2)).status, 200);
        QVERIFY(server_->settle());
        server_.reset();
    }

    void fields_data() {
        QTest::addColumn<QString>("path");
        QTest::addColumn<QByteArray>("body");
        QTest::addColumn<int>("status");
        QTest::addColumn<QString>("param");
        const auto row = [](const char* path, const char* body, int status, const char* param) {
            QTest::addRow("%s %s", path, body) << QString(path) << QByteArray(body) << status << QString(param);
        };
        const auto chat = [&](const char* body, const char* param) { row("/v1/chat/completions", body, 400, param); };
        // A request with good messages and one bad field.
        const auto field = [&](const std::string& bad, const char* param) {
            chat((R"({"messages": [{"role": "user", "content": "x"}], )" + bad + "}").c_str(), param);
        };
        chat("", "");
        chat("{", "");
        chat("[]", "");
        chat("nonsense", "");
        chat("{\"messages\": \"\xff\"}", "");
        chat("{}", "messages");
        chat(R"({"messages": null})", "messages");
        chat(R"({"messages": []})", "messages");
        chat(R"({"messages": "hi"})", "messages");
        chat(R"({"messages": ["hi"]})", "messages[0]");
        chat(R"({"messages": [{}]})", "messages[0].role");
        chat(R"({"messages": [{"role": "user"}]})", "messages[0].content");
        chat(R"({"messages": [{"role": "user", "content": null}]})", "messages[0].content");
        chat(R"({"messages": [{"role": "user", "content": 5}]})", "messages[0].content");
        chat(R"({"messages": [{"role": "wizard", "content": "x"}]})", "messages[0].role");
        chat(R"({"messages": [{"role": 3, "content": "x"}]})", "messages[0].role");
        chat(R"({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]})", "messages[0].content[0].type");
        chat(R"({"messages": [{"role": "user", "content": [{"text": "x"}]}]})", "messages[0].content[0].type");
        chat(R"({"messages": [{"role": "user", "content": [{"type": "text"}]}]})", "messages[0].content[0].text");
        chat(R"({"messages": [{"role": "user", "content": "x", "tool_calls": [{"function": {"name": "f"}}]}]})", "messages[0].tool_calls");
        chat(R"({"messages": [{"role": "assistant", "tool_calls": [{"type": "magic"}]}]})", "messages[0].tool_calls[0].type");
        chat(R"({"messages": [{"role": "assistant", "content": "x"}]})", "messages");
        field(R"("temperature": 3)", "temperature");
        field(R"("temperature": -0.1)", "temperature");
        field(R"("temperature": "warm")", "temperature");
        field(R"("temperature": 1e999)", "");  // no number of JSON's
        field(R"("top_p": 1.1)", "top_p");
        field(R"("top_k": -1)", "top_k");
        field(R"("min_p": 2)", "min_p");
        field(R"("repeat_penalty": 0)", "repeat_penalty");
        field(R"("presence_penalty": 2.5)", "presence_penalty");
        field(R"("frequency_penalty": -9)", "frequency_penalty");
        field(R"("max_tokens": 0)", "max_tokens");
        field(R"("max_tokens": 1.5)", "max_tokens");
        field(R"("max_completion_tokens": -1)", "max_completion_tokens");
        field(R"("n": 0)", "n");
        field(R"("n": 1000)", "n");
        field(R"("seed": 1.5)", "seed");
        field(R"("stop": 5)", "stop");
        field(R"("stop": [1])", "stop");
        field(R"("stream": "yes")", "stream");
        field(R"("stream_options": {"include_usage": true})", "stream_options");
        field(R"("top_logprobs": 2)", "top_logprobs");
        field(R"("logprobs": true, "top_logprobs": 21)", "top_logprobs");
        field(R"("logit_bias": {"x": 1})", "logit_bias");
        field(R"("logit_bias": {"1": 101})", "logit_bias");
        field(R"("logit_bias": {"999999": 1})", "");
        field(R"("response_format": {"type": "xml"})", "response_format");
        field(R"("response_format": {"type": "json_schema"})", "response_format");
        field(R"("response_format": "json")", "response_format");
        field(R"("tools": [{"type": "magic"}])", "tools");
        field(R"("tools": [{"type": "function"}])", "tools");
        field(R"("tools": {})", "tools");
        field(R"("tool_choice": "required")", "tool_choice");
        field(R"("tool_choice": 5)", "tool_choice");
        field(R"("model": 5)", "model");
        row("/v1/completions", R"({"model": "synthetic"})", 400, "prompt");
        row("/v1/completions", R"({"prompt": ["a", "b"]})", 400, "prompt");
        row("/v1/completions", R"({"prompt": [-1]})", 400, "prompt");
        row("/v1/completions", R"({"prompt": [100000]})", 400, "");
        row("/v1/completions", R"({"prompt": ""})", 400, "");
        row("/v1/completions", R"({"prompt": "x", "logprobs": 6})", 400, "logprobs");
        row("/v1/completions", R"({"prompt": "x", "suffix": "y"})", 400, "suffix");
        row("/v1/embeddings", R"({})", 400, "input");
        row("/v1/embeddings", R"({"input": []})", 400, "input");
        row("/v1/embeddings", R"({"input": ""})", 400, "input");
        row("/v1/embeddings", R"({"input": 3})", 400, "input");
        row("/v1/embeddings", R"({"input": "x", "encoding_format": "gzip"})", 400, "encoding_format");
        row("/v1/embeddings", R"({"input": "x", "dimensions": 3})", 400, "dimensions");
        row("/v1/embeddings", R"({"input": "x", "pooling": "max"})", 400, "pooling");
        row("/v1/chat/completions", R"({"model": "no-such-model", "messages": [{"role": "user", "content": "x"}]})", 404, "model");
        // Names never become paths.
        row("/v1/chat/completions", R"({"model": "../synthetic", "messages": [{"role": "user", "content": "x"}]})", 404, "model");
        row("/v1/chat/completions", R"({"model": "/etc/passwd", "messages": [{"role": "user", "content": "x"}]})", 404, "model");
        row("/v1/chat/completions", R"({"model": "..\\x", "messages": [{"role": "user", "content": "x"}]})", 404, "model");
        row("/v1/chat/completions", "{\"model\": \"a\\u0000b\", \"messages\": [{\"role\": \"user\", \"content\": \"x\"}]}", 404, "model");
        row("/v1/chat/completions", R"({"model": "broken", "messages": [{"role": "user", "content": "x"}]})", 500, "");
        row("/v1/vram", R"({})", 400, "reserve_mib");
        row("/v1/vram", R"({"reserve_mib": -1})", 400, "reserve_mib");
        row("/v1/vram", R"({"reserve_mib": "much"})", 400, "reserve_mib");
        row("/v1/vram", R"({"reserve_mib": 1000})", 409, "reserve_mib");
        row("/v1/unload", R"({"model": "other"})", 404, "model");
    }
    void fields() {
        QFETCH(QString, path);
        QFETCH(QByteArray, body);
        QFETCH(int, status);
        QFETCH(QString, param);
        const Reply reply = ask(server_->port(), "POST", path.toStdString(), body.toStdString(), {{"Content-Type", "application/json"}});
        QVERIFY2(reply.status == status, reply.body.c_str());
        QCOMPARE(reply.headers.at("content-type"), std::string("application/json"));
        const Json error = reply.json()["error"];
        QVERIFY(error["message"].is_string() && !error["message"].get<std::string>().empty());
        QVERIFY(error["type"].is_string());
        QVERIFY(error.contains("code"));
        if (!param.isEmpty()) QCOMPARE(reply.error("param"), param.toStdString());
        if (status < 500) QVERIFY(reply.error("type") != "server_error");
    }

    void deep_json() {
        std::string body = R"({"messages": )";
        for (int i = 0; i < 20'000; ++i) body += "[";
        for (int i = 0; i < 20'000; ++i) body += "]";
        const Reply reply = ask(server_->port(), "POST", "/v1/chat/completions", body + "}", {{"Content-Type", "application/json"}});
        QCOMPARE(reply.status, 400);
        QCOMPARE(reply.error("code"), std::string("invalid_json"));
    }

    void too_many_messages() {
        Json request = chat_request("x", 1);
        for (int i = 0; i < 4096; ++i) request["messages"].push_back({{"role", "user"}, {"content", ""}});
        const Reply reply = post(server_->port(), "/v1/chat/completions", request);
        QCOMPARE(reply.status, 400);
        QVERIFY(reply.error("message").find("4097") != std::string::npos);
    }

    void a_prompt_longer_than_the_context() {
        const Reply reply = post(server_->port(), "/v1/chat/completions", chat_request(std::string(3000, 'x'), 5));
        QCOMPARE(reply.status, 400);
        QCOMPARE(reply.error("code"), std::string("context_length_exceeded"));
        QVERIFY2(reply.error("message").find("2000") != std::string::npos && reply.error("message").find("30") != std::string::npos, reply.body.c_str());
        const Reply embedding = post(server_->port(), "/v1/embeddings", {{"input", std::string(3000, 'x')}});
        QCOMPARE(embedding.error("code"), std::string("context_length_exceeded"));
    }

    void http_data() {
        QTest::addColumn<QByteArray>("request");
        QTest::addColumn<int>("status");
        const std::string host = "Host: localhost\r\n";
        const auto row = [](const char* name, const std::string& request, int status) { QTest::newRow(name) << QByteArray::fromStdString(request) << status; };
        row("no such path", "GET /nothing HTTP/1.1\r\n" + host + "\r\n", 404);
        row("a path outside", "GET /v1/models/../../etc/passwd HTTP/1.1\r\n" + host + "\r\n", 404);
        row("a coded path outside", "GET /v1/models/%2e%2e%2fetc HTTP/1.1\r\n" + host + "\r\n", 404);
        row("another method", "DELETE /v1/models HTTP/1.1\r\n" + host + "\r\n", 405);
        row("GET of a POST", "GET /v1/chat/completions HTTP/1.1\r\n" + host + "\r\n", 405);
        row("POST of a GET", "POST /v1/models HTTP/1.1\r\n" + host + "Content-Length: 2\r\n\r\n{}", 405);
        row("PUT with a body", "PUT /v1/vram HTTP/1.1\r\n" + host + "Content-Length: 2\r\n\r\n{}", 405);
        row("an unknown method", "BREW /v1/models HTTP/1.1\r\n" + host + "\r\n", 400);
        row("no HTTP", "hello\r\n\r\n", 400);
        row("HTTP 3", "GET /health HTTP/3.0\r\n" + host + "\r\n", 400);
        row("no host", "GET /health HTTP/1.1\r\n\r\n", 403);
        row("no type", "POST /v1/chat/completions HTTP/1.1\r\n" + host + "Content-Length: 2\r\n\r\n{}", 415);
        row("another type", "POST /v1/chat/completions HTTP/1.1\r\n" + host + "Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}", 415);
        row("multipart", "POST /v1/chat/completions HTTP/1.1\r\n" + host + "Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 2\r\n\r\n{}", 415);
        row("compressed", "POST /v1/chat/completions HTTP/1.1\r\n" + host + "Content-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}", 415);
        row("no length", "POST /v1/chat/completions HTTP/1.1\r\n" + host + "Content-Type: application/json\r\n\r\n", 400);
        row("a length that is none", "POST /v1/chat/completions HTTP/1.1\r\n" + host + "Content-Type: application/json\r\nContent-Length: -5\r\n\r\n", 400);
        row("a length beyond numbers", "POST /v1/chat/completions HTTP/1.1\r\n" + host + "Content-Type: application/json\r\nContent-Length: 99999999999999999999999\r\n\r\n", 400);
        row("two lengths", "POST /v1/chat/completions HTTP/1.1\r\n" + host + "Content-Type: application/json\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 400);
        row("length and chunks", "POST /v1/chat/completions HTTP/1.1\r\n" + host + "Content-Type: application/json\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}", 400);
        row("an unknown transfer", "POST /v1/chat/completions HTTP/1.1\r\n" + host + "Content-Type: application/json\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 400);
        row("a body said to be large", "POST /v1/chat/completions HTTP/1.1\r\n" + host + "Content-Type: application/json\r\nContent-Length: 300000\r\n\r\n", 413);
        row("one to wait for", "POST /v1/chat/completions HTTP/1.1\r\n" + host + "Content-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: 300000\r\n\r\n", 413);
        std::string chunks;
        for (int i = 0; i < 30; ++i) chunks += "2710\r\n" + std::string(10'000, 'x') + "\r\n";
        row("large in chunks", "POST /v1/chat/completions HTTP/1.1\r\n" + host + "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + "0\r\n\r\n", 413);
        row("a long address", "GET /" + std::string(9000, 'a') + " HTTP/1.1\r\n" + host + "\r\n", 414);
        row("a long header", "GET /health HTTP/1.1\r\n" + host + "X: " + std::string(9000, 'a') + "\r\n\r\n", 400);
        std::string many;
        for (int i = 0; i < 150; ++i) many += "X-" + std::to_string(i) + ": y\r\n";
        row("many headers", "GET /health HTTP/1.1\r\n" + host + many + "\r\n", 431);
    }
    void http() {
        QFETCH(QByteArray, request);
        QFETCH(int, status);
        Connection connection(server_->port());
        connection.send(request.toStdString());
        const Reply reply = connection.reply(20'000);
        QCOMPARE(reply.status, status);
        QVERIFY2(!reply.error("message").empty(), reply.body.c_str());
        if (status == 405) QVERIFY(reply.headers.contains("allow"));
    }

    // A header without end is not read for ever, and takes no memory.
    void headers_without_end() {
        Connection connection(server_->port());
        connection.send("GET /health HTTP/1.1\r\nHost: localhost\r\n");
        std::string line = "X: " + std::string(1000, 'y') + "\r\n";
        for (int i = 0; i < 200 && connection.open(); ++i) connection.send(line);
        const Reply reply = connection.reply(20'000);
        QVERIFY(reply.status == 400 || reply.status == -1);  // -1: it was closed while we were still sending
        QCOMPARE(get(server_->port(), "/health").status, 200);
    }

    void chunks_and_keep_alive_work() {
        Connection connection(server_->port());
        const std::string body = chat_request("Hi", 2).dump();
        char size[16];
        std::snprintf(size, sizeof size, "%zx", body.size());
        for (int i = 0; i < 3; ++i) {
            connection.send("POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" +
                            std::string(size) + "\r\n" + body + "\r\n0\r\n\r\n");
            QCOMPARE(connection.reply().status, 200);
        }
        connection.request("GET", "/health");
        QCOMPARE(connection.reply().status, 200);
        connection.request("HEAD", "/health");
        QCOMPARE(connection.reply(60'000, true).status, 200);
    }
};

QTEST_GUILESS_MAIN(TstServerRefusals)
#include "tst_server_refusals.moc"
