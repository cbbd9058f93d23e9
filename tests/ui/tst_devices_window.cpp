// The Devices page and the VRAM bar on the real layers below them: simulated drivers, the self-test in a child process (this program), and the
// built-in model on a card.

#include <QApplication>
#include <QDir>
#include <QElapsedTimer>
#include <QLabel>
#include <QTemporaryDir>
#include <QTest>
#include <QTextDocument>

#include "core/base/bytes.h"
#include "core/base/paths.h"
#include "core/vmm/self_test_process.h"
#include "tests/cli/cli_process.h"
#include "tests/simgpu/fixture.h"
#include "tests/ui/support/closing_time.h"
#include "tests/ui/support/scripted_backend.h"
#include "ui/controller/engine_backend.h"
#include "ui/program/program.h"
#include "ui/vram/vram_track.h"

using namespace headroom;
using namespace headroom::test;
using namespace headroom::ui;

class TestDevicesWindow : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() {
        QCursor::setPos(2'000, 2'000);  // over nothing, for the picture
        QVERIFY(QDir().mkpath(QStringLiteral(HEADROOM_SCREENSHOTS)));
        qputenv("HEADROOM_GPU_LIBRARIES", QByteArray::fromStdString(to_utf8(sim_.folder_for_programs())));
    }
    void cleanup() { program_.reset(); }

    void devices_are_found_tested_and_kept() {
        auto machine = SimGpu::healthy();
        machine["cuda"][0] = {{"name", "NVIDIA GeForce RTX 4070"}, {"total_mib", 12'282}, {"other_mib", 1'740}};
        machine["hip"][0] = {{"name", "AMD Radeon RX 9070 XT"}, {"total_mib", 16'304}, {"other_mib", 900}, {"granularity_min", 4096},
                             {"granularity_rec", 4096}, {"architecture", "gfx1201"}};
        sim_.reset(machine);
        open();
        QTRY_COMPARE_WITH_TIMEOUT(texts("device_badge"), QStringList({QStringLiteral("● on"), QStringLiteral("○ off")}), 60'000);
        QVERIFY(texts("device_reason").last().startsWith(QStringLiteral("the recommended allocation granularity is 4 KiB, not 2 MiB or more (HIP 7.1.0")));
        QTRY_VERIFY(legend().contains(QStringLiteral("Other programs 1.7 GiB")));
        QVERIFY(program_->window().grab().save(QStringLiteral(HEADROOM_SCREENSHOTS "/devices-real.png")));
        // Another program takes VRAM: shown without a word.
        QElapsedTimer time;
        time.start();
        sim_.set_other(gpu::Backend::cuda, 0, 5 * GiB);
        QTRY_VERIFY(legend().contains(QStringLiteral("Other programs 5.0 GiB")));
        qInfo("another program's VRAM shows after %lld ms", time.elapsed());
        // The next start takes the verdicts that are kept.
        open();
        QTRY_COMPARE(texts("device_badge"), QStringList({QStringLiteral("● on"), QStringLiteral("○ off")}));
        for (const DeviceStatus& status : program_->devices().devices()) QVERIFY(!status.testing);
        // The card is another one now: tested again, it says so.
        machine["faults"]["release_keeps_memory"] = true;
        sim_.reset(machine);
        QTest::mouseClick(program_->window().findChild<QWidget*>(QStringLiteral("device_test")), Qt::LeftButton);
        QTRY_COMPARE_WITH_TIMEOUT(texts("device_badge"), QStringList({QStringLiteral("○ off"), QStringLiteral("○ off")}), 60'000);
        QVERIFY(texts("device_reason").first().startsWith(QStringLiteral("the free VRAM by the runtime fell by 32 MiB")));
    }

    void a_test_that_hangs_does_not_hold_the_window_up() {
        sim_.reset(SimGpu::with_faults({}, nlohmann::json::array({{{"function", "cuMemMap"}, {"call", 1}, {"action", "hang"}},
                                                                  {{"function", "hipMemMap"}, {"call", 1}, {"action", "hang"}}})));
        QFile::remove(folder_.filePath(QStringLiteral("verdicts.json")));
        open();
        QTRY_COMPARE_WITH_TIMEOUT(texts("device_progress_text"),
                                  QStringList(2, QStringLiteral("Testing step 4 of 10: Patterns in unequal segments")), 30'000);
        QElapsedTimer time;
        time.start();
        program_.reset();
        qInfo("closed in %lld ms", time.elapsed());
        QVERIFY2(time.elapsed() < kClosingTime, qPrintable(QString::number(time.elapsed())));
        QVERIFY(!QFile::exists(folder_.filePath(QStringLiteral("verdicts.json"))));  // no verdict was reached
    }

    // A new card is tested, then the model is loaded to it; the bar's handle takes its memory, and gives it back; the words stay the same.
    void the_bar_moves_a_real_model() {
        if (!EngineBackend().find("builtin", {})) QSKIP("the built-in model is not beside this program");
        sim_.reset({{"cuda", {{{"name", "NVIDIA GeForce RTX 4070"}, {"total_mib", 2'048}, {"other_mib", 300}}}}});
        QFile::remove(folder_.filePath(QStringLiteral("verdicts.json")));
        open(std::make_unique<EngineBackend>());
        program_->open_first_model(QStringLiteral("builtin"), 0, 0);
        QTRY_COMPARE_WITH_TIMEOUT(program_->engine().model().state, ModelStatus::State::ready, 60'000);
        VramController& vram = program_->vram();
        QCOMPARE(vram.state(), VramController::State::card);
        const auto card = [&] { return vram.devices().front(); };
        QCOMPARE(card().verdict, std::string("on"));
        QVERIFY2(card().elastic, card().reason.c_str());
        QCOMPARE(card().blocks_resident, card().blocks_total);
        QCOMPARE(program_->window().findChild<QLabel*>(QStringLiteral("vram_name"))->text(), QStringLiteral("RTX 4070"));
        const std::string before = answer();
        QVERIFY(!before.empty());
        auto* track = program_->window().findChild<VramTrack*>(QStringLiteral("vram_track"));
        QTest::keyClick(track, Qt::Key_Home);
        QElapsedTimer time;
        time.start();
        QTRY_COMPARE(card().blocks_resident, 0);
        qInfo("all experts left %lld ms after the key; %s", time.elapsed(), qPrintable(program_->window().findChild<QLabel*>(QStringLiteral("vram_line"))->text()));
        QCOMPARE(vram.report()->cause, engine::VramCause::request);
        QCOMPARE(answer(), before);
        QTest::keyClick(track, Qt::Key_End);
        QTRY_COMPARE(card().blocks_resident, card().blocks_total);
        QCOMPARE(answer(), before);
        QTRY_VERIFY(vram.history("cuda:0")->samples().size() > 1);
        // Another program takes what is free: the bar shows it.
        sim_.set_other(gpu::Backend::cuda, 0, 700 * MiB);
        QTRY_VERIFY(card().others_bytes() > 600 * MiB);
        // What was set holds at the next start.
        QTest::keyClick(track, Qt::Key_PageUp);
        QTRY_VERIFY(vram.report()->reserve_bytes == GiB);
        program_->window().show_page(QStringLiteral("chat"));
        QTest::qWait(400);  // for the picture: docs/images/vram-bar.png
        QVERIFY(program_->window().grab().save(QStringLiteral(HEADROOM_SCREENSHOTS "/vram-bar.png")));
        open(std::make_unique<EngineBackend>());
        program_->open_first_model(QStringLiteral("builtin"), 0, 0);
        QTRY_COMPARE_WITH_TIMEOUT(program_->engine().model().state, ModelStatus::State::ready, 60'000);
        QCOMPARE(program_->vram().devices().front().wish.reserve_bytes, std::optional(GiB));
    }

    // Other programs read and set the window's VRAM through its server.
    void the_command_moves_the_windows_model() {
        if (!EngineBackend().find("builtin", {})) QSKIP("the built-in model is not beside this program");
        sim_.reset({{"cuda", {{{"name", "NVIDIA GeForce RTX 4070"}, {"total_mib", 2'048}, {"other_mib", 300}}}}});
        for (const char* kept : {"verdicts.json", "vram.json"}) QFile::remove(folder_.filePath(QLatin1String(kept)));
        open(std::make_unique<EngineBackend>());
        program_->server().set_port(0);
        program_->server().set_wanted(true);
        program_->open_first_model(QStringLiteral("builtin"), 0, 0);
        QTRY_COMPARE_WITH_TIMEOUT(program_->engine().model().state, ModelStatus::State::ready, 60'000);
        QTRY_COMPARE(program_->server().state(), ServerController::State::on);
        const auto card = [&] { return program_->vram().devices().front(); };
        QCOMPARE(card().blocks_resident, card().blocks_total);
        const Cli cli;
        const auto vram = [&](const QStringList& more) { return cli.run(QStringList{"vram", "--json", "--url", program_->server().address()} + more); };
        const auto device = vram({}).json()["devices"][0];
        QVERIFY2(device["verdict"] == "on" && device["in_use"] == true, device.dump().c_str());
        const auto report = vram({"--cap-mib", "1"}).json();  // less than any part of it takes
        QVERIFY2(report["met"] == true && report["own_after_mib"] == 0, report.dump().c_str());
        QTRY_COMPARE(card().blocks_resident, 0);
        QCOMPARE(program_->vram().report()->cause, engine::VramCause::request);
        QVERIFY(vram({"--cap", "default"}).json()["met"] == true);
        QTRY_COMPARE(card().blocks_resident, card().blocks_total);
        program_->server().set_wanted(false);
    }

    void no_gpu() {
        qputenv("HEADROOM_GPU_LIBRARIES", QByteArray::fromStdString(to_utf8(sim_.nothing().libraries)));
        open();
        QTRY_VERIFY(!texts("devices_explanation").first().isEmpty());
        QVERIFY(texts("devices_explanation").first().startsWith(QStringLiteral("No NVIDIA or AMD GPU was found")));
    }

private:
    void open(std::unique_ptr<Backend> backend = std::make_unique<ScriptedBackend>(std::make_shared<Script>())) {
        program_.reset();
        const auto folder = from_utf8(folder_.path().toStdString());
        program_ = std::make_unique<Program>(folder, std::move(backend), std::make_unique<EngineDeviceBackend>(folder),
                                             std::make_unique<EngineServerBackend>("test"));
        program_->theme().set_mode(Theme::Mode::light);
        program_->window().resize(1120, 760);
        program_->window().show();
        QVERIFY(QTest::qWaitForWindowExposed(&program_->window()));
        program_->window().show_page(QStringLiteral("devices"));
    }
    // In a new chat, without chance.
    std::string answer() const {
        program_->chats().open(0);
        ConversationSettings settings;
        settings.sampling.temperature = 0;
        program_->chats().set_settings(settings);
        program_->chats().send(QStringLiteral("What is the reserve?"));
        if (!QTest::qWaitFor([this] { return !program_->chats().busy(); }, 60'000)) return {};
        const Message& message = *program_->chats().tree().find(program_->chats().tree().leaf());
        return message.state == MessageState::complete ? message.text.toStdString() : std::string();
    }
    QStringList texts(const char* name) const {
        QStringList all;
        for (const auto* label : program_->window().findChildren<QLabel*>(QLatin1String(name))) all << label->text();
        return all;
    }
    QString legend() const {
        QTextDocument document;
        document.setHtml(texts("device_memory_text").value(0));
        return document.toPlainText().replace(QChar::Nbsp, u' ');
    }

    SimGpu sim_;
    QTemporaryDir folder_;
    std::unique_ptr<Program> program_;
};

int main(int argc, char** argv) {
    if (const auto code = vmm::run_hidden_command({argv + 1, argv + argc})) return *code;
    QApplication application(argc, argv);
    TestDevicesWindow test;
    return QTest::qExec(&test, argc, argv);
}
#include "tst_devices_window.moc"
