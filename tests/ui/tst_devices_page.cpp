#include <QElapsedTimer>
#include <QLabel>
#include <QProgressBar>
#include <QPushButton>

#include "core/base/bytes.h"
#include "tests/ui/support/closing_time.h"
#include "tests/ui/support/scripted_vram.h"
#include "tests/ui/support/window_fixture.h"
#include "ui/devices/device_card.h"
#include "ui/devices/memory_bar.h"
#include "ui/vram/gib_field.h"
#include "ui/vram/history_graph.h"

using namespace headroom;
using namespace headroom::test;
using namespace headroom::ui;

namespace {

constexpr const char* kReason =
    "the free VRAM by the runtime fell by 32 MiB for 32 MiB mapped and rose by 0 MiB after its release (HIP 7.2.53210, driver 6.12.12)";

}  // namespace

// The Devices page by its object names, over scripted GPUs.
class TestDevicesPage : public QObject {
    Q_OBJECT

private slots:
    void init() { fixture_ = std::make_unique<WindowFixture>(); }
    void cleanup() { fixture_.reset(); }

    void no_gpu_says_what_was_looked_for() {
        fixture_->start(false);
        QCOMPARE(script().finds(), 0);  // not before somebody looks
        fixture_->click("devices_button");
        QVERIFY(fixture_->find("devices_page"));
        QTRY_VERIFY(fixture_->find("devices_explanation"));
        QVERIFY(text("devices_explanation").startsWith(QStringLiteral("No NVIDIA or AMD GPU was found, so models run on the processor.")));
        QVERIFY(text("devices_explanation").contains(QStringLiteral("libcuda.so.1")));
        QVERIFY(!fixture_->find("device_card"));
        // A card that was put in is found when asked for.
        script().list = {.devices = {DeviceScript::card("cuda:0", "GeForce")}, .explanation = {}};
        fixture_->click("devices_find");
        QTRY_COMPARE(text("device_badge"), QStringLiteral("● on"));
        QVERIFY(!fixture_->find("devices_none"));
        QCOMPARE(script().finds(), 2);
    }

    void a_card_shows_device_memory_and_verdict() {
        add_card("cuda:0", "GeForce RTX 4070", DeviceScript::on());
        script().memory["cuda:0"] = {.total = 12 * GiB, .used = 6 * GiB, .free = 6 * GiB, .own = 3 * GiB};
        open();
        QTRY_COMPARE(text("device_badge"), QStringLiteral("● on"));
        QCOMPARE(text("device_name"), QStringLiteral("GeForce RTX 4070"));
        QCOMPARE(text("device_driver"), QStringLiteral("CUDA 13.0, driver 580.159.04"));
        QCOMPARE(text("device_bus"), QStringLiteral("cuda:0, sm_89, 0000:01:00.0"));
        QCOMPARE(text("device_uuid"), QStringLiteral("GPU-9f9b4a3c-0011-2233-4455-6677889900aa"));
        QCOMPARE(text("device_meaning"), QStringLiteral("VRAM is given back while the model stays loaded. Segments of 128 MiB."));
        QVERIFY(text("device_tested").endsWith(QStringLiteral(", in 0.7\u00a0s")));
        QVERIFY(!fixture_->find("device_reason"));
        QVERIFY(!fixture_->find("device_progress"));  // a kept verdict is not tested again
        QTRY_VERIFY(fixture_->find<MemoryBar>("device_memory_bar"));
        QCOMPARE(fixture_->find<MemoryBar>("device_memory_bar")->own(), 0.25);
        QCOMPARE(fixture_->find<MemoryBar>("device_memory_bar")->others(), 0.25);
        QCOMPARE(plain("device_memory_text"), QStringLiteral("■ Other programs 3.0 GiB   ■ This program 3.0 GiB   □ Free 6.0 GiB of 12.0 GiB"));
    }

