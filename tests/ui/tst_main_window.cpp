#include <QClipboard>
#include <QComboBox>
#include <QDropEvent>
#include <QLabel>
#include <QLineEdit>
#include <QListView>
#include <QMimeData>
#include <QPlainTextEdit>
#include <QScrollBar>
#include <QStackedWidget>

#include "core/base/bytes.h"
#include "tests/ui/support/window_fixture.h"
#include "ui/chat/answer_view.h"
#include "ui/chat/context_bar.h"
#include "ui/chat/message_list.h"
#include "ui/markdown/text_view.h"
#include "ui/theme/icon_button.h"

using namespace headroom;
using namespace headroom::test;
using namespace headroom::ui;

class TestMainWindow : public QObject {
    Q_OBJECT

private slots:
    void init() { fixture_ = std::make_unique<WindowFixture>(); }
    void cleanup() { fixture_.reset(); }

    void a_chat_by_keyboard() {
        fixture_->script->chunks = {"The **Moon** pulls.\n\n", "```cpp\nint x;\n```\n"};
        fixture_->start();
        QVERIFY(fixture_->find("empty_state"));
        QTest::keyClicks(QApplication::focusWidget(), QStringLiteral("How do tides work?"));  // the field has the focus
        QTest::keyClick(QApplication::focusWidget(), Qt::Key_Return);
        fixture_->wait_idle();
        QCOMPARE(fixture_->find<TextView>("user_text")->toPlainText(), QStringLiteral("How do tides work?"));
        QCOMPARE(fixture_->find<TextView>("answer_text")->toPlainText(), QStringLiteral("The Moon pulls."));
        QVERIFY(fixture_->find("code_block"));
        QCOMPARE(fixture_->find<QLabel>("answer_figures")->text(), QStringLiteral("71 tok/s \u00b7 2 tokens"));
        QCOMPARE(fixture_->find<ContextBar>("context_bar")->text(), QStringLiteral("Context 42 of 2,048"));
        QCOMPARE(fixture_->find<QListView>("conversations")->model()->rowCount(), 2);  // "Today" and the chat
        QTest::keyClick(&fixture_->window(), Qt::Key_C, Qt::ControlModifier | Qt::ShiftModifier);
        QVERIFY(QGuiApplication::clipboard()->text().startsWith(QStringLiteral("The **Moon** pulls.")));
        QTest::keyClick(&fixture_->window(), Qt::Key_N, Qt::ControlModifier);
        QVERIFY(fixture_->find("empty_state"));
        QVERIFY(fixture_->find("message_input")->hasFocus());
    }

    void shift_enter_makes_a_line() {
        fixture_->start();
        auto* input = fixture_->find<QPlainTextEdit>("message_input");
        const int height = input->height();
        QTest::keyClicks(input, QStringLiteral("a"));
        QTest::keyClick(input, Qt::Key_Return, Qt::ShiftModifier);
        QTest::keyClicks(input, QStringLiteral("b"));
        QCOMPARE(input->toPlainText(), QStringLiteral("a\nb"));
        QVERIFY(input->height() > height);
        QTest::keyClick(input, Qt::Key_Return);
        fixture_->wait_idle();
        QCOMPARE(fixture_->script->requests()[0].turns.back().text, "a\nb");
        QCOMPARE(input->height(), height);
    }

    void examples_ask() {
        fixture_->start();
        fixture_->click("example_1");
        fixture_->wait_idle();
        QCOMPARE(fixture_->script->requests()[0].turns[0].text, "What is the reserve?");
    }

    void escape_stops_an_answer() {
        fixture_->script->chunks.assign(100, "word ");
        fixture_->start();
        fixture_->script->hold();
        fixture_->send(QStringLiteral("go"));
        fixture_->script->release(3);
        QTRY_VERIFY(fixture_->find<TextView>("answer_text"));
        QCOMPARE(fixture_->find<IconButton>("send_button")->accessibleName(), QStringLiteral("Stop"));
        QTest::keyClick(fixture_->find("message_input"), Qt::Key_Escape);
        fixture_->wait_idle();
        QVERIFY(fixture_->find<QLabel>("answer_figures")->text().contains(QStringLiteral("stopped")));
        QCOMPARE(fixture_->find<IconButton>("send_button")->accessibleName(), QStringLiteral("Send"));
    }

