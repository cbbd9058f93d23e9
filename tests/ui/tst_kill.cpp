// A kill in the middle of an answer loses nothing that was on the screen for a second. The test starts itself as a child that
// answers endlessly, kills it, and reads the conversation again.

#include <QCoreApplication>
#include <QElapsedTimer>
#include <QProcess>
#include <QTemporaryDir>
#include <QTest>
#include <QTextStream>

#include "core/base/paths.h"
#include "tests/ui/support/scripted_backend.h"
#include "ui/chat/chat_service.h"

using namespace headroom;
using namespace headroom::test;
using namespace headroom::ui;

namespace {

// Shows its answer by printing the length of the text on each change, as the window would draw it.
int answer_until_killed(const QString& folder) {
    auto script = std::make_shared<Script>();
    script->chunks.assign(1'000'000, "word ");
    script->hold();
    EngineController engine(std::make_unique<ScriptedBackend>(script));
    ChatStore store(from_utf8(folder.toStdString()));
    if (!store.open().isEmpty()) return 1;
    ChatService chats(store, engine);
    QTextStream out(stdout);
    QObject::connect(&chats, &ChatService::message_changed, &chats, [&](qint64 message) {
        out << chats.tree().find(message)->text.size() << '\n';
        out.flush();
    });
    QTimer pace;  // about 200 tokens a second
    QObject::connect(&pace, &QTimer::timeout, &chats, [&] { script->release(1); });
    QObject::connect(&engine, &EngineController::model_changed, &chats, [&] {
        if (engine.model().state == ModelStatus::State::ready) chats.send(QStringLiteral("go on"));
    });
    pace.start(5);
    engine.open({});
    return QCoreApplication::exec();
}

}  // namespace

class TestKill : public QObject {
    Q_OBJECT

private slots:
    void nothing_that_was_shown_for_a_second_is_lost() {
        QTemporaryDir folder;
        QProcess child;
        child.start(QCoreApplication::applicationFilePath(), {QStringLiteral("--answer-until-killed"), folder.path()});
        QVERIFY(child.waitForStarted());
        struct Shown {
            qint64 at_ms;
            qsizetype length;
        };
        std::vector<Shown> shown;
        QElapsedTimer clock;
        clock.start();
        QElapsedTimer since_first;
        while (clock.elapsed() < 60'000 && (!since_first.isValid() || since_first.elapsed() < 2'500)) {
            child.waitForReadyRead(100);
            while (child.canReadLine()) {
                const qsizetype length = child.readLine().trimmed().toLongLong();
                if (length > 0 && !since_first.isValid()) since_first.start();
                shown.push_back({clock.elapsed(), length});
            }
        }
        const qint64 killed_at = clock.elapsed();
        child.kill();
        QVERIFY(child.waitForFinished());
        QVERIFY(since_first.isValid());

        qsizetype must_be_there = 0;
        for (const Shown& s : shown) {
            if (s.at_ms <= killed_at - 1'000) must_be_there = s.length;
        }
        QVERIFY(must_be_there > 0);
        ChatStore store(from_utf8(folder.path().toStdString()));
        QCOMPARE(store.open(), QString());
        const auto conversations = store.conversations();
        QCOMPARE(conversations.size(), 1U);
        const auto messages = store.messages(conversations[0].id);
        QCOMPARE(messages.size(), 2U);
        QCOMPARE(messages[1].state, MessageState::stopped);
        qInfo("shown a second before the kill: %lld characters, shown last: %lld, kept: %lld", static_cast<long long>(must_be_there),
              static_cast<long long>(shown.back().length), static_cast<long long>(messages[1].text.size()));
        QVERIFY(messages[1].text.size() >= must_be_there);
        QVERIFY(messages[1].text.startsWith(QStringLiteral("word word ")));
    }
};

int main(int argc, char** argv) {
    QCoreApplication application(argc, argv);
    const QStringList arguments = QCoreApplication::arguments();
    if (arguments.value(1) == QLatin1String("--answer-until-killed")) return answer_until_killed(arguments.value(2));
    TestKill test;
    return QTest::qExec(&test, argc, argv);
}

#include "tst_kill.moc"