    void off_shows_its_reason_in_full() {
        add_card("hip:0", "Radeon", DeviceScript::off(kReason));
        script().memory["hip:0"] = {.total = 32 * GiB, .used = 8 * GiB, .free = 24 * GiB, .own = {}};
        open();
        QTRY_COMPARE(text("device_badge"), QStringLiteral("○ off"));
        QCOMPARE(text("device_reason"), QString::fromLatin1(kReason));
        QVERIFY(fixture_->find<QLabel>("device_reason")->textInteractionFlags().testFlag(Qt::TextSelectableByMouse));
        QTRY_COMPARE(plain("device_memory_text"), QStringLiteral("■ In use 8.0 GiB   □ Free 24.0 GiB of 32.0 GiB"));
        QVERIFY(!fixture_->find("device_steps"));
        fixture_->click("device_steps_toggle");
        QVERIFY(fixture_->find("device_steps"));
        QCOMPARE(text("device_step"), QStringLiteral("Release, measured · failed, 0.07 s"));
        QCOMPARE(text("device_step_seen"), QString::fromLatin1(kReason));
    }

    void without_a_counter_the_size_stands() {
        add_card("cuda:0", "GeForce", DeviceScript::on());
        open();
        QTRY_COMPARE(text("device_memory_text"), QStringLiteral("12.0 GiB of VRAM"));
        fixture_->program->theme().set_mode(Theme::Mode::dark);  // paints the legend's colours anew
        QCOMPARE(text("device_memory_text"), QStringLiteral("12.0 GiB of VRAM"));
        fixture_->program->theme().set_mode(Theme::Mode::light);
        QVERIFY(!fixture_->find("device_memory_bar"));
    }

    void a_new_device_is_tested_once() {
        script().list = {.devices = {DeviceScript::card("cuda:0", "GeForce")}, .explanation = {}};
        script().memory["cuda:0"] = {.total = 12 * GiB, .used = GiB, .free = 11 * GiB, .own = {}};
        script().hold();
        open();
        QTRY_VERIFY(fixture_->find("device_progress"));
        QCOMPARE(text("device_badge"), QStringLiteral("testing"));
        QVERIFY(!fixture_->find("device_test")->isEnabled());
        script().release(4);
        QTRY_COMPARE(text("device_progress_text"), QStringLiteral("Testing step 4 of 10: Patterns in unequal segments"));
        QCOMPARE(fixture_->find<QProgressBar>("device_progress")->value(), 3);
        QCOMPARE(fixture_->find<QProgressBar>("device_progress")->maximum(), 10);
        // Figures go on meanwhile.
        script().set_memory("cuda:0", {.total = 12 * GiB, .used = 2 * GiB, .free = 10 * GiB, .own = {}});
        QTRY_VERIFY(plain("device_memory_text").contains(QStringLiteral("In use 2.0 GiB")));
        script().go();
        QTRY_COMPARE(text("device_badge"), QStringLiteral("● on"));
        QVERIFY(!fixture_->find("device_progress"));
        QVERIFY(fixture_->find("device_test")->isEnabled());
    }

    void testing_again_replaces_the_verdict() {
        add_card("cuda:0", "GeForce", DeviceScript::on());
        open();
        QTRY_COMPARE(text("device_badge"), QStringLiteral("● on"));
        script().verdicts["cuda:0"] = DeviceScript::off(kReason);
        script().hold();
        fixture_->click("device_test");
        QTRY_VERIFY(fixture_->find("device_progress"));
        QVERIFY(!fixture_->find("device_meaning"));  // what is being tested is not known
        script().go();
        QTRY_COMPARE(text("device_badge"), QStringLiteral("○ off"));
        QCOMPARE(text("device_reason"), QString::fromLatin1(kReason));
        QCOMPARE(script().finds(), 1);
    }

    void devices_are_tested_side_by_side() {
        script().list = {.devices = {DeviceScript::card("cuda:0", "GeForce"), DeviceScript::card("hip:0", "Radeon")}, .explanation = {}};
        script().verdicts["hip:0"] = DeviceScript::off(kReason);
        script().hold();
        open();
        QTRY_COMPARE(fixture_->window().findChildren<QProgressBar*>(QStringLiteral("device_progress")).size(), 2);
        script().release(2);
        QTRY_COMPARE(running(), 2);
        script().go();
        QTRY_COMPARE(badges(), QStringList({QStringLiteral("● on"), QStringLiteral("○ off")}));
    }