    void typing_while_the_model_loads() {
        fixture_->script->hold();
        fixture_->start(false);
        fixture_->program->open_first_model({}, 0, 0);
        fixture_->script->release(3);
        QTRY_VERIFY(fixture_->find<QLabel>("model_strip_detail") &&
                    fixture_->find<QLabel>("model_strip_detail")->text().contains(QStringLiteral("MiB of 16.0 MiB")));
        QVERIFY(fixture_->find("cancel_load"));
        fixture_->send(QStringLiteral("early"));
        QCOMPARE(fixture_->find<QLabel>("answer_status")->text(), QStringLiteral("Will be answered when the model is ready."));
        fixture_->script->go();
        fixture_->wait_idle();
        QVERIFY(!fixture_->find("model_strip"));
        QCOMPARE(fixture_->find<TextView>("answer_text")->toPlainText(), QStringLiteral("Hello there."));
    }

    void cancelling_a_load() {
        fixture_->script->hold();
        fixture_->start(false);
        fixture_->program->open_first_model({}, 0, 0);
        QTRY_VERIFY(fixture_->find("cancel_load"));
        QTRY_COMPARE(fixture_->program->engine().model().state, ModelStatus::State::loading);
        fixture_->click("cancel_load");
        QVERIFY(fixture_->find("load_again"));
        fixture_->script->go();
        fixture_->click("load_again");
        QTRY_VERIFY(fixture_->ready());
    }

    void a_model_that_does_not_fit_is_asked_about_in_the_page() {
        fixture_->script->inspection.estimate.weights_bytes = 40 * GiB;
        fixture_->start(false);
        fixture_->window().ask_for_file = [](QWidget*, const QString&) { return QStringLiteral("/models/big.gguf"); };
        QTest::keyClick(&fixture_->window(), Qt::Key_O, Qt::ControlModifier);
        QTRY_VERIFY(fixture_->find("load_anyway"));
        QVERIFY(fixture_->find<QLabel>("model_strip_title")->text().contains(QStringLiteral("big.gguf")));
        QVERIFY(fixture_->find<QLabel>("model_strip_detail")->text().contains(QStringLiteral("40.0 GiB")));
        fixture_->click("load_anyway");
        QTRY_VERIFY(fixture_->ready());
        QCOMPARE(fixture_->program->settings().text(Settings::Key::last_model), QStringLiteral("/models/big.gguf"));
    }

    void a_model_that_fails_says_what_to_do() {
        fixture_->script->inspection.problem = "big.gguf: the family \"rwkv\" is not supported; use llama, qwen2, qwen3 or qwen3moe";
        fixture_->start(false);
        fixture_->window().open_model(QStringLiteral("/models/big.gguf"));
        QTRY_VERIFY(fixture_->find("strip_builtin"));
        QVERIFY(fixture_->find<QLabel>("model_strip_detail")->text().contains(QStringLiteral("rwkv")));
        fixture_->script->inspection.problem.clear();
        fixture_->click("strip_builtin");
        QTRY_VERIFY(fixture_->ready());
    }

