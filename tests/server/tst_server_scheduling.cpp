// Many clients at once: the same answers as alone, fairness, full queues, clients that leave.

#include <atomic>
#include <mutex>
#include <thread>

#include <QTest>

#include "tests/server/test_server.h"

using namespace headroom;
using namespace headroom::test;

namespace {

Json endless(const std::string& text, int tokens) {
    Json request = chat_request(text, tokens);
    request["logit_bias"] = {{"65", 100}};  // always the same letter: it does not end by itself
    return request;
}

Json streamed(Json request) {
    request["stream"] = true;
    return request;
}

}  // namespace

class TstServerScheduling : public QObject {
    Q_OBJECT

private:
    // request(0) … request(count - 1) are answered the same one after the other and all at once.
    template <class Request>
    static void the_same_together(std::size_t count, Request request) {
        TestServer server;
        const auto ask = [&](std::size_t i) { return post(server.port(), "/v1/chat/completions", request(static_cast<int>(i))).json()["choices"].dump(); };
        std::vector<std::string> alone(count), together(count);
        for (std::size_t i = 0; i < count; ++i) alone[i] = ask(i);
        {
            std::vector<std::jthread> clients;
            for (std::size_t i = 0; i < count; ++i) {
                clients.emplace_back([&, i] { together[i] = ask(i); });
            }
        }
        QCOMPARE(together, alone);
        QVERIFY(server.settle());
        QCOMPARE(server.server().status().models.figures.failed, 0u);
    }

private slots:
    void together_they_say_what_each_says_alone() {
        const auto request = [](int i) {
            Json one = chat_request("Question " + std::to_string(i) + std::string(static_cast<std::size_t>(i * 13 % 300), 'x'), 20 + i);
            one["temperature"] = i % 3;
            one["seed"] = i;
            if (i % 4 == 0) one["logprobs"] = true;
            return one;
        };
        the_same_together(24, request);
    }

    // The device chooses for all of them, and then one joins whose words are drawn.
    void greedy_ones_together_say_what_each_says_alone() {
        const auto request = [](int i) {
            Json one = chat_request("Question " + std::to_string(i), 40 + i);
            if (i == 7) one["temperature"] = 1;
            one["seed"] = i;
            return one;
        };
        the_same_together(12, request);
    }

    void a_long_prompt_does_not_hold_up_answers() {
        TestServer server;
        Connection answer(server.port());
        answer.request("POST", "/v1/chat/completions", streamed(endless("Go on", 1900)).dump(), {{"Content-Type", "application/json"}});
        QVERIFY(answer.await(600));
        // Its events keep coming while another one's prompt is read; the second one gets its answer before the first has ended.
        QCOMPARE(post(server.port(), "/v1/chat/completions", endless(std::string(1500, 'p'), 3)).status, 200);
        QCOMPARE(server.server().status().in_progress.size(), 1u);
        answer.close();
        QVERIFY(server.settle());
    }