    void figures_are_read_while_the_page_is_visible() {
        add_card("cuda:0", "GeForce", DeviceScript::on());
        script().memory["cuda:0"] = {.total = 12 * GiB, .used = GiB, .free = 11 * GiB, .own = {}};
        open();
        QTRY_VERIFY(script().reads() > 0);
        QElapsedTimer time;
        time.start();
        const int before = script().reads();
        QTRY_VERIFY(script().reads() >= before + 4);
        QVERIFY2(time.elapsed() >= 700, qPrintable(QString::number(time.elapsed())));  // four a second at most
        fixture_->click("log_button");
        QTest::qWait(100);  // one may have been on its way
        const int hidden = script().reads();
        QTest::qWait(700);
        QCOMPARE(script().reads(), hidden);
        fixture_->click("devices_button");
        QTRY_VERIFY(script().reads() > hidden);
        QCOMPARE(script().finds(), 1);
    }

    // What is wanted of a card without a model is kept for the next load.
    void wishes_are_kept_without_a_model() {
        add_card("cuda:0", "GeForce", DeviceScript::on());
        script().wishes[uuid()] = {.reserve_bytes = 2 * GiB, .cap_bytes = {}};
        open();
        QTRY_VERIFY(field("device_reserve"));
        QCOMPARE(field("device_reserve")->text(), QStringLiteral("2.0 GiB"));
        QCOMPARE(field("device_cap")->text(), QStringLiteral("no limit"));
        QCOMPARE(text("device_share_note"), QStringLiteral("Takes effect when a model is loaded on this card."));
        type("device_cap", QStringLiteral("6,5"), QStringLiteral("6.5"));
        QTRY_COMPARE(script().kept(uuid()), (engine::VramWish{.reserve_bytes = 2 * GiB, .cap_bytes = 6 * GiB + 512 * MiB}));
        QTest::keyClick(field("device_reserve"), Qt::Key_Up);
        QTRY_COMPARE(script().kept(uuid()).reserve_bytes, std::optional(2 * GiB + 512 * MiB));
        // Below zero is the default; what is more than the card is the card.
        type("device_reserve", QString(), QString());
        QTRY_COMPARE(script().kept(uuid()).reserve_bytes, std::optional<std::uint64_t>());
        QCOMPARE(field("device_reserve")->text(), QStringLiteral("default"));
        QTest::keyClick(field("device_reserve"), Qt::Key_Up);
        QTRY_COMPARE(script().kept(uuid()).reserve_bytes, std::optional<std::uint64_t>(0));
        QTest::keyClick(field("device_reserve"), Qt::Key_Down);
        QTRY_COMPARE(script().kept(uuid()).reserve_bytes, std::optional<std::uint64_t>());
    }

    void wishes_go_to_the_model_that_uses_the_card() {
        add_card("cuda:0", "GeForce", DeviceScript::on());
        const auto vram = std::make_shared<ScriptedVram>();
        fixture_->script->vram = vram;
        fixture_->start();
        fixture_->click("devices_button");
        QTRY_VERIFY(field("device_reserve"));
        QCOMPARE(field("device_reserve")->text(), QStringLiteral("default"));
        QCOMPARE(plain("device_share_note"), QStringLiteral("Takes effect at once. The default keeps 1.0 GiB free."));
        type("device_reserve", QStringLiteral("12"), QStringLiteral("12"));
        QTRY_COMPARE(vram->wishes().size(), 1U);
        QCOMPARE(vram->wishes().back().second, (engine::VramWish{.reserve_bytes = 12 * GiB, .cap_bytes = {}}));
        QCOMPARE(script().kept(uuid()), engine::VramWish());  // the model's own business
        // The other way round: the bar's handle is seen in the field, exact to a decimal.
        auto device = ScriptedVram::card();
        device.wish.reserve_bytes = 3 * GiB + 100 * MiB;
        vram->change(device);
        QTRY_COMPARE(field("device_reserve")->text(), QStringLiteral("3.1 GiB"));
        QCOMPARE(field("device_reserve")->bytes(), std::optional(3 * GiB + 100 * MiB));
        QVERIFY(fixture_->find<HistoryGraph>("device_history"));
        QVERIFY(plain("device_history_legend").contains(QStringLiteral("■ Weights 6.0 GiB")));
        QCOMPARE(vram->wishes().size(), 1U);  // nothing of it was a hand's
    }

