// The whole program on the built-in model: it opens, answers, and closes in the middle of loading and answering.

#include <QDir>
#include <QElapsedTimer>
#include <QLabel>
#include <QTemporaryDir>
#include <QTest>

#include "core/base/paths.h"
#include "tests/ui/support/closing_time.h"
#include "tests/ui/support/scripted_devices.h"
#include "ui/controller/engine_backend.h"
#include "ui/markdown/text_view.h"
#include "ui/program/program.h"

using namespace headroom;
using namespace headroom::test;
using namespace headroom::ui;

class TestBuiltinWindow : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() {
        QCursor::setPos(2'000, 2'000);  // over nothing, for the pictures
        if (!EngineBackend().find("builtin", {})) QSKIP("the built-in model is not beside this program");
    }

    void opens_and_answers() {
        QTemporaryDir folder;
        QElapsedTimer time;
        time.start();
        Program program(from_utf8(folder.path().toStdString()), std::make_unique<EngineBackend>(), std::make_unique<ScriptedDevices>(devices_),
                        std::make_unique<EngineServerBackend>("test"));
        program.window().show();
        QVERIFY(QTest::qWaitForWindowExposed(&program.window()));
        program.window().grab();
        const qint64 painted = time.elapsed();
        program.open_first_model({}, 0, 0);
        QTRY_COMPARE_WITH_TIMEOUT(program.engine().model().state, ModelStatus::State::ready, 60'000);
        qInfo("window painted after %lld ms, built-in model ready after %lld ms", painted, time.elapsed());

        ConversationSettings settings;
        settings.sampling.temperature = 0;
        program.chats().set_settings(settings);
        program.chats().send(QStringLiteral("What is the reserve?"));
        QTRY_VERIFY_WITH_TIMEOUT(!program.chats().busy(), 120'000);
        const Message& answer = *program.chats().tree().find(program.chats().tree().leaf());
        QCOMPARE(answer.state, MessageState::complete);
        QVERIFY2(answer.text.contains(QStringLiteral("VRAM")), qPrintable(answer.text));
        QTRY_VERIFY(program.window().findChild<TextView*>(QStringLiteral("answer_text")));
        qInfo("%s (%.0f tok/s)", qPrintable(answer.text), answer.tokens_per_second);

        // The second question goes on with the first one's session: its tokens are not read again.
        program.chats().send(QStringLiteral("How do I change it?"));
        QTRY_VERIFY_WITH_TIMEOUT(!program.chats().busy(), 120'000);
        QCOMPARE(program.chats().tree().find(program.chats().tree().leaf())->state, MessageState::complete);
        save_pictures(program);
    }

    void closes_quickly_data() {
        QTest::addColumn<bool>("answering");
        QTest::newRow("while loading") << false;
        QTest::newRow("while answering") << true;
    }
    void closes_quickly() {
        QFETCH(bool, answering);
        QTemporaryDir folder;
        auto program = std::make_unique<Program>(from_utf8(folder.path().toStdString()), std::make_unique<EngineBackend>(), std::make_unique<ScriptedDevices>(devices_),
                        std::make_unique<EngineServerBackend>("test"));
        program->window().show();
        program->open_first_model({}, 0, 0);
        if (answering) {
            QTRY_COMPARE_WITH_TIMEOUT(program->engine().model().state, ModelStatus::State::ready, 60'000);
            program->chats().send(QStringLiteral("Tell me everything about Headroom."));
            QTRY_VERIFY_WITH_TIMEOUT(!program->chats().tree().find(program->chats().tree().leaf())->text.isEmpty(), 60'000);
        }
        QElapsedTimer time;
        time.start();
        program.reset();
        qInfo("closed in %lld ms", time.elapsed());
        QVERIFY2(time.elapsed() < kClosingTime, qPrintable(QString::number(time.elapsed())));
    }

private:
    const std::shared_ptr<DeviceScript> devices_ = std::make_shared<DeviceScript>();

    // The pictures of the README and the documentation: docs/images.
    static void save_pictures(Program& program) {
        const QString folder = QStringLiteral(HEADROOM_SCREENSHOTS);
        QVERIFY(QDir().mkpath(folder));
        program.window().resize(1120, 720);
        program.theme().set_mode(Theme::Mode::light);
        QTest::qWait(100);
        QVERIFY(program.window().grab().save(folder + QStringLiteral("/window.png")));
        program.theme().set_mode(Theme::Mode::dark);
        QTest::qWait(100);
        QVERIFY(program.window().grab().save(folder + QStringLiteral("/window-dark.png")));
        program.theme().set_mode(Theme::Mode::light);
    }
};

QTEST_MAIN(TestBuiltinWindow)
#include "tst_builtin_window.moc"
