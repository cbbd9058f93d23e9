// The VRAM bar in the real window, over a scripted model.

#include <QAccessible>
#include <QContextMenuEvent>
#include <QLabel>
#include <QMenu>
#include <QMouseEvent>
#include <QProgressBar>
#include <QSlider>

#include "core/base/bytes.h"
#include "tests/ui/support/scripted_vram.h"
#include "tests/ui/support/window_fixture.h"
#include "ui/vram/history_graph.h"
#include "ui/vram/vram_bar.h"
#include "ui/vram/vram_track.h"
#include "ui/vram/vram_words.h"

using namespace headroom;
using namespace headroom::test;
using namespace headroom::ui;

namespace {

QString plain(QString text) { return text.replace(QChar::Nbsp, u' '); }

}  // namespace

class TestVramBar : public QObject {
    Q_OBJECT

private slots:
    void init() {
        fixture_ = std::make_unique<WindowFixture>();
        vram_ = std::make_shared<ScriptedVram>();
        fixture_->script->vram = vram_;
    }
    void cleanup() {
        QGuiApplication::setLayoutDirection(Qt::LeftToRight);
        fixture_.reset();
        QCOMPARE(vram_->listeners(), 0);
    }

    // What is dragged is sent while it is dragged, and the newest position wins.
    void dragging_acts_at_once() {
        start();
        QCOMPARE(track()->reserve_bytes(), GiB);
        const QPoint from = track()->handle().toPoint();
        QTest::mousePress(track(), Qt::LeftButton, {}, from);
        QVERIFY(track()->isSliderDown());
        for (int step = 1; step <= 40; ++step) move(from - QPoint(step * 4, 0));
        QVERIFY(!vram_->wishes().empty());  // at once
        const std::uint64_t under_the_hand = track()->reserve_bytes();
        QVERIFY(under_the_hand > GiB);
        QTRY_COMPARE(newest(), std::optional(under_the_hand));  // while it is held
        QVERIFY2(vram_->wishes().size() < 20, qPrintable(QString::number(vram_->wishes().size())));
        // Figures that come meanwhile leave the handle under the hand.
        auto device = vram_->devices().front();
        device.reserve_bytes = 2 * GiB;
        vram_->change(device);
        QTest::qWait(300);
        QCOMPARE(track()->reserve_bytes(), under_the_hand);
        QTest::mouseRelease(track(), Qt::LeftButton, {}, from - QPoint(160, 0));
        QTRY_COMPARE(track()->reserve_bytes(), 2 * GiB);  // free again, it shows what holds
        QVERIFY(!vram_->wishes().back().second.cap_bytes);
    }

    void to_the_edge_is_the_whole_card() {
        start();
        const QPoint from = track()->handle().toPoint();
        QTest::mousePress(track(), Qt::LeftButton, {}, from);
        move({-50, from.y()});
        QTest::mouseRelease(track(), Qt::LeftButton, {}, {-50, from.y()});
        QTRY_COMPARE(newest(), std::optional(12 * GiB));
        QCOMPARE(track()->value(), track()->maximum());
    }

    void a_click_beside_the_handle_is_a_step() {
        start();
        QTest::mouseClick(track(), Qt::LeftButton, {}, {track()->width() / 3, track()->height() / 2});
        QTRY_COMPARE(newest(), std::optional(2 * GiB));
        QTest::mouseClick(track(), Qt::LeftButton, {}, {track()->width() - 12, track()->height() / 2});
        QTRY_COMPARE(newest(), std::optional(GiB));
    }

