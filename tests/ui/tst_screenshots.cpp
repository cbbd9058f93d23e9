// Pictures of every state of the window, in <build>/screenshots: for people to look at. The test itself only proves that each state can be
// reached and painted.

#include <QDir>
#include <QPlainTextEdit>
#include <QScrollArea>
#include <QScrollBar>
#include <QSqlQuery>

#include <cmath>

#include "core/base/bytes.h"
#include "tests/ui/support/scripted_vram.h"
#include "tests/ui/support/window_fixture.h"
#include "ui/chat/message_list.h"
#include "ui/vram/history_graph.h"
#include "ui/vram/vram_track.h"

using namespace headroom;
using namespace headroom::test;
using namespace headroom::ui;

namespace {

const char* const kTides =
    "Tides are the rise and fall of the sea, made by the **pull of the Moon** and, about half as strongly, of the *Sun*.\n\n"
    "## Why two each day\n\n"
    "1. The Moon pulls the near side of the Earth more than its centre.\n"
    "2. The far side is pulled less, so that a second bulge stays behind.\n"
    "3. The Earth turns below both bulges.\n\n"
    "| Tide | Sun and Moon | Height |\n|---|---|--:|\n| spring tide | in one line | 1.4 × |\n| neap tide | at a right angle | 0.7 × |\n\n"
    "> Time and tide wait for no man.\n\n"
    "The height at a time `t` is a sum of waves:\n\n"
    "```cpp\n// Sum of harmonic constituents.\ndouble height(double t, std::span<const Wave> waves) {\n    double sum = 0;\n"
    "    for (const Wave& w : waves) sum += w.amplitude * std::cos(w.speed * t + w.phase);\n    return sum;  // metres\n}\n```\n\n"
    "- The period is about **12 h 25 min**\n- Coasts change it a lot:\n  - funnels raise it\n  - closed seas have almost none\n\n"
    "More is in [the encyclopedia](https://example.org/tides).";

}  // namespace

