// Keys, host names, origins, addresses.

#include <QTest>

#include "core/server/guard.h"
#include "tests/server/test_server.h"

using namespace headroom;
using namespace headroom::test;

class TstServerSafety : public QObject {
    Q_OBJECT

private slots:
    void another_address_needs_a_key() {
        server::ServerOptions options;
        options.host = "0.0.0.0";
        options.port = 0;
        const auto refused = server::Server::start(options);
        QVERIFY(!refused);
        QVERIFY(refused.error().kind == ErrorKind::invalid_argument);
        QVERIFY(refused.error().message.find("--api-key") != std::string::npos);
        options.no_key = true;
        QVERIFY(server::Server::start(options).has_value());
        options.no_key = false;
        options.api_key = "secret";
        QVERIFY(server::Server::start(options).has_value());
        options.host = "localhost";
        options.api_key.clear();
        QVERIFY(server::Server::start(options).has_value());
        options.host = "203.0.113.7";  // nobody's
        options.api_key = "secret";
        QVERIFY(server::Server::start(options).error().kind == ErrorKind::io);
    }

    void a_port_has_one_server() {
        TestServer first;
        server::ServerOptions options;
        options.port = first.port();
        const auto second = server::Server::start(options);
        QVERIFY(!second);
        QVERIFY(second.error().message.find(std::to_string(first.port())) != std::string::npos);
    }

    void keys() {
        TestServer server([](auto& options) { options.api_key = "hr-secret"; });
        const auto with = [&](const std::string& authorization) {
            return get(server.port(), "/v1/models", {{"Authorization", authorization}}).status;
        };
        const Reply without = get(server.port(), "/v1/models");
        QCOMPARE(without.status, 401);
        QCOMPARE(without.error("type"), std::string("authentication_error"));
        QCOMPARE(without.headers.at("www-authenticate"), std::string("Bearer"));
        QCOMPARE(with("Bearer hr-secret"), 200);
        QCOMPARE(with("bearer hr-secret"), 200);
        for (const char* wrong : {"Bearer hr-secre", "Bearer hr-secrets", "Bearer hr-secrethr-secret", "Bearer ", "Bearer", "Basic hr-secret", "hr-secret"})
            QCOMPARE(with(wrong), 401);
        QCOMPARE(get(server.port(), "/health").status, 200);
        QCOMPARE(get(server.port(), "/metrics").status, 401);
        QCOMPARE(get(server.port(), "/nothing").status, 401);  // who has no key does not learn what there is
        QCOMPARE(get(server.port(), "/api/tags").status, 401);
        QCOMPARE(post(server.port(), "/v1/vram", {{"reserve_mib", 5}}).status, 401);
        QCOMPARE(post(server.port(), "/v1/chat/completions", chat_request("Hi", 1), {{"Authorization", "Bearer hr-secret"}}).status, 200);
    }

    void comparing_secrets() {
        QVERIFY(server::equal_secrets("abc", "abc"));
        for (const char* wrong : {"", "a", "ab", "abd", "abcd", "abcabc", "xbc"}) QVERIFY(!server::equal_secrets(wrong, "abc"));
        QVERIFY(!server::equal_secrets("x", ""));
        QVERIFY(server::make_api_key().size() >= 32);
        QVERIFY(server::make_api_key() != server::make_api_key());
    }