    void keys_data() {
        QTest::addColumn<bool>("mirrored");
        QTest::newRow("left to right") << false;
        QTest::newRow("right to left") << true;
    }
    void keys() {
        QFETCH(bool, mirrored);
        if (mirrored) QGuiApplication::setLayoutDirection(Qt::RightToLeft);
        start();
        track()->setFocus();
        const double at = track()->handle().x();
        const auto press = [&](Qt::Key key, std::uint64_t expected) {
            QTest::keyClick(track(), key);
            QCOMPARE(track()->reserve_bytes(), expected);
            QTRY_COMPARE(newest(), std::optional(expected));
        };
        press(Qt::Key_Left, mirrored ? 768 * MiB : GiB + 256 * MiB);
        QVERIFY(track()->handle().x() < at);  // the way of the arrow
        press(Qt::Key_Right, GiB);
        press(Qt::Key_PageUp, 2 * GiB);
        QCOMPARE(track()->handle().x() < at, !mirrored);
        press(Qt::Key_Up, 2 * GiB + 256 * MiB);
        press(Qt::Key_Down, 2 * GiB);
        press(Qt::Key_PageDown, GiB);
        press(Qt::Key_Home, 12 * GiB);
        press(Qt::Key_End, 0);
    }

    void a_wheel_moves_nothing() {
        start();
        QWheelEvent wheel(track()->rect().center(), track()->mapToGlobal(track()->rect().center()), {}, {0, 120}, Qt::NoButton, Qt::NoModifier, Qt::NoScrollPhase, false);
        QCoreApplication::sendEvent(track(), &wheel);
        QTest::qWait(60);
        QVERIFY(vram_->wishes().empty());
    }

    void it_speaks_to_screen_readers() {
        start();
        auto* reader = QAccessible::queryAccessibleInterface(track());
        QVERIFY(reader && reader->valueInterface());
        QCOMPARE(reader->valueInterface()->currentValue().toInt(), 1024);
        QCOMPARE(reader->valueInterface()->maximumValue().toInt(), 12 * 1024);
        QCOMPARE(reader->text(QAccessible::Name), QStringLiteral("Keep free for other programs, in MiB"));
        QCOMPARE(plain(reader->text(QAccessible::Description)),
                 QStringLiteral("1.0 GiB of 12.0 GiB are kept free. 3.5 GiB free · about 71 tok/s. Other programs: 1.0 GiB. Conversations (KV): 1.0 GiB. "
                                "Weights: 6.0 GiB. Working memory: 512.0 MiB. Free: 3.5 GiB."));
        reader->valueInterface()->setCurrentValue(3 * 1024);
        QTRY_COMPARE(newest(), std::optional(3 * GiB));
    }

    // Between what was measured, never beyond it.
    void expectation_follows_the_measured_curve() {
        const auto device = ScriptedVram::card();
        const auto words = [&](std::uint64_t reserve) { return plain(expectation(device, reserve)); };
        QCOMPARE(words(0), QStringLiteral("3.5 GiB free · about 71 tok/s"));            // all of it fits
        QCOMPARE(words(7 * GiB), QStringLiteral("7.0 GiB free · about 40 tok/s"));      // a point
        QCOMPARE(words(8 * GiB), QStringLiteral("8.0 GiB free · about 30 tok/s"));      // half-way between two
        QCOMPARE(words(9 * GiB), QStringLiteral("9.0 GiB free · about 20 tok/s"));
        QCOMPARE(words(10 * GiB), QStringLiteral("10.0 GiB free"));                     // less was never measured
        QCOMPARE(words(12 * GiB), QStringLiteral("11.0 GiB free"));                     // the rest is held by others
        auto unmeasured = device;
        unmeasured.speeds.clear();
        QCOMPARE(plain(expectation(unmeasured, 0)), QStringLiteral("3.5 GiB free"));
        auto more = device;
        more.full_bytes = 10 * GiB;
        QCOMPARE(plain(expectation(more, 3 * GiB + 300 * MiB)), QStringLiteral("3.3 GiB free · about 71 tok/s"));  // the last point reaches 256 MiB on
        QCOMPARE(plain(expectation(more, 2 * GiB)), QStringLiteral("2.0 GiB free"));
        more.wish.cap_bytes = 4 * GiB;
        QCOMPARE(plain(expectation(more, 0)), QStringLiteral("7.0 GiB free · about 40 tok/s"));
    }