class TestScreenshots : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() {
        QCursor::setPos(2'000, 2'000);  // over nothing
        QVERIFY(QDir().mkpath(QStringLiteral(HEADROOM_SCREENSHOTS)));
    }
    void init() {
        QGuiApplication::setLayoutDirection(Qt::LeftToRight);
        fixture_ = std::make_unique<WindowFixture>();
        fixture_->script->answers["How do tides work?"] = {kTides};
        fixture_->script->answers["How much is 17 times 24?"] = {
            "<think>\n17 times 24 is 17 times 20 plus 17 times 4.\n340 + 68 = 408.\n</think>\n\n", "17 × 24 = **408**."};
    }
    void cleanup() { fixture_.reset(); }

    void empty() {
        start();
        shoot("empty");
    }
    void loading() {
        fixture_->script->hold();
        start(false);
        fixture_->script->inspection.estimate.weights_bytes = 18 * GiB;
        fixture_->script->inspection.estimate.available_ram = 52 * GiB;
        fixture_->window().open_model(QStringLiteral("/models/Qwen3-30B-A3B-Q4_K_M.gguf"));
        fixture_->script->release(4);
        fixture_->send(QStringLiteral("How do tides work?"));
        QTRY_VERIFY(fixture_->program->engine().model().progress.fraction > 0.4);
        QTest::qWait(60);
        shoot("loading");
    }
    void too_large() {
        start(false);
        fixture_->script->inspection.estimate.weights_bytes = 142 * GiB;
        fixture_->window().open_model(QStringLiteral("/models/Qwen3-235B-A22B-Q4_K_M.gguf"));
        QTRY_VERIFY(fixture_->find("load_anyway"));
        shoot("too-large");
    }
    void load_failed() {
        start(false);
        fixture_->script->inspection.problem =
            "rwkv-7.gguf: the family \"rwkv7\" is not supported. Headroom runs llama, qwen2, qwen3 and qwen3moe: choose a model of these.";
        fixture_->window().open_model(QStringLiteral("/models/rwkv-7.gguf"));
        QTRY_VERIFY(fixture_->find("strip_builtin"));
        shoot("load-failed");
    }
    void answering() {
        const QString text = QString::fromUtf8(kTides);
        auto& chunks = fixture_->script->answers["How do tides work?"];
        chunks.clear();
        for (const QString& word : text.split(u' ')) chunks.push_back((word + u' ').toStdString());
        start();
        fixture_->script->hold();
        fixture_->send(QStringLiteral("How do tides work?"));
        fixture_->script->release(60);
        QTest::qWait(200);
        shoot("answering");
    }
    void answer_with_markdown() {
        start();
        ask("How do tides work?");
        shoot("answer");
        fixture_->window().findChild<MessageList*>()->verticalScrollBar()->setValue(0);
        QTest::qWait(50);
        shoot("answer-top");
    }
    void reasoning() {
        start();
        ask("How much is 17 times 24?");
        shoot("reasoning-folded");
        fixture_->click("reasoning_toggle");
        shoot("reasoning-unfolded");
    }
    void edit() {
        start();
        ask("How much is 17 times 24?");
        fixture_->click("edit_message");
        shoot("edit");
    }
    void branches() {
        start();
        ask("How much is 17 times 24?");
        fixture_->click("regenerate");
        fixture_->wait_idle();
        fixture_->click("regenerate");
        fixture_->wait_idle();
        fixture_->click("branch_previous");
        shoot("branches");
    }
    void error() {
        fixture_->script->answer_error = Error{ErrorKind::context_full,
            "The conversation takes 2,311 tokens, but the context of this model has 2,048: begin a new chat, or raise the context in the settings."};
        start();
        ask("And what does that mean for sailors?");
        shoot("error");
    }
    void damaged_database() {
        QFile file(fixture_->folder.filePath(QStringLiteral("chats.sqlite")));
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write(QByteArray(10'000, 'x'));
        file.close();
        fixture_->start();
        shoot("damaged-database");
    }
    void sampling() {
        start();
        ask("How do tides work?");
        fixture_->click("sampling_button");
        QTest::qWait(50);
        shoot("sampling");
    }
    void dark() {
        start();
        fixture_->program->theme().set_mode(Theme::Mode::dark);
        ask("How do tides work?");
        shoot("dark");
        QTest::keyClick(&fixture_->window(), Qt::Key_N, Qt::ControlModifier);
        shoot("dark-empty");
        fixture_->program->theme().set_mode(Theme::Mode::light);
    }
    void right_to_left() {
        QGuiApplication::setLayoutDirection(Qt::RightToLeft);
        const QString answer = QStringLiteral("المد والجزر هما **ارتفاع وانخفاض** البحر.\n\n1. القمر يجذب الماء.\n2. الأرض تدور.\n\n```cpp\nint x;\n```");
        fixture_->script->answers["كيف يحدث المد؟"] = {answer.toStdString()};
        start();
        auto* input = fixture_->find<QPlainTextEdit>("message_input");
        input->setPlainText(QStringLiteral("كيف يحدث المد؟"));
        QTest::keyClick(input, Qt::Key_Return);
        fixture_->wait_idle();
        shoot("right-to-left");
        QGuiApplication::setLayoutDirection(Qt::LeftToRight);
    }
    void large_text() {
        start();
        fixture_->program->theme().set_text_percent(200);
        fixture_->window().resize(1400, 900);
        ask("How do tides work?");
        shoot("text-200");
        fixture_->program->theme().set_text_percent(100);
    }
    void thousand_conversations() {
        start(false);
        ChatStore& store = fixture_->program->store();
        QSqlQuery query(store.database().connection());
        query.exec(QStringLiteral("BEGIN"));
        const QStringList topics{QStringLiteral("Tides and the Moon"), QStringLiteral("C++ ABI questions"), QStringLiteral("A haiku about memory"), QStringLiteral("Words for rain"),
                                 QStringLiteral("How to fold a map so that it can be opened again")};
        for (int i = 0; i < 1'000; ++i) {
            const qint64 id = store.add_conversation(topics[i % topics.size()], {});
            QSqlQuery time(store.database().connection());
            time.exec(QStringLiteral("UPDATE conversation SET updated_ms = updated_ms - %1 WHERE id = %2").arg(qint64{i} * 14'400'000).arg(id));
        }
        query.exec(QStringLiteral("COMMIT"));
        emit fixture_->program->chats().list_changed();
        shoot("thousand-conversations");
    }
    void small_window() {
        start();
        fixture_->window().resize(480, 640);
        ask("How do tides work?");
        shoot("small");
    }
    void settings_and_log() {
        start();
        QTest::keyClick(&fixture_->window(), Qt::Key_Comma, Qt::ControlModifier);
        shoot("settings");
        fixture_->click("log_button");
        shoot("log");
    }
    void server_page() {
        const auto request = [](std::uint64_t number, const char* action, const char* stage, int status, int tokens, double seconds) {
            server::RequestRecord record;
            record.number = number;
            record.time = std::chrono::system_clock::now();
            record.action = action;
            record.stage = stage;
            record.status = status;
            record.completion_tokens = tokens;
            record.seconds = seconds;
            record.completion_tps = tokens / seconds;
            return record;
        };
        fixture_->server->set_requests(
            {request(9, "POST /v1/chat/completions", "answering", 0, 96, 1.6), request(10, "POST /api/generate", "queued", 0, 0, 0.2)},
            {request(8, "GET /v1/models", "done", 200, 0, 0.1), request(7, "POST /v1/chat/completions", "done", 400, 0, 0.1),
             request(6, "POST /v1/chat/completions", "done", 200, 300, 5.2)});
        start();
        fixture_->click("server_button");
        shoot("server-off");
        fixture_->click("server_switch");
        QTRY_VERIFY(fixture_->find("server_request_cancel"));
        fixture_->click("new_server_key");
        QTRY_VERIFY(fixture_->find("server_request_cancel"));
        shoot("server");
        fixture_->program->theme().set_mode(Theme::Mode::dark);
        auto* scroll = fixture_->find<QScrollArea>("server_scroll");
        shoot("server-dark");
        scroll->verticalScrollBar()->setValue(scroll->verticalScrollBar()->maximum());
        shoot("server-dark-end");
        fixture_->program->theme().set_mode(Theme::Mode::light);
        fixture_->window().resize(480, 640);
        shoot("server-small");
    }
    void devices_data() {
        QTest::addColumn<int>("width");
        QTest::addColumn<bool>("dark");
        QTest::newRow("devices") << 1120 << false;
        QTest::newRow("devices-dark") << 1120 << true;
        QTest::newRow("devices-narrow") << 440 << false;
        QTest::newRow("devices-narrow-dark") << 440 << true;
    }
    void devices() {
        QFETCH(int, width);
        QFETCH(bool, dark);
        DeviceScript& script = *fixture_->devices;
        script.list.explanation.clear();
        const auto add = [&](const char* id, const char* name, std::optional<engine::DeviceVerdict> verdict, const engine::DeviceMemory& memory) {
            script.list.devices.push_back(DeviceScript::card(id, name));
            script.list.devices.back().verdict = std::move(verdict);
            script.memory[id] = memory;
        };
        auto fixed = DeviceScript::off("segment 2 of 4 shows the pages of segment 1; one mapping for everything works, so memory is mapped once and not given back "
                                       "(HIP 7.2.53210, driver 6.12.12)");
        fixed.kind = engine::DeviceVerdict::Kind::fixed;
        fixed.meaning = "VRAM is mapped once and given back only when the model is closed.";
        add("cuda:0", "NVIDIA GeForce RTX 4070", DeviceScript::on(), {.total = 12'282 * MiB, .used = 7'900 * MiB, .free = 4'382 * MiB, .own = 6'100 * MiB});
        add("hip:0", "AMD Radeon AI PRO R9700", DeviceScript::off("the free VRAM by the runtime fell by 32 MiB for 32 MiB mapped and rose by 0 MiB after its release "
            "(HIP 7.2.53210, driver 6.12.12)"), {.total = 32'624 * MiB, .used = 1'900 * MiB, .free = 30'724 * MiB, .own = {}});
        add("hip:1", "AMD Radeon RX 7900 XTX", fixed, {.total = 24'560 * MiB, .used = 24'000 * MiB, .free = 560 * MiB, .own = {}});
        add("cuda:1", "NVIDIA GeForce RTX 5090", {}, {.total = 32'607 * MiB, .used = 300 * MiB, .free = 32'307 * MiB, .own = {}});
        script.hold();
        start(false);
        fixture_->program->theme().set_mode(dark ? Theme::Mode::dark : Theme::Mode::light);
        fixture_->window().resize(width, 900);
        fixture_->window().show_page(QStringLiteral("devices"));
        script.release(4);
        QTRY_VERIFY(fixture_->find("device_memory_bar"));
        QTest::qWait(100);
        shoot(QTest::currentDataTag());
        auto* scroll = fixture_->find<QScrollArea>("devices_scroll");
        scroll->verticalScrollBar()->setValue(scroll->verticalScrollBar()->maximum());
        shoot((std::string(QTest::currentDataTag()) + "-end").c_str());
        scroll->verticalScrollBar()->setValue(0);
        QTest::mouseClick(fixture_->window().findChildren<QWidget*>(QStringLiteral("device_steps_toggle")).at(1), Qt::LeftButton);
        QTest::qWait(50);
        scroll->verticalScrollBar()->setValue(width < 720 ? 600 : 320);
        shoot((std::string(QTest::currentDataTag()) + "-steps").c_str());
        fixture_->program->theme().set_mode(Theme::Mode::light);
    }
    void no_devices() {
        start(false);
        fixture_->window().show_page(QStringLiteral("devices"));
        QTRY_VERIFY(fixture_->find("devices_none"));
        shoot("devices-none");
        fixture_->window().resize(440, 760);
        shoot("devices-none-narrow");
    }
    // The VRAM bar, in every state, alone and narrow too: bar-*.png. The whole window once in each colour.
    void bar_data() {
        QTest::addColumn<QString>("state");
        QTest::addColumn<bool>("dark");
        for (const char* state : {"on", "full", "parked", "growing", "missed", "off", "processor", "two"}) {
            for (const bool dark : {false, true}) QTest::addRow("bar-%s%s", state, dark ? "-dark" : "") << QString::fromLatin1(state) << dark;
        }
    }
    void bar() {
        QFETCH(QString, state);
        QFETCH(bool, dark);
        std::vector cards{ScriptedVram::card()};
        engine::VramDevice& card = cards.front();
        auto report = ScriptedVram::report();
        if (state == QLatin1String("on")) {
            card.weights_bytes = 2 * GiB;
            card.free_bytes = 7 * GiB + 512 * MiB;
            card.wish.reserve_bytes = card.reserve_bytes = 7 * GiB;
        } else if (state == QLatin1String("full")) {
            card.free_bytes = 256 * MiB;
            card.wish.reserve_bytes = card.reserve_bytes = 0;
        } else if (state == QLatin1String("parked")) {
            card.weights_bytes = card.kv_bytes = card.scratch_bytes = 0;
            card.free_bytes = 11 * GiB;
            card.parked = report.parked = true;
            card.wish.reserve_bytes = card.reserve_bytes = report.reserve_bytes = 12 * GiB;
            report.own_after = 0;
        } else if (state == QLatin1String("growing")) {
            card.weights_bytes = 3 * GiB;
            card.free_bytes = 6 * GiB + 512 * MiB;
            card.growing = true;
        } else if (state == QLatin1String("missed")) {
            card.weights_bytes = 0;
            card.kv_bytes = 0;
            card.scratch_bytes = 0;
            card.free_bytes = 6 * GiB + 512 * MiB;
            card.wish.reserve_bytes = card.reserve_bytes = report.reserve_bytes = 8 * GiB;
            report.met = false;
            report.free_after = card.free_bytes;
            report.limited_by = "the rest is held by other programs";
        } else if (state == QLatin1String("off")) {
            card.name = "AMD Radeon AI PRO R9700";
            card.verdict = "off";
            card.elastic = false;
            card.reason = "the free VRAM by the runtime fell by 32 MiB for 32 MiB mapped and rose by 0 MiB after its release (HIP 7.2.53210, driver 6.12.12)";
        } else if (state == QLatin1String("two")) {
            cards.push_back(ScriptedVram::card());
            cards.back().id = "cuda:1";
            cards.back().name = "NVIDIA RTX PRO 6000 Blackwell Workstation Edition";
        }
        const auto vram = std::make_shared<ScriptedVram>(cards);
        if (state != QLatin1String("processor")) fixture_->script->vram = vram;
        start();
        fixture_->program->theme().set_mode(dark ? Theme::Mode::dark : Theme::Mode::light);
        if (state == QLatin1String("two")) fixture_->click("vram_toggle");
        if (state == QLatin1String("on") || state == QLatin1String("parked") || state == QLatin1String("missed")) vram->tell(report);
        QTest::qWait(80);
        const std::string name = QTest::currentDataTag();
        if (state == QLatin1String("on")) {
            fixture_->window().resize(1120, 720);
            fixture_->find("vram_track")->setFocus();
            ask("How do tides work?");
            shoot(("window-" + name).c_str());
        }
        save_bar(name);
        fixture_->window().resize(400, 640);
        save_bar(name + "-narrow");
        fixture_->program->theme().set_mode(Theme::Mode::light);
        if (dark) return;
        fixture_->program->theme().set_text_percent(200);
        fixture_->window().resize(1400, 900);
        save_bar(name + "-200");
        fixture_->window().resize(560, 900);
        save_bar(name + "-200-narrow");
        fixture_->program->theme().set_text_percent(100);
    }
    void bar_mirrored() {
        QGuiApplication::setLayoutDirection(Qt::RightToLeft);
        fixture_->script->vram = std::make_shared<ScriptedVram>();
        start();
        save_bar("bar-mirrored");
        fixture_->window().resize(400, 640);
        save_bar("bar-mirrored-narrow");
    }
    void history_data() {
        QTest::addColumn<bool>("dark");
        QTest::newRow("history") << false;
        QTest::newRow("history-dark") << true;
    }
    void history() {
        QFETCH(bool, dark);
        start(false);
        fixture_->program->theme().set_mode(dark ? Theme::Mode::dark : Theme::Mode::light);
        VramHistory history;
        for (int second = 0; second < 600; ++second) {
            auto card = ScriptedVram::card();
            const double game = second < 240 || second > 420 ? 0 : std::min({1.0, (second - 240) / 12.0, (420 - second) / 6.0});
            card.weights_bytes = static_cast<std::uint64_t>((6 - 4 * game) * static_cast<double>(GiB));
            card.kv_bytes = static_cast<std::uint64_t>(second) * MiB;
            card.free_bytes = card.total_bytes - card.own_bytes() - GiB - static_cast<std::uint64_t>(5 * game * static_cast<double>(GiB));
            const bool answers = second % 90 > 20;
            if (second < 100 || second > 130) history.add(second, card, answers ? 71 - 45 * game + 3 * std::sin(second / 3.0) : 0);
        }
        HistoryGraph graph(fixture_->program->theme());
        graph.setPalette(fixture_->program->theme().palette());
        graph.setAttribute(Qt::WA_StyledBackground);
        graph.setStyleSheet(QStringLiteral("background: %1").arg(fixture_->program->theme().color(ColorRole::page).name()));
        graph.set_history(history);
        for (const int width : {700, 360}) {
            graph.resize(width, graph.sizeHint().height());
            save(graph.grab(), (std::string(QTest::currentDataTag()) + "-" + std::to_string(width)).c_str());
        }
        fixture_->program->theme().set_mode(Theme::Mode::light);
    }
    void first_run() {
        fixture_->script->vram = std::make_shared<ScriptedVram>();
        start();
        QTRY_VERIFY(fixture_->find("empty_hint"));
        shoot("first-run");
    }

    void two_hundred_percent_scale() {
        start();
        ask("How do tides work?");
        QPixmap picture(fixture_->window().size() * 2);
        picture.setDevicePixelRatio(2);
        fixture_->window().render(&picture);
        save(picture, "scale-200");
    }

private:
    void start(bool load = true) {
        fixture_->start(load);
        fixture_->program->theme().set_mode(Theme::Mode::light);
        fixture_->window().resize(1120, 760);
    }
    void ask(const char* text) {
        fixture_->send(QString::fromUtf8(text));
        fixture_->wait_idle();
    }
    void shoot(const char* name) {
        QTest::qWait(60);
        save(fixture_->window().grab(), name);
    }
    void save_bar(const std::string& name) {
        QTest::qWait(60);
        save(fixture_->find("footer")->grab(), name.c_str());
    }
    static void save(const QPixmap& picture, const char* name) {
        QVERIFY(!picture.isNull());
        QVERIFY(picture.save(QStringLiteral(HEADROOM_SCREENSHOTS) + u'/' + QLatin1String(name) + QStringLiteral(".png")));
    }

    std::unique_ptr<WindowFixture> fixture_;
};

QTEST_MAIN(TestScreenshots)
#include "tst_screenshots.moc"