    void a_full_queue_refuses() {
        TestServer server([](auto& options) {
            options.models.scheduler.max_running = 1;
            options.models.scheduler.max_queued = 2;
        });
        std::vector<std::unique_ptr<Connection>> clients;
        const auto begin = [&] {
            clients.push_back(std::make_unique<Connection>(server.port()));
            clients.back()->request("POST", "/v1/chat/completions", streamed(endless("Go on", 1900)).dump(), {{"Content-Type", "application/json"}});
            return clients.back()->await(200);
        };
        QVERIFY(begin());                                              // runs
        QVERIFY(clients.back()->await(600));
        QVERIFY(begin());                                              // these two wait
        QVERIFY(begin());
        const Reply refused = post(server.port(), "/v1/chat/completions", endless("me too", 2));
        QCOMPARE(refused.status, 429);
        QCOMPARE(refused.error("type"), std::string("rate_limit_error"));
        QVERIFY(std::stoi(refused.headers.at("retry-after")) > 0);
        QCOMPARE(server.server().status().models.figures.queued, 2);
        // One that waits leaves: there is room again, though nothing of it was read.
        clients.back()->close();
        clients.pop_back();
        Reply reply;
        clients.push_back(std::make_unique<Connection>(server.port()));
        for (int i = 0; i < 500; ++i) {
            if (server.server().status().in_progress.size() == 2) break;
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
        clients.back()->request("POST", "/v1/chat/completions", endless("me too", 2).dump(), {{"Content-Type", "application/json"}});
        clients.front()->close();      // the one that runs
        clients[1]->close();           // the other one that waits
        QCOMPARE(clients.back()->reply().status, 200);
        QVERIFY(server.settle());
        QCOMPARE(server.server().status().models.figures.running, 0);
    }

    void clients_that_leave_cancel_at_once() {
        TestServer server;
        // In the answer, not streamed too.
        for (const bool stream : {true, false}) {
            Connection client(server.port());
            const Json request = endless("Go on", 1900);
            client.request("POST", "/v1/chat/completions", (stream ? streamed(request) : request).dump(), {{"Content-Type", "application/json"}});
            for (int i = 0; i < 4000; ++i) {
                const auto running = server.server().status().in_progress;
                if (running.size() == 1 && running[0].completion_tokens > 2) break;
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
            }
            client.close();
            QVERIFY(server.settle());
            const auto record = server.server().status().recent.front();
            QCOMPARE(record.status, 499);
            QVERIFY(record.completion_tokens > 2 && record.completion_tokens < 1900);
        }
        QCOMPARE(server.server().status().models.figures.cancelled, 2u);
    }

    // A short form of tests/bench/bench_server.
    void many_clients_connect_and_vanish() {
        TestServer server;
        const std::string body = streamed(endless("Go on", 400)).dump();
        for (int i = 0; i < 120; ++i) {
            Connection client(server.port());
            switch (i % 4) {
                case 0: break;                                                       // says nothing
                case 1: client.send("POST /v1/chat/completions HTTP/1.1\r\nHost: lo"); break;
                case 2: client.send("POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9999\r\n\r\n{\"mess"); break;
                default: client.request("POST", "/v1/chat/completions", body, {{"Content-Type", "application/json"}});
            }
            client.close();
        }
        QVERIFY(server.settle());
        const auto figures = server.server().status().models.figures;
        QCOMPARE(figures.running, 0);
        QCOMPARE(figures.queued, 0);
        QCOMPARE(post(server.port(), "/v1/chat/completions", chat_request("Hi", 2)).status, 200);
    }

    // A client that reads nothing fills its own buffers and holds up nobody.
    void slow_readers() {
        TestServer server;
        std::vector<std::unique_ptr<Connection>> slow;
        Json request = streamed(endless("Go on", 1900));
        request["logprobs"] = true;
        request["top_logprobs"] = 20;  // much text for a token
        for (int i = 0; i < 4; ++i) {
            slow.push_back(std::make_unique<Connection>(server.port()));
            slow.back()->read_slowly(1000);
            slow.back()->request("POST", "/v1/chat/completions", request.dump(), {{"Content-Type", "application/json"}});
        }
        for (int i = 0; i < 5; ++i) QCOMPARE(post(server.port(), "/v1/chat/completions", endless("quick", 20)).status, 200);
        slow.clear();
        QVERIFY(server.settle());
    }

    // What conversations begin with alike is read once, and none loses what is its own.
    void a_system_prompt_is_read_once() {
        std::string system;
        for (int i = 0; i < 60; ++i) system += "Rule " + std::to_string(i) + ". ";
        const auto conversation = [&](const std::string& question) {
            Json request = chat_request(question, 6);
            request["messages"] = Json::array({{{"role", "system"}, {"content", system}}, {{"role", "user"}, {"content", question}}});
            return request;
        };
        const auto said = [](const Json& answer) { return answer["choices"][0]["message"]["content"].get<std::string>(); };
        const auto cached = [](const Json& answer) { return answer["usage"]["prompt_tokens_details"]["cached_tokens"].get<int>(); };
        const std::string first_question = "First question, " + std::string(120, 'a');
        TestServer plain([](auto& options) { options.models.scheduler.kept = 0; });
        TestServer server;
        Json first = conversation(first_question);
        Json answer = post(server.port(), "/v1/chat/completions", first).json();
        const int of_first = answer["usage"]["prompt_tokens"];
        for (int i = 0; i < 3; ++i) {
            const Json other = conversation("Other question " + std::to_string(i) + std::string(100, 'b'));
            const Json reply = post(server.port(), "/v1/chat/completions", other).json();
            QVERIFY2(cached(reply) >= static_cast<int>(system.size()), reply.dump().c_str());
            QCOMPARE(said(reply), said(post(plain.port(), "/v1/chat/completions", other).json()));
        }
        first["messages"].push_back({{"role", "assistant"}, {"content", "An answer"}});
        first["messages"].push_back({{"role", "user"}, {"content", "Second question"}});
        answer = post(server.port(), "/v1/chat/completions", first).json();
        QVERIFY2(cached(answer) >= of_first - 1, answer.dump().c_str());
        QCOMPARE(said(answer), said(post(plain.port(), "/v1/chat/completions", first).json()));
    }

    // The same for conversations that begin at once.
    void a_system_prompt_is_read_once_by_many() {
        constexpr int kClients = 8;
        std::string system;
        for (int i = 0; i < 150; ++i) system += "Rule " + std::to_string(i) + ". ";
        const auto conversation = [&](int i) {
            Json request = chat_request("", 6);
            request["messages"] = Json::array({{{"role", "system"}, {"content", system}}, {{"role", "user"}, {"content", "Question " + std::to_string(i)}}});
            return request;
        };
        TestServer plain([](auto& options) { options.models.scheduler.kept = 0; });
        TestServer server;
        std::vector<std::string> alone(kClients), together(kClients);
        for (int i = 0; i < kClients; ++i) alone[static_cast<std::size_t>(i)] = post(plain.port(), "/v1/chat/completions", conversation(i)).json()["choices"].dump();
        {
            std::vector<std::jthread> clients;
            for (int i = 0; i < kClients; ++i) {
                clients.emplace_back([&, i] { together[static_cast<std::size_t>(i)] = post(server.port(), "/v1/chat/completions", conversation(i)).json()["choices"].dump(); });
            }
        }
        QCOMPARE(together, alone);
        QVERIFY(server.settle());
        const auto read = server.server().status().models.figures.prompt_tokens;
        QVERIFY2(read < 2 * system.size(), std::to_string(read).c_str());
    }

    void a_conversation_goes_on_where_it_was() {
        TestServer server;
        Json request = chat_request("First question, long enough to be worth keeping", 10);
        Json answer = post(server.port(), "/v1/chat/completions", request).json();
        // Others in between do not take its place.
        for (int i = 0; i < 4; ++i) (void)post(server.port(), "/v1/chat/completions", chat_request("Something else " + std::to_string(i), 2));
        QVERIFY(server.settle());
        const int before = answer["usage"]["prompt_tokens"];
        request["messages"].push_back({{"role", "assistant"}, {"content", "An answer"}});
        request["messages"].push_back({{"role", "user"}, {"content", "Second question"}});
        answer = post(server.port(), "/v1/chat/completions", request).json();
        QVERIFY(answer["usage"]["prompt_tokens_details"]["cached_tokens"].get<int>() >= before - 1);
    }
};

QTEST_GUILESS_MAIN(TstServerScheduling)
#include "tst_server_scheduling.moc"