    void reports_in_words_data() {
        QTest::addColumn<engine::VramReport>("report");
        QTest::addColumn<QString>("words");
        auto report = ScriptedVram::report();
        QTest::newRow("gave") << report << QStringLiteral("Gave back 4.0 GiB in 31 ms · 2,890 of 6,144 experts on the card");
        report.cause = engine::VramCause::yield;
        report.block_name = "layers";
        report.blocks_resident = 20;
        report.blocks_total = 48;
        report.total_ms = 7.25;
        QTest::newRow("yielded") << report << QStringLiteral("Other programs needed memory: gave back 4.0 GiB in 7.3 ms · 20 of 48 layers on the card");
        report.parked = true;
        report.own_after = 0;
        QTest::newRow("parked") << report << QStringLiteral("Other programs needed memory: gave back 7.5 GiB in 7.3 ms · parked: nothing is left on the card");
        report = ScriptedVram::report();
        std::swap(report.own_before, report.own_after);
        report.cause = engine::VramCause::regrow;
        report.total_ms = 12'340;
        QTest::newRow("took") << report << QStringLiteral("Other programs gave memory back: took 4.0 GiB in 12.3 s · 2,890 of 6,144 experts on the card");
        report = ScriptedVram::report();
        report.met = false;
        report.reserve_bytes = 8 * GiB;
        report.free_after = 6 * GiB + 512 * MiB;
        report.limited_by = "the rest is held by other programs";
        QTest::newRow("missed") << report << QStringLiteral("Wanted 8.0 GiB free, 6.5 GiB are: the rest is held by other programs");
        report.reserve_bytes = 0;
        report.wish.cap_bytes = 3 * GiB;
        report.limited_by.clear();
        QTest::newRow("cap missed") << report << QStringLiteral("Wanted to use 3.0 GiB at most, 3.5 GiB are in use");
        report = ScriptedVram::report();
        report.own_after = report.own_before;
        QTest::newRow("nothing") << report << QStringLiteral("Nothing had to change · 2,890 of 6,144 experts on the card");
        report.cause = engine::VramCause::load;
        QTest::newRow("loaded") << report << QStringLiteral("The model holds 7.5 GiB of the card · 2,890 of 6,144 experts on the card");
    }
    void reports_in_words() {
        QFETCH(engine::VramReport, report);
        QFETCH(QString, words);
        start();
        QVERIFY(line().startsWith(QStringLiteral("Drag ◆")));
        vram_->tell(report);
        QTRY_COMPARE(line(), words);
        QVERIFY(!fixture_->find("vram_why"));
    }

    void figures_follow_while_the_window_is_seen() {
        start();
        auto device = ScriptedVram::card();
        device.free_bytes = GiB;
        vram_->change(device);
        QTRY_VERIFY(plain(track()->accessibleDescription()).contains(QStringLiteral("Other programs: 3.5 GiB")));
        fixture_->window().hide();
        QTest::qWait(300);
        QSignalSpy figures(&fixture_->program->vram(), &VramController::figures_changed);
        QTest::qWait(900);
        QVERIFY2(figures.size() <= 1, qPrintable(QString::number(figures.size())));  // for the history only
        fixture_->window().show();
        QTRY_VERIFY(figures.size() > 4);
    }

    void growing_and_parked_have_words_of_their_own() {
        start();
        auto device = ScriptedVram::card();
        device.growing = true;
        device.weights_bytes = 2 * GiB + 256 * MiB;
        device.free_bytes = 7 * GiB + 256 * MiB;
        vram_->change(device);
        QTRY_COMPARE(line(), QStringLiteral("Taking memory back: 3.8 GiB of 7.5 GiB"));
        QCOMPARE(fixture_->find<QProgressBar>("vram_growing")->value(), 500);
        device = ScriptedVram::card();
        device.parked = true;
        device.weights_bytes = device.kv_bytes = device.scratch_bytes = 0;
        device.free_bytes = 11 * GiB;
        vram_->change(device);
        QTRY_COMPARE(line(), QStringLiteral("Parked: the next message brings back what it needs"));
        QVERIFY(!fixture_->find("vram_growing"));
        auto report = ScriptedVram::report();
        report.parked = true;
        vram_->tell(report);
        QTRY_COMPARE(line(), QStringLiteral("Gave back 4.0 GiB in 31 ms · parked: nothing is left on the card; the next message brings back what it needs"));
    }