    void dropping_a_model_opens_it() {
        fixture_->start();
        QMimeData data;
        data.setUrls({QUrl::fromLocalFile(fixture_->folder.filePath(QStringLiteral("other.gguf")))});
        QDragEnterEvent enter(QPoint(50, 50), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
        QApplication::sendEvent(&fixture_->window(), &enter);
        QVERIFY(enter.isAccepted());
        QDropEvent drop(QPointF(50, 50), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
        QApplication::sendEvent(&fixture_->window(), &drop);
        QTRY_COMPARE(fixture_->script->loads().size(), 2U);
        QVERIFY(to_utf8(fixture_->script->loads()[1].path).ends_with("other.gguf"));
    }

    void edit_and_branches() {
        fixture_->start();
        fixture_->send(QStringLiteral("one"));
        fixture_->wait_idle();
        fixture_->click("edit_message");
        auto* editor = fixture_->find<QPlainTextEdit>("edit_input");
        QCOMPARE(editor->toPlainText(), QStringLiteral("one"));
        editor->selectAll();
        QTest::keyClicks(editor, QStringLiteral("two"));
        QTest::keyClick(editor, Qt::Key_Return);
        fixture_->wait_idle();
        QCOMPARE(fixture_->find<TextView>("user_text")->toPlainText(), QStringLiteral("two"));
        QCOMPARE(fixture_->find<QLabel>("branch_position")->text(), QStringLiteral("2/2"));
        fixture_->click("branch_previous");
        QCOMPARE(fixture_->find<TextView>("user_text")->toPlainText(), QStringLiteral("one"));
        fixture_->click("regenerate");
        fixture_->wait_idle();
        QCOMPARE(fixture_->window().findChildren<QLabel*>(QStringLiteral("branch_position")).size(), 2);
        QCOMPARE(fixture_->script->requests().size(), 3U);
    }

    void escape_leaves_an_edit_alone() {
        fixture_->start();
        fixture_->send(QStringLiteral("one"));
        fixture_->wait_idle();
        QTest::keyClick(&fixture_->window(), Qt::Key_E, Qt::ControlModifier);
        auto* editor = fixture_->find<QPlainTextEdit>("edit_input");
        QVERIFY(editor->hasFocus());
        QTest::keyClicks(editor, QStringLiteral("more"));
        QTest::keyClick(editor, Qt::Key_Escape);
        QVERIFY(!fixture_->find("edit_input"));
        QCOMPARE(fixture_->find<TextView>("user_text")->toPlainText(), QStringLiteral("one"));
        QCOMPARE(fixture_->script->requests().size(), 1U);
    }

    void reasoning_is_folded() {
        fixture_->script->chunks = {"<think>\nThe Moon…\n", "</think>\n\nTides."};
        fixture_->start();
        fixture_->send(QStringLiteral("one"));
        fixture_->wait_idle();
        QCOMPARE(fixture_->find<TextView>("answer_text")->toPlainText(), QStringLiteral("Tides."));
        QVERIFY(!fixture_->find("reasoning_text"));
        QVERIFY(fixture_->find<IconButton>("reasoning_toggle")->text().startsWith(QStringLiteral("Thought for ")));
        fixture_->click("reasoning_toggle");
        QCOMPARE(fixture_->find<TextView>("reasoning_text")->toPlainText(), QStringLiteral("The Moon\u2026"));
    }

    void errors_stand_in_the_answers_place() {
        fixture_->script->answer_error = Error{ErrorKind::context_full, "The conversation takes 3,000 tokens, the context has 2,048: begin a new chat."};
        fixture_->start();
        fixture_->send(QStringLiteral("one"));
        fixture_->wait_idle();
        QCOMPARE(fixture_->find<QLabel>("error_text")->text(), QString::fromStdString(fixture_->script->answer_error->message));
        fixture_->script->answer_error.reset();
        fixture_->click("retry");
        fixture_->wait_idle();
        QVERIFY(!fixture_->find("error_box"));
        QCOMPARE(fixture_->find<TextView>("answer_text")->toPlainText(), QStringLiteral("Hello there."));
    }

    // The view follows a growing answer, until the reader scrolls: then it does not move.
    void the_reader_is_not_moved() {
        fixture_->script->chunks.assign(400, "A line of an answer that grows.\n\n");
        fixture_->start();
        fixture_->script->hold();
        fixture_->send(QStringLiteral("go"));
        fixture_->script->release(100);
        auto* list = fixture_->find<MessageList>("message_list");
        QScrollBar* bar = list->verticalScrollBar();
        QTRY_VERIFY(bar->maximum() > 1'000);
        QTRY_COMPARE(bar->value(), bar->maximum());
        bar->setValue(300);
        QVERIFY(!list->follows());
        QVERIFY(fixture_->find("to_end"));
        const int before = bar->maximum();
        fixture_->script->release(100);
        QTRY_VERIFY(bar->maximum() > before + 500);
        QCOMPARE(bar->value(), 300);
        fixture_->click("to_end");
        QVERIFY(list->follows());
        fixture_->script->go();
        fixture_->wait_idle();
        QTRY_COMPARE(bar->value(), bar->maximum());
    }

    // At most some 30 updates a second reach the screen, however fast tokens come.
    void updates_are_limited() {
        fixture_->script->chunks.assign(3'000, "word ");
        fixture_->start();
        fixture_->send(QStringLiteral("go"));
        QElapsedTimer time;
        time.start();
        fixture_->wait_idle();
        const auto* list = fixture_->find<MessageList>("message_list");
        const double seconds = static_cast<double>(time.elapsed()) / 1000;
        qInfo("%d updates for 3,000 tokens in %.2f s", list->updates(), seconds);
        QVERIFY(list->updates() <= 3 + static_cast<int>(31 * seconds));
    }

    void long_conversations_show_their_end_first() {
        fixture_->start();
        const qint64 conversation = add_conversation(200);
        fixture_->program->chats().open(conversation);
        auto* list = fixture_->find<MessageList>("message_list");
        QScrollBar* bar = list->verticalScrollBar();
        QTRY_COMPARE(bar->value(), bar->maximum());
        QCOMPARE(list->shown_messages(), 30);
        QCOMPARE(bar->maximum() - bar->value(), 0);
        bar->setValue(10);  // near the top: earlier ones are put above, and what was read stays where it was
        QVERIFY(list->shown_messages() > 30);
        QVERIFY(bar->value() > 1'000);
    }

    void search_rename_delete_undo() {
        fixture_->start();
        fixture_->send(QStringLiteral("about tides"));
        fixture_->wait_idle();
        QTest::keyClick(&fixture_->window(), Qt::Key_N, Qt::ControlModifier);
        fixture_->send(QStringLiteral("about planets"));
        fixture_->wait_idle();
        auto* list = fixture_->find<QListView>("conversations");
        QCOMPARE(list->model()->rowCount(), 3);
        QTest::keyClick(&fixture_->window(), Qt::Key_F, Qt::ControlModifier);
        auto* search = fixture_->find<QLineEdit>("search");
        QVERIFY(search->hasFocus());
        QTest::keyClicks(search, QStringLiteral("tid"));
        QTRY_COMPARE(list->model()->rowCount(), 2);
        QTest::keyClick(search, Qt::Key_Down);
        QVERIFY(list->hasFocus());
        QTest::keyClick(list, Qt::Key_Return);
        QTRY_COMPARE(fixture_->find<TextView>("user_text")->toPlainText(), QStringLiteral("about tides"));
        fixture_->program->chats().rename(fixture_->program->chats().current(), QStringLiteral("Ebb and flow"));
        QCOMPARE(list->model()->index(1, 0).data().toString(), QStringLiteral("Ebb and flow"));
        list->setFocus();
        QTest::keyClick(list, Qt::Key_Delete);
        QCOMPARE(fixture_->find<QLabel>("notice_text")->text(), QStringLiteral("\u201cEbb and flow\u201d was deleted."));
        QVERIFY(fixture_->find("empty_state"));
        fixture_->click("notice_action");
        QTRY_COMPARE(fixture_->find<TextView>("user_text")->toPlainText(), QStringLiteral("about tides"));
        QVERIFY(!fixture_->find("notice"));
    }

    void sampling_and_system_prompt_belong_to_the_conversation() {
        fixture_->start();
        QTest::keyClick(&fixture_->window(), Qt::Key_P, Qt::ControlModifier | Qt::ShiftModifier);
        auto* prompt = fixture_->find<QPlainTextEdit>("system_prompt");
        QVERIFY(prompt->hasFocus());
        QTest::keyClicks(prompt, QStringLiteral("Be brief."));
        auto* seed = fixture_->find<QLineEdit>("seed");
        seed->setFocus();
        QTest::keyClicks(seed, QStringLiteral("7x"));  // digits only
        fixture_->send(QStringLiteral("one"));
        fixture_->wait_idle();
        QCOMPARE(fixture_->script->requests()[0].turns[0].text, "Be brief.");
        QCOMPARE(*fixture_->script->requests()[0].sampling.seed, 7U);
        const qint64 first = fixture_->program->chats().current();
        QTest::keyClick(&fixture_->window(), Qt::Key_N, Qt::ControlModifier);
        QCOMPARE(prompt->toPlainText(), QString());
        fixture_->program->chats().open(first);
        QCOMPARE(prompt->toPlainText(), QStringLiteral("Be brief."));
        QCOMPARE(seed->text(), QStringLiteral("7"));
    }

    void pages_by_keyboard() {
        fixture_->start();
        QTest::keyClick(&fixture_->window(), Qt::Key_Comma, Qt::ControlModifier);
        QVERIFY(fixture_->find("settings_page"));
        QTest::keyClick(&fixture_->window(), Qt::Key_Escape);
        QVERIFY(fixture_->find("chat_page"));
        fixture_->click("log_button");
        QVERIFY(fixture_->find<QPlainTextEdit>("log_text")->toPlainText().contains(QStringLiteral("loaded Guide")));
    }

    // The choice takes effect with the next load, and is there after a restart.
    void keys_and_values_of_8_bits_are_kept() {
        fixture_->start();
        QVERIFY(fixture_->script->loads().back().kv_type == engine::KvType::f16);
        QTest::keyClick(&fixture_->window(), Qt::Key_Comma, Qt::ControlModifier);
        auto* choice = fixture_->find<QComboBox>("kv_type");
        QCOMPARE(choice->currentText(), QStringLiteral("16 bit"));
        choice->setCurrentIndex(1);
        QCOMPARE(choice->currentText(), QStringLiteral("8 bit"));
        const std::size_t before = fixture_->script->loads().size();
        fixture_->click("reload_model");
        QTRY_COMPARE(fixture_->script->loads().size(), before + 1);
        QVERIFY(fixture_->script->loads().back().kv_type == engine::KvType::q8_0);
        fixture_->stop();
        fixture_->start();
        QVERIFY(fixture_->script->loads().back().kv_type == engine::KvType::q8_0);
        QTest::keyClick(&fixture_->window(), Qt::Key_Comma, Qt::ControlModifier);
        QCOMPARE(fixture_->find<QComboBox>("kv_type")->currentText(), QStringLiteral("8 bit"));
    }

    void text_grows_by_keyboard() {
        fixture_->start();
        QTest::keyClick(&fixture_->window(), Qt::Key_Plus, Qt::ControlModifier);
        QCOMPARE(fixture_->program->theme().text_percent(), 110);
        QTest::keyClick(&fixture_->window(), Qt::Key_0, Qt::ControlModifier);
        QCOMPARE(fixture_->program->theme().text_percent(), 100);
    }

    void a_damaged_database_is_told() {
        QFile file(fixture_->folder.filePath(QStringLiteral("chats.sqlite")));
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write(QByteArray(10'000, 'x'));
        file.close();
        fixture_->start();
        QVERIFY(fixture_->find<QLabel>("notice_text")->text().contains(QStringLiteral("chats.damaged-")));
        fixture_->send(QStringLiteral("one"));
        fixture_->wait_idle();
        QCOMPARE(fixture_->find<TextView>("answer_text")->toPlainText(), QStringLiteral("Hello there."));
    }

    void conversations_are_there_after_a_restart() {
        fixture_->start();
        fixture_->send(QStringLiteral("one"));
        fixture_->wait_idle();
        fixture_->stop();
        fixture_->start();
        auto* list = fixture_->find<QListView>("conversations");
        QCOMPARE(list->model()->rowCount(), 2);
        const QRect row = list->visualRect(list->model()->index(1, 0));
        QTest::mouseClick(list->viewport(), Qt::LeftButton, {}, row.center());
        QCOMPARE(fixture_->find<TextView>("answer_text")->toPlainText(), QStringLiteral("Hello there."));
    }

    void closing_in_the_middle_of_an_answer_keeps_it() {
        fixture_->script->chunks.assign(100, "word ");
        fixture_->start();
        fixture_->script->hold();
        fixture_->send(QStringLiteral("go"));
        fixture_->script->release(5);
        QTRY_VERIFY(fixture_->find<TextView>("answer_text") &&
                    fixture_->find<TextView>("answer_text")->toPlainText() == QStringLiteral("word word word word word"));
        fixture_->stop();
        fixture_->script->go();
        fixture_->start();
        const auto all = fixture_->program->store().conversations();
        QCOMPARE(fixture_->program->store().messages(all[0].id).back().text, QStringLiteral("word word word word word "));
    }

    // Every button that is only an icon, and every field, has a name for screen readers; icons have tooltips.
    void everything_has_a_name() {
        fixture_->script->chunks = {"<think>a</think>b\n\n```c\nx\n```"};
        fixture_->start();
        fixture_->send(QStringLiteral("one"));
        fixture_->wait_idle();
        for (const QWidget* widget : fixture_->window().findChildren<QWidget*>()) {
            if (widget->focusPolicy() == Qt::NoFocus || qobject_cast<const TextView*>(widget) || widget->focusProxy()) continue;
            const bool field = widget->inherits("QAbstractButton") || widget->inherits("QLineEdit") || widget->inherits("QPlainTextEdit") ||
                               widget->inherits("QAbstractSpinBox") || widget->inherits("QComboBox") || widget->inherits("QListView");
            if (!field || widget->objectName().startsWith(QLatin1String("qt_")) || !widget->isVisible()) continue;
            const auto* button = qobject_cast<const QAbstractButton*>(widget);
            const bool named = !widget->accessibleName().isEmpty() || (button && !button->text().isEmpty());
            QVERIFY2(named, qPrintable(widget->objectName() + QLatin1String(widget->metaObject()->className())));
            if (qobject_cast<const IconButton*>(widget)) QVERIFY2(!widget->toolTip().isEmpty(), qPrintable(widget->objectName()));
        }
    }

private:
    qint64 add_conversation(int messages) {
        ChatStore& store = fixture_->program->store();
        const qint64 conversation = store.add_conversation(QStringLiteral("Long"), {});
        qint64 parent = 0;
        for (int i = 0; i < messages; ++i) {
            Message m;
            m.conversation = conversation;
            m.parent = parent;
            m.role = i % 2 == 0 ? Role::user : Role::assistant;
            m.text = QStringLiteral("Message %1 with a few words.\n\nAnd a second paragraph.").arg(i);
            parent = store.add_message(m);
        }
        store.set_leaf(conversation, parent);
        return conversation;
    }

    std::unique_ptr<WindowFixture> fixture_;
};

QTEST_MAIN(TestMainWindow)
#include "tst_main_window.moc"
