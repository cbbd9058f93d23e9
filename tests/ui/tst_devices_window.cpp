// The Devices page on the real layers below it: simulated drivers, and the self-test in a child process (this program).

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
#include "tests/simgpu/fixture.h"
#include "tests/ui/support/closing_time.h"
#include "tests/ui/support/scripted_backend.h"
#include "ui/program/program.h"

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

    void no_gpu() {
        qputenv("HEADROOM_GPU_LIBRARIES", QByteArray::fromStdString(to_utf8(sim_.nothing().libraries)));
        open();
        QTRY_VERIFY(!texts("devices_explanation").first().isEmpty());
        QVERIFY(texts("devices_explanation").first().startsWith(QStringLiteral("No NVIDIA or AMD GPU was found")));
    }

private:
    void open() {
        program_.reset();
        const auto folder = from_utf8(folder_.path().toStdString());
        program_ = std::make_unique<Program>(folder, std::make_unique<ScriptedBackend>(std::make_shared<Script>()),
                                             std::make_unique<EngineDeviceBackend>(folder));
        program_->theme().set_mode(Theme::Mode::light);
        program_->window().resize(1120, 760);
        program_->window().show();
        QVERIFY(QTest::qWaitForWindowExposed(&program_->window()));
        program_->window().show_page(QStringLiteral("devices"));
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