    void what_cannot_be_changed_now_waits_for_the_next_load() {
        add_card("hip:0", "Radeon", DeviceScript::off(kReason));
        auto device = ScriptedVram::card();
        device.id = "hip:0";
        device.elastic = false;
        device.verdict = "off";
        device.reason = kReason;
        const auto vram = std::make_shared<ScriptedVram>(std::vector{device});
        fixture_->script->vram = vram;
        fixture_->start();
        fixture_->click("devices_button");
        QTRY_VERIFY(field("device_reserve"));
        QCOMPARE(text("device_share_note"), QStringLiteral("Takes effect when the model is loaded again."));
        type("device_reserve", QStringLiteral("2"), QStringLiteral("2"));
        QTRY_COMPARE(vram->wishes().size(), 1U);
        QTRY_VERIFY(text("vram_line").startsWith(QStringLiteral("The memory of hip:0 cannot be changed; the next load keeps to it")));
    }

    // The first run on a new card: its memory is tested before a model takes some of it.
    void a_load_waits_for_the_test() {
        script().list = {.devices = {DeviceScript::card("cuda:0", "GeForce")}, .explanation = {}};
        script().hold();
        fixture_->start(false);
        fixture_->program->open_first_model({}, 0, 0);
        QTRY_VERIFY(fixture_->program->engine().model().held);
        QCOMPARE(text("model_strip_detail"), QStringLiteral("Testing whether this computer's GPU can give memory back. This is done once."));
        QVERIFY(fixture_->script->loads().empty());
        script().go();
        QTRY_VERIFY(fixture_->ready());
        QCOMPARE(fixture_->script->loads().front().data_folder, fixture_->path());
    }

    void closing_stops_a_test() {
        script().list = {.devices = {DeviceScript::card("cuda:0", "GeForce")}, .explanation = {}};
        script().hold();
        open();
        QTRY_VERIFY(fixture_->find("device_progress"));
        QElapsedTimer time;
        time.start();
        fixture_->stop();
        QVERIFY2(time.elapsed() < kClosingTime, qPrintable(QString::number(time.elapsed())));
        QCOMPARE(script().stopped(), 1);
    }

private:
    DeviceScript& script() const { return *fixture_->devices; }
    void add_card(const std::string& id, const std::string& name, const engine::DeviceVerdict& verdict) {
        auto card = DeviceScript::card(id, name);
        card.verdict = verdict;
        script().list.explanation.clear();
        script().list.devices.push_back(card);
    }
    void open() {
        fixture_->start(false);
        fixture_->click("devices_button");
    }
    static std::string uuid() { return DeviceScript::card("cuda:0", "").uuid; }
    GibField* field(const char* name) const { return fixture_->find<GibField>(name); }
    // Types in a field, in the locale's way if that has a decimal comma.
    void type(const char* name, const QString& comma, const QString& point) const {
        field(name)->setFocus();
        field(name)->selectAll();
        QTest::keyClick(field(name), Qt::Key_Delete);
        QTest::keyClicks(field(name), QLocale().decimalPoint() == QLatin1String(",") ? comma : point);
        QTest::keyClick(field(name), Qt::Key_Return);
    }
    QString text(const char* name) const {
        const auto* label = fixture_->find<QLabel>(name);
        return label ? label->text() : QString();
    }
    QString plain(const char* name) const {
        QTextDocument document;
        document.setHtml(text(name));
        return document.toPlainText().replace(QChar::Nbsp, u' ');
    }
    QStringList badges() const {
        QStringList all;
        for (const auto* label : fixture_->window().findChildren<QLabel*>(QStringLiteral("device_badge"))) all << label->text();
        return all;
    }
    int running() const {
        int count = 0;
        for (const auto* label : fixture_->window().findChildren<QLabel*>(QStringLiteral("device_progress_text"))) count += label->text().startsWith(QStringLiteral("Testing step"));
        return count;
    }

    std::unique_ptr<WindowFixture> fixture_;
};

QTEST_MAIN(TestDevicesPage)
#include "tst_devices_page.moc"
