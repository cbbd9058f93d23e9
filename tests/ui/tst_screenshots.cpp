// Pictures of every state of the window, in <build>/screenshots: for people to look at. The test itself only proves that each state can be
// reached and painted.

#include <QDir>
#include <QPlainTextEdit>
#include <QScrollBar>
#include <QSqlQuery>

#include "core/base/bytes.h"
#include "tests/ui/support/window_fixture.h"
#include "ui/chat/message_list.h"

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
    static void save(const QPixmap& picture, const char* name) {
        QVERIFY(!picture.isNull());
        QVERIFY(picture.save(QStringLiteral(HEADROOM_SCREENSHOTS) + u'/' + QLatin1String(name) + QStringLiteral(".png")));
    }

    std::unique_ptr<WindowFixture> fixture_;
};

QTEST_MAIN(TestScreenshots)
#include "tst_screenshots.moc"