    // A page whose name was made to lead here (DNS rebinding) sends its own name.
    void hosts() {
        TestServer server([](auto& options) { options.names = {"workstation"}; });
        const auto with = [&](const std::string& host) { return get(server.port(), "/v1/models", {{"Host", host}}).status; };
        const std::string port = ":" + std::to_string(server.port());
        for (const char* good : {"localhost", "LOCALHOST", "127.0.0.1", "127.1.2.3", "[::1]", "models.localhost", "workstation"}) {
            QCOMPARE(with(good), 200);
            QCOMPARE(with(good + port), 200);
        }
        for (const char* bad : {"evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "evil.example:80", "192.168.1.5", "notlocalhost", "", "[::1", "localhost:x"})
            QCOMPARE(with(bad), 403);
        Connection two(server.port());
        two.send("GET /v1/models HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n");
        QCOMPARE(two.reply().status, 403);
        QCOMPARE(get(server.port(), "/health", {{"Host", "evil.example"}}).status, 403);
        QCOMPARE(ask(server.port(), "POST", "/api/chat", "{}", {{"Host", "evil.example"}}).status, 403);
    }

    void origins_are_off() {
        TestServer server;
        const Reply page = get(server.port(), "/v1/models", {{"Origin", "https://chat.example"}});
        QCOMPARE(page.status, 403);
        QVERIFY(!page.headers.contains("access-control-allow-origin"));
        // A form that another site sends needs no preflight: it is refused all the same.
        QCOMPARE(ask(server.port(), "POST", "/api/chat", R"({"model": "synthetic"})", {{"Origin", "null"}, {"Content-Type", "text/plain"}}).status, 403);
        QCOMPARE(ask(server.port(), "OPTIONS", "/v1/models", {}, {{"Origin", "https://chat.example"}, {"Access-Control-Request-Method", "GET"}}).status, 403);
    }

    void origins() {
        TestServer server([](auto& options) {
            options.origins = {"https://chat.example", "http://localhost:3000"};
            options.api_key = "k";
        });
        const Headers page{{"Origin", "https://chat.example"}};
        Headers preflight = page;
        preflight.insert(preflight.end(), {{"Access-Control-Request-Method", "POST"}, {"Access-Control-Request-Headers", "authorization, content-type"}});
        const Reply asked = ask(server.port(), "OPTIONS", "/v1/chat/completions", {}, preflight);  // without the key
        QCOMPARE(asked.status, 204);
        QCOMPARE(asked.headers.at("access-control-allow-origin"), std::string("https://chat.example"));
        QCOMPARE(asked.headers.at("access-control-allow-methods"), std::string("POST"));
        QCOMPARE(asked.headers.at("access-control-allow-headers"), std::string("authorization, content-type"));
        QCOMPARE(asked.headers.at("vary"), std::string("Origin"));
        // The page can read errors too.
        const Reply refused = get(server.port(), "/v1/models", page);
        QCOMPARE(refused.status, 401);
        QCOMPARE(refused.headers.at("access-control-allow-origin"), std::string("https://chat.example"));
        Headers with_key = page;
        with_key.emplace_back("Authorization", "Bearer k");
        const Reply answered = get(server.port(), "/v1/models", with_key);
        QCOMPARE(answered.status, 200);
        QCOMPARE(answered.headers.at("access-control-allow-origin"), std::string("https://chat.example"));
        QCOMPARE(get(server.port(), "/v1/models", {{"Origin", "https://evil.example"}, {"Authorization", "Bearer k"}}).status, 403);
        QVERIFY(!get(server.port(), "/v1/models", {{"Authorization", "Bearer k"}}).headers.contains("access-control-allow-origin"));
    }

    // A connection that says nothing, or goes on slowly for ever, is closed.
    void slow_requests() {
        TestServer server([](auto& options) {
            options.limits.header_time = std::chrono::milliseconds(300);
            options.limits.body_time = std::chrono::milliseconds(300);
            options.limits.idle_time = std::chrono::milliseconds(300);
        });
        Connection silent(server.port());
        QVERIFY(silent.await_close(10'000));
        Connection slow(server.port());
        slow.send("GET /health HTTP/1.1\r\nHost: loc");
        QVERIFY(slow.await_close(10'000));
        Connection body(server.port());
        body.send("POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{");
        QCOMPARE(body.reply(10'000).status, 400);
    }

    void too_many_connections() {
        TestServer server([](auto& options) { options.limits.connections = 4; });
        std::vector<std::unique_ptr<Connection>> open;
        for (int i = 0; i < 4; ++i) {
            open.push_back(std::make_unique<Connection>(server.port()));
            open.back()->request("GET", "/health");
            QCOMPARE(open.back()->reply().status, 200);
        }
        Connection fifth(server.port());
        fifth.request("GET", "/health");
        QCOMPARE(fifth.reply(10'000).status, 503);
        open.clear();
        // The threads of those that have gone are free at once, or nearly.
        int status = 503;
        for (int i = 0; i < 1000 && status != 200; ++i) status = get(server.port(), "/health").status;
        QCOMPARE(status, 200);
    }
};

QTEST_GUILESS_MAIN(TstServerSafety)
#include "tst_server_safety.moc"
