// Status, health, metrics, VRAM, loading and unloading.

#include <thread>

#include <QTest>

#include "tests/server/test_server.h"

using namespace headroom;
using namespace headroom::test;

class TstServerStatus : public QObject {
    Q_OBJECT

private slots:
    void nothing_is_woken_or_kept() {
        TestServer server([](auto& options) {
            options.models.first_model.reset();
            options.models.idle = std::chrono::milliseconds(50);
        });
        const auto look = [&] {
            QCOMPARE(get(server.port(), "/health").json()["status"], Json("ok"));
            QCOMPARE(get(server.port(), "/v1/status").status, 200);
            QCOMPARE(get(server.port(), "/metrics").status, 200);
            QCOMPARE(get(server.port(), "/v1/vram").status, 200);
            QCOMPARE(get(server.port(), "/api/ps").status, 200);
        };
        look();
        QVERIFY(get(server.port(), "/v1/status").json()["model"].is_null());
        QCOMPARE(post(server.port(), "/v1/chat/completions", chat_request("Hi", 2)).status, 200);
        // While somebody looks all the time the model goes all the same.
        bool loaded = true;
        for (int i = 0; i < 2000 && loaded; ++i) {
            look();
            loaded = !get(server.port(), "/v1/status").json()["model"].is_null();
        }
        QVERIFY(!loaded);
        QCOMPARE(server.server().status().models.loads, 1u);
        QCOMPARE(post(server.port(), "/v1/chat/completions", chat_request("Hi", 2)).status, 200);
        QCOMPARE(server.server().status().models.loads, 2u);
    }

    void status_tells_of_requests() {
        TestServer server;
        QCOMPARE(post(server.port(), "/v1/chat/completions", chat_request("Hi", 3)).status, 200);
        QCOMPARE(post(server.port(), "/v1/chat/completions", Json::object()).status, 400);
        QVERIFY(server.settle());
        const Json status = get(server.port(), "/v1/status").json();
        QCOMPARE(status["version"], Json("test"));
        QCOMPARE(status["model"]["name"], Json("synthetic"));
        QCOMPARE(status["model"]["state"], Json("loaded"));
        QCOMPARE(status["recent"].size(), 2u);
        QCOMPARE(status["recent"][0]["status"], Json(400));
        QCOMPARE(status["recent"][1]["status"], Json(200));
        QCOMPARE(status["recent"][1]["action"], Json("POST /v1/chat/completions"));
        QVERIFY(status["recent"][1]["completion_tokens"].get<int>() > 0);
        QCOMPARE(status["in_progress"].size(), 1u);  // the question itself
        const std::string metrics = get(server.port(), "/metrics").body;
        QVERIFY(metrics.find("headroom_requests_total{status=\"2xx\"} 2\n") != std::string::npos);
        QVERIFY(metrics.find("headroom_requests_total{status=\"4xx\"} 1\n") != std::string::npos);
        QVERIFY(metrics.find("headroom_model_loaded 1\n") != std::string::npos);
        for (int i = 0; i < 120; ++i) (void)get(server.port(), "/health");
        QVERIFY(server.settle());
        QCOMPARE(server.server().status().recent.size(), 100u);
    }

    void a_request_can_be_cancelled_from_outside() {
        TestServer server;
        Json request = chat_request("Go on and on", 1500);
        request["logit_bias"] = {{"65", 100}};
        request["stream"] = true;
        Connection connection(server.port());
        connection.request("POST", "/v1/chat/completions", request.dump(), {{"Content-Type", "application/json"}});
        QVERIFY(connection.await(600));
        const auto running = server.server().status().in_progress;
        QCOMPARE(running.size(), 1u);
        QCOMPARE(running[0].model, std::string("synthetic"));
        QVERIFY(server.server().cancel(running[0].number));
        QVERIFY(server.settle());
        QVERIFY(!server.server().cancel(running[0].number));
        QCOMPARE(server.server().status().recent.front().status, 499);
    }

    void vram_of_a_model_on_the_processor() {
        TestServer server;
        const Json vram = get(server.port(), "/v1/vram").json();
        QCOMPARE(vram["verdict"], Json("off"));
        QVERIFY(vram["reason"].get<std::string>().find("processor") != std::string::npos);
        QCOMPARE(vram["devices"], Json::array());
        const Reply change = post(server.port(), "/v1/vram", {{"reserve_mib", 1000}});
        QCOMPARE(change.status, 409);
        QVERIFY(!change.error("message").empty());
    }

    void load_and_unload() {
        TestServer server;
        QCOMPARE(post(server.port(), "/v1/load", {{"model", "other"}}).json()["model"]["name"], Json("other"));
        QCOMPARE(ask(server.port(), "POST", "/v1/unload").json()["model"], Json());
        QVERIFY(get(server.port(), "/v1/status").json()["model"].is_null());
        QCOMPARE(ask(server.port(), "POST", "/v1/unload").status, 404);
        QCOMPARE(ask(server.port(), "POST", "/v1/load").json()["model"]["name"], Json("synthetic"));
        QCOMPARE(post(server.port(), "/v1/load", {{"model", "broken"}}).status, 500);
        QCOMPARE(post(server.port(), "/v1/load", {{"model", "nothing"}}).status, 404);
    }

    void simultaneous_requests_load_once() {
        TestServer server([](auto& options) { options.models.first_model.reset(); });
        std::vector<std::jthread> clients;
        std::atomic<int> good = 0;
        for (int i = 0; i < 12; ++i) {
            clients.emplace_back([&, i] {
                Json request = chat_request("Hi", 3);
                request["model"] = i % 2 == 0 ? "synthetic" : "other";
                if (post(server.port(), "/v1/chat/completions", request).status == 200) ++good;
            });
        }
        clients.clear();
        QCOMPARE(good.load(), 12);
        QVERIFY(server.settle());
        const auto loads = server.server().status().models.loads;
        QVERIFY2(loads >= 2 && loads <= 12, std::to_string(loads).c_str());
        // All at once for the one that is not loaded: one load.
        const std::string wanted = server.server().status().models.name == "other" ? "synthetic" : "other";
        for (int i = 0; i < 12; ++i) {
            clients.emplace_back([&] {
                Json request = chat_request("Hi", 3);
                request["model"] = wanted;
                (void)post(server.port(), "/v1/chat/completions", request);
            });
        }
        clients.clear();
        QVERIFY(server.settle());
        QCOMPARE(server.server().status().models.loads, loads + 1);
    }

    void stopping_ends_everything() {
        auto server = std::make_unique<TestServer>();
        Json request = chat_request("Go on", 1500);
        request["logit_bias"] = {{"65", 100}};
        request["stream"] = true;
        std::vector<std::unique_ptr<Connection>> clients;
        for (int i = 0; i < 8; ++i) {
            clients.push_back(std::make_unique<Connection>(server->port()));
            clients.back()->request("POST", "/v1/chat/completions", request.dump(), {{"Content-Type", "application/json"}});
        }
        for (const auto& client : clients) QVERIFY(client->await(300));
        server.reset();
        for (const auto& client : clients) QVERIFY(!client->reply().whole);
    }
};

QTEST_GUILESS_MAIN(TstServerStatus)
#include "tst_server_status.moc"