    void disabled_with_the_reason_data() {
        QTest::addColumn<QString>("verdict");
        QTest::addColumn<QString>("words");
        QTest::newRow("fixed") << QStringLiteral("fixed") << QStringLiteral("This card gives memory back only when the model is closed: segment 2 shows segment 1");
        QTest::newRow("off") << QStringLiteral("off") << QStringLiteral("This card's memory stays as it is while a model is loaded: segment 2 shows segment 1");
    }
    void disabled_with_the_reason() {
        QFETCH(QString, verdict);
        QFETCH(QString, words);
        auto device = ScriptedVram::card();
        device.verdict = verdict.toStdString();
        device.reason = "segment 2 shows segment 1";
        device.elastic = false;
        vram_->change(device);
        start();
        QCOMPARE(line(), words);
        QVERIFY(!track()->isEnabled());
        const QPoint from = track()->handle().toPoint();
        QTest::mousePress(track(), Qt::LeftButton, {}, from);
        move(from - QPoint(100, 0));
        QTest::mouseRelease(track(), Qt::LeftButton, {}, from - QPoint(100, 0));
        QTest::keyClick(track(), Qt::Key_Left);
        QTest::qWait(60);
        QVERIFY(vram_->wishes().empty());
        for (QAction* action : menu()->actions()) QVERIFY(action->isSeparator() || !action->isEnabled());
        QVERIFY(plain(track()->accessibleDescription()).endsWith(QStringLiteral("It cannot be changed: segment 2 shows segment 1")));
        fixture_->click("vram_why");
        QVERIFY(fixture_->find("devices_page"));
    }

    void presets_data() {
        QTest::addColumn<int>("preset");
        QTest::addColumn<quint64>("reserve");  // the largest number: none
        QTest::newRow("Everything") << 0 << quint64{0};
        QTest::newRow("Desktop") << 1 << quint64{UINT64_MAX};
        QTest::newRow("Gaming") << 2 << quint64{8 * GiB};
        QTest::newRow("Park") << 3 << quint64{12 * GiB};
    }
    void presets() {
        QFETCH(int, preset);
        QFETCH(quint64, reserve);
        auto device = ScriptedVram::card();
        device.wish = {.reserve_bytes = 5 * GiB, .cap_bytes = 10 * GiB};
        vram_->change(device);
        start();
        for (QAction* action : menu()->actions()) QVERIFY(!action->isChecked());
        QAction* action = menu()->actions().at(preset);
        QVERIFY(action->text().startsWith(QLatin1String(QTest::currentDataTag())));
        action->trigger();
        QTRY_COMPARE(vram_->wishes().size(), 1U);
        const engine::VramWish wish = vram_->wishes().front().second;
        QCOMPARE(wish.reserve_bytes, reserve == UINT64_MAX ? std::nullopt : std::optional<std::uint64_t>(reserve));
        QCOMPARE(wish.cap_bytes, std::optional(10 * GiB));  // stays
        QVERIFY(menu()->actions().at(preset)->isChecked());
        QCOMPARE(track()->reserve_bytes(), reserve == UINT64_MAX ? GiB : reserve);
    }

    void the_context_menu_opens_for_keys_too() {
        start();
        QContextMenuEvent event(QContextMenuEvent::Keyboard, track()->rect().center(), track()->mapToGlobal(track()->rect().center()));
        QCoreApplication::sendEvent(track(), &event);
        QTRY_VERIFY(fixture_->window().findChild<QMenu*>(QStringLiteral("vram_menu"))->isVisible());
        QTest::keyClick(fixture_->window().findChild<QMenu*>(QStringLiteral("vram_menu")), Qt::Key_Escape);
    }

