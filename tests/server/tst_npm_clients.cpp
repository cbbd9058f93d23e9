// The official clients of OpenAI and Ollama, and a validator of schemas, from npm, against the real program.

#include <QStandardPaths>
#include <QTest>
#include <QUrl>

#include "tests/cli/cli_process.h"
#include "tests/server/http_exchange.h"

using namespace headroom::test;

namespace {

// A build that is not optimized answers slowly.
#ifdef NDEBUG
constexpr const char* kAnswers = "3";
#else
constexpr const char* kAnswers = "1";
#endif
constexpr int kPatienceMs = 840'000;

}  // namespace

class TstNpmClients : public QObject {
    Q_OBJECT

    Cli cli_;
    QTemporaryDir folder_;

    // The output, or nothing where it failed.
    [[nodiscard]] bool run(const QString& program, const QStringList& arguments, QByteArray& output) const {
        QProcess process;
        process.setWorkingDirectory(folder_.path());
        process.setProcessChannelMode(QProcess::MergedChannels);
        process.start(program, arguments);
        const bool ended = process.waitForFinished(kPatienceMs);
        if (!ended) process.kill();
        output = process.readAll();
        return ended && process.exitStatus() == QProcess::NormalExit && process.exitCode() == 0;
    }

private slots:
    void clients() {
        const QString node = QStandardPaths::findExecutable("node"), npm = QStandardPaths::findExecutable("npm");
        if (node.isEmpty() || npm.isEmpty()) QSKIP("node and npm are not installed");
        QByteArray version;  // "v20.20.2"
        if (!run(node, {"--version"}, version) || version.mid(1).split('.').value(0).toInt() < 20) QSKIP("node 20 or later is needed");
        const QDir source(HEADROOM_NPM_FOLDER);
        for (const QString& name : source.entryList({"*.json", "*.mjs"}, QDir::Files)) QVERIFY(QFile::copy(source.filePath(name), folder_.filePath(name)));
        QByteArray output;
        if (!run(npm, {"ci", "--no-audit", "--no-fund", "--ignore-scripts"}, output)) {
            QSKIP(("The clients could not be had from npm: " + output.right(300)).constData());
        }
        QProcess server;
        cli_.prepare(server, {"serve", "--port", "0", "--json", "--device", "cpu"});
        server.start();
        while (!server.canReadLine() && server.waitForReadyRead(60'000)) {}
        const Json started = Json::parse(server.readLine().toStdString(), nullptr, false);
        QVERIFY2(started.is_object(), server.readAllStandardError().constData());
        const bool good = run(node, {"clients.mjs", QString::fromStdString(started["address"].get<std::string>()), "builtin", kAnswers}, output);
        server.kill();
        server.waitForFinished();
        if (!good) qWarning("%s", output.constData());
        QVERIFY2(good, "see above");
    }
};

QTEST_GUILESS_MAIN(TstNpmClients)
#include "tst_npm_clients.moc"
