// headroom-cli serve and vram: the real program, the built-in model.

#include <QTest>
#include <QUrl>

#include "tests/cli/cli_process.h"
#include "tests/server/http_exchange.h"

using namespace headroom::test;

namespace {

// Starts the server and reads its address; 0: it did not come.
int start(const Cli& cli, QProcess& process, const QStringList& more = {}) {
    cli.prepare(process, QStringList{"serve", "--port", "0", "--json", "--device", "cpu"} + more);
    process.start();
    while (!process.canReadLine() && process.waitForReadyRead(60'000)) {}
    const Json started = Json::parse(process.readLine().toStdString(), nullptr, false);
    if (!started.is_object()) return 0;
    return QUrl(QString::fromStdString(started["address"].get<std::string>())).port();
}

Json question(int tokens) {
    return {{"model", "builtin"}, {"messages", Json::array({{{"role", "user"}, {"content", "What is the reserve?"}}})}, {"temperature", 0}, {"max_tokens", tokens}};
}

}  // namespace

class TstServeCommand : public QObject {
    Q_OBJECT

    Cli cli_;

private slots:
    void wrong_usage() {
        const auto refused = cli_.run({"serve", "--host", "0.0.0.0", "--lazy"});
        QCOMPARE(refused.code, 2);
        QVERIFY(refused.error.contains("--api-key"));
        const TakenPort taken;
        const auto used = cli_.run({"serve", "--lazy", "--port", QString::number(taken.port())});
        QCOMPARE(used.code, 1);
        QVERIFY(used.error.contains(QByteArray::number(taken.port())));
        QCOMPARE(cli_.run({"serve", "-m", "nothing"}).code, 1);
    }

    void vram_without_a_server() {
        const int port = TakenPort().port();  // free again
        const QString url = QString("http://127.0.0.1:%1").arg(port);
        const auto answer = cli_.run({"vram", "--url", url});
        QCOMPARE(answer.code, 1);
        QVERIFY(answer.error.contains("headroom-cli serve"));
        QCOMPARE(cli_.run({"vram", "--url", "ftp://x"}).code, 2);
        QCOMPARE(cli_.run({"vram", "--reserve", "much"}).code, 2);
        QCOMPARE(cli_.run({"vram", "--reserve", "default", "--reserve-mib", "5"}).code, 2);
    }

    // Killed in the middle of answers: the next start is clean.
    void kill_and_start_again() {
        std::string before;
        for (int round = 0; round < 3; ++round) {
            QProcess process;
            const int port = start(cli_, process, {"--api-key", "k"});
            QVERIFY2(port > 0, process.readAllStandardError().constData());
            const Headers key{{"Authorization", "Bearer k"}};
            const Reply reply = post(port, "/v1/chat/completions", question(12), key);
            QCOMPARE(reply.status, 200);
            const std::string said = reply.json()["choices"][0]["message"]["content"];
            if (round > 0) QCOMPARE(said, before);
            before = said;
            const QString url = QString("http://127.0.0.1:%1").arg(port);
            const auto vram = cli_.run({"vram", "--json", "--url", url, "--api-key", "k"});
            QCOMPARE(vram.code, 0);
            QCOMPARE(vram.json()["verdict"], Json("off"));
            const auto change = cli_.run({"vram", "--url", url, "--api-key", "k", "--reserve-mib", "100"});
            QCOMPARE(change.code, 1);
            QVERIFY(change.error.contains("processor"));
            std::vector<std::unique_ptr<Connection>> clients;
            for (int i = 0; i < 6; ++i) {
                Json request = question(1900);
                request["stream"] = true;
                request["logit_bias"] = {{"8189", -100}, {"8190", -100}, {"8191", -100}};  // no answer ends by itself
                clients.push_back(std::make_unique<Connection>(port));
                clients.back()->request("POST", "/v1/chat/completions", request.dump(), {{"Content-Type", "application/json"}, key[0]});
            }
            for (const auto& client : clients) QVERIFY(client->await(200));
            process.kill();
            QVERIFY(process.waitForFinished(20'000));
            for (const auto& client : clients) QVERIFY(!client->reply(20'000).whole);
        }
    }
};

QTEST_GUILESS_MAIN(TstServeCommand)
#include "tst_serve_command.moc"