    void without_a_gpu_it_says_so() {
        fixture_->script->vram = nullptr;
        start();
        QTRY_COMPARE(line(), QStringLiteral("Running on the processor: no NVIDIA or AMD GPU was found"));
        QVERIFY(!fixture_->find("vram_track"));
    }

    void a_card_that_is_not_used_shows_its_memory() {
        fixture_->script->vram = nullptr;
        auto card = DeviceScript::card("cuda:0", "NVIDIA GeForce RTX 4070");
        card.verdict = DeviceScript::on();
        fixture_->devices->list = {.devices = {card}, .explanation = {}};
        fixture_->devices->memory["cuda:0"] = {.total = 12 * GiB, .used = 3 * GiB, .free = 9 * GiB, .own = {}};
        start();
        QTRY_COMPARE(line(), QStringLiteral("Running on the processor: the model holds nothing of this card"));
        QTRY_VERIFY(fixture_->find("vram_track"));
        QVERIFY(!track()->isEnabled());
        QVERIFY(plain(track()->accessibleDescription()).contains(QStringLiteral("Other programs: 3.0 GiB. Free: 9.0 GiB.")));
        QVERIFY(!fixture_->find("vram_menu_button"));
        // Nobody reads its counter again and again: once when the window is shown, once when the model has changed.
        QTest::qWait(700);
        QVERIFY(fixture_->devices->reads() <= 2);
    }

    void the_model_comes_and_goes() {
        fixture_->start(false);
        QCOMPARE(line(), QStringLiteral("No model is loaded"));
        fixture_->script->hold();
        fixture_->program->open_first_model({}, 0, 0);
        QTRY_COMPARE(line(), QStringLiteral("The model is being loaded"));
        fixture_->script->go();
        QTRY_VERIFY(line().startsWith(QStringLiteral("Drag ◆")));
        QCOMPARE(vram_->listeners(), 1);
        vram_->tell(ScriptedVram::report());
        QTRY_VERIFY(line().startsWith(QStringLiteral("Gave back")));
        // Unloaded for another one: nothing of the old one is left.
        vram_->close();
        QTest::qWait(300);
        const auto old = std::exchange(vram_, std::make_shared<ScriptedVram>());
        fixture_->script->vram = vram_;
        fixture_->script->hold();
        fixture_->window().open_model(QStringLiteral("/models/other.gguf"));
        QCOMPARE(line(), QStringLiteral("The model is being loaded"));
        QCOMPARE(old->listeners(), 0);
        fixture_->script->go();
        QTRY_VERIFY(fixture_->ready());
        QVERIFY(line().startsWith(QStringLiteral("Drag ◆")));
    }

    void two_cards_fold_to_the_fuller_one() {
        auto small = ScriptedVram::card();
        small.weights_bytes = GiB;
        auto big = ScriptedVram::card();
        big.id = "cuda:1";
        big.name = "NVIDIA GeForce RTX 5090";
        vram_ = std::make_shared<ScriptedVram>(std::vector{small, big});
        fixture_->script->vram = vram_;
        start();
        QCOMPARE(shown("vram_name"), QStringList({QStringLiteral("RTX 5090")}));
        fixture_->click("vram_toggle");
        QCOMPARE(shown("vram_name"), QStringList({QStringLiteral("RTX 5090"), QStringLiteral("RTX 4070")}));
        auto report = ScriptedVram::report();
        vram_->tell(report);
        QTRY_VERIFY(line().startsWith(QStringLiteral("RTX 4070: Gave back 4.0 GiB")));
        fixture_->click("vram_toggle");
        QCOMPARE(shown("vram_name").size(), 1);
    }

    void ten_minutes_are_kept() {
        VramHistory history;
        auto device = ScriptedVram::card();
        for (std::int64_t second = 0; second < 1'000; ++second) {
            if (second == 900) continue;
            history.add(second, device, second == 999 ? 64.0 : 0.0);
            history.add(second, device, 1.0);  // one a second
        }
        QCOMPARE(history.samples().size(), 599U);
        QCOMPARE(history.samples().front().second, 400);
        const VramSample& last = history.samples().back();
        QCOMPARE(last.second, 999);
        QCOMPARE(last.total, 12 * GiB);
        QCOMPARE(last.others, GiB);
        QCOMPARE(last.kv, GiB);
        QCOMPARE(last.weights, 6 * GiB);
        QCOMPARE(last.scratch, 512 * MiB);
        QCOMPARE(last.tokens_per_second, 64.0);
        HistoryGraph graph(fixture_theme());
        graph.set_history(history);
        graph.resize(600, 160);
        const QImage image = graph.grab().toImage();
        const auto at = [&](int minutes, double share) {  // in the middle of a minute, from the bottom
            const double above = graph.fontMetrics().height() + 2;
            return image.pixelColor(static_cast<int>(600 - (minutes + 0.5) * 60), static_cast<int>(image.height() - above - share * (image.height() - 2 * above)));
        };
        const Theme& theme = fixture_theme();
        QCOMPARE(at(4, 0.5 / 12), theme.color(ColorRole::vram_others));
        QCOMPARE(at(4, 1.5 / 12), theme.color(ColorRole::vram_kv));
        QCOMPARE(at(4, 4.0 / 12), theme.color(ColorRole::vram_weights));
        QCOMPARE(at(4, 8.25 / 12), theme.color(ColorRole::vram_scratch));
    }

    // The history goes on while nobody looks; tokens per second are those of the last second.
    void answers_are_part_of_the_history() {
        fixture_->script->chunks.assign(143, "word ");
        start();
        fixture_->send(QStringLiteral("go"));
        fixture_->wait_idle();
        fixture_->window().hide();
        const auto fast = [&] {
            const VramHistory* history = fixture_->program->vram().history("cuda:0");
            return std::ranges::count_if(history->samples(), [](const VramSample& sample) { return std::abs(sample.tokens_per_second - 71) < 0.01; });
        };
        QTRY_COMPARE(fast(), 1);
        const std::size_t before = fixture_->program->vram().history("cuda:0")->samples().size();
        QTRY_VERIFY(fixture_->program->vram().history("cuda:0")->samples().size() >= before + 2);
        QCOMPARE(fixture_->program->vram().history("cuda:0")->samples().back().tokens_per_second, 0.0);
    }

private:
    void start() { fixture_->start(); }
    const Theme& fixture_theme() {
        if (!fixture_->program) start();
        return fixture_->program->theme();
    }
    VramTrack* track() const { return fixture_->window().findChild<VramTrack*>(QStringLiteral("vram_track")); }
    void move(QPoint to) const {
        QMouseEvent event(QEvent::MouseMove, to, track()->mapToGlobal(to), Qt::NoButton, Qt::LeftButton, Qt::NoModifier);
        QCoreApplication::sendEvent(track(), &event);
    }
    std::optional<std::uint64_t> newest() const { return vram_->wishes().empty() ? std::nullopt : vram_->wishes().back().second.reserve_bytes; }
    QString line() const { return plain(fixture_->window().findChild<QLabel*>(QStringLiteral("vram_line"))->text()); }
    QMenu* menu() const {
        auto* menu = fixture_->window().findChild<QMenu*>(QStringLiteral("vram_menu"));
        emit menu->aboutToShow();
        return menu;
    }
    QStringList shown(const char* name) const {
        QStringList all;
        for (const auto* label : fixture_->window().findChildren<QLabel*>(QLatin1String(name))) {
            if (label->isVisible()) all << label->text();
        }
        return all;
    }

    std::unique_ptr<WindowFixture> fixture_;
    std::shared_ptr<ScriptedVram> vram_;
};

QTEST_MAIN(TestVramBar)
#include "tst_vram_bar.moc"
