#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>

#include "core/base/paths.h"
#include "tests/ui/support/scripted_backend.h"
#include "ui/chat/chat_service.h"

using namespace headroom;
using namespace headroom::test;
using namespace headroom::ui;

class TestChatService : public QObject {
    Q_OBJECT

private slots:
    void init() {
        folder_ = std::make_unique<QTemporaryDir>();
        script_ = std::make_shared<Script>();
        engine_ = std::make_unique<EngineController>(std::make_unique<ScriptedBackend>(script_));
        store_ = std::make_unique<ChatStore>(from_utf8(folder_->path().toStdString()));
        QVERIFY(store_->open().isEmpty());
        chats_ = std::make_unique<ChatService>(*store_, *engine_);
    }
    void cleanup() {
        chats_.reset();
        store_.reset();
        engine_.reset();
    }

    void a_message_is_answered_and_kept() {
        load();
        ConversationSettings settings;
        settings.system_prompt = QStringLiteral("Be brief.");
        settings.sampling.temperature = 0;
        chats_->set_settings(settings);
        chats_->send(QStringLiteral("How do tides work?\nIn short."));
        QVERIFY(chats_->busy());
        QTRY_VERIFY(!chats_->busy());
        const auto request = script_->requests().at(0);
        QCOMPARE(request.turns.size(), 2U);
        QCOMPARE(request.turns[0].role, "system");
        QCOMPARE(request.turns[0].text, "Be brief.");
        QCOMPARE(request.turns[1].text, "How do tides work?\nIn short.");
        QCOMPARE(request.sampling.temperature, 0.0F);
        QCOMPARE(store_->conversations()[0].title, QStringLiteral("How do tides work?"));
        QCOMPARE(last().text, QStringLiteral("Hello there."));
        QCOMPARE(last().state, MessageState::complete);
        QCOMPARE(last().model, QStringLiteral("Guide"));
        const qint64 conversation = chats_->current();
        chats_->open(0);
        QVERIFY(chats_->tree().empty());
        chats_->open(conversation);
        QCOMPARE(last().text, QStringLiteral("Hello there."));
        QCOMPARE(chats_->settings().system_prompt, QStringLiteral("Be brief."));
        QCOMPARE(chats_->context_used(), 82);
    }

    void the_next_message_carries_the_conversation() {
        load();
        say("one");
        say("two");
        const auto request = script_->requests().at(1);
        QCOMPARE(request.turns.size(), 3U);
        QCOMPARE(request.turns[1].role, "assistant");
        QCOMPARE(request.turns[1].text, "Hello there.");
        QCOMPARE(request.conversation, script_->requests()[0].conversation);
    }

    void editing_and_regenerating_make_branches() {
        load();
        say("one");
        const auto first = chats_->tree().path();
        chats_->regenerate(first[1]);
        QTRY_VERIFY(!chats_->busy());
        const qint64 second_answer = chats_->tree().leaf();
        QCOMPARE(chats_->tree().siblings(second_answer), (std::vector{first[1], second_answer}));
        chats_->edit(first[0], QStringLiteral("other"));
        QTRY_VERIFY(!chats_->busy());
        QCOMPARE(chats_->tree().path().size(), 2U);
        QCOMPARE(script_->requests().back().turns.back().text, "other");
        QCOMPARE(chats_->tree().siblings(first[0]).size(), 2U);
        chats_->select_branch(first[0]);
        QCOMPARE(chats_->tree().leaf(), second_answer);
        const qint64 conversation = chats_->current();
        chats_->open(0);
        chats_->open(conversation);
        QCOMPARE(chats_->tree().leaf(), second_answer);  // the branch that was shown is shown again
    }

    void sent_before_the_model_is_ready() {
        chats_->send(QStringLiteral("early"));
        const qint64 answer = chats_->tree().leaf();
        QCOMPARE(chats_->progress(answer).phase, ChatService::Progress::Phase::waiting_for_model);
        load();
        QTRY_VERIFY(!chats_->busy());
        QCOMPARE(last().text, QStringLiteral("Hello there."));
    }

    void stopping_keeps_what_there_is() {
        load();
        script_->hold();
        chats_->send(QStringLiteral("one"));
        script_->release(1);
        QTRY_COMPARE(last().text, QStringLiteral("Hello"));
        chats_->stop();
        QTRY_VERIFY(!chats_->busy());
        QCOMPARE(last().state, MessageState::stopped);
        QCOMPARE(store_->messages(chats_->current()).back().text, QStringLiteral("Hello"));
    }

    void stopping_what_waits_for_a_model() {
        chats_->send(QStringLiteral("one"));
        chats_->stop();
        QVERIFY(!chats_->busy());
        QCOMPARE(last().state, MessageState::stopped);
    }

    void errors_stand_where_the_answer_would() {
        load();
        script_->answer_error = Error{ErrorKind::context_full, "It does not fit."};
        say("one");
        QCOMPARE(last().state, MessageState::failed);
        QCOMPARE(last().error, QStringLiteral("It does not fit."));
        script_->answer_error.reset();
        chats_->regenerate(chats_->tree().leaf());
        QTRY_COMPARE(last().state, MessageState::complete);
    }

    void an_answer_goes_on_while_another_conversation_is_open() {
        load();
        script_->hold();
        chats_->send(QStringLiteral("one"));
        const qint64 first = chats_->current();
        script_->release(1);
        QTRY_COMPARE(last().text, QStringLiteral("Hello"));
        chats_->open(0);
        chats_->send(QStringLiteral("two"));
        const qint64 second = chats_->current();
        QCOMPARE(chats_->progress(chats_->tree().leaf()).phase, ChatService::Progress::Phase::waiting_for_turn);
        chats_->open(first);
        QCOMPARE(last().text, QStringLiteral("Hello"));  // what was not saved yet, too
        QVERIFY(chats_->busy());
        script_->go();
        QTRY_VERIFY(!chats_->answering(first) && !chats_->answering(second));
        QCOMPARE(last().text, QStringLiteral("Hello there."));
        chats_->open(second);
        QCOMPARE(last().text, QStringLiteral("Hello there."));
    }

    void reasoning_is_timed() {
        load();
        script_->chunks = {"<think>", "Hm.", "</think>", "Yes."};
        script_->hold();
        chats_->send(QStringLiteral("one"));
        script_->release(2);
        QTRY_COMPARE(last().text, QStringLiteral("<think>Hm."));
        QCOMPARE(chats_->progress(last().id).phase, ChatService::Progress::Phase::thinking);
        QTest::qWait(30);
        script_->go();
        QTRY_VERIFY(!chats_->busy());
        QVERIFY(last().thinking_ms >= 30);
    }

    void opening_a_model_stops_the_answer_first() {
        load();
        script_->hold();
        chats_->send(QStringLiteral("one"));
        QTRY_COMPARE(script_->requests().size(), 1U);
        engine_->open({});
        script_->go();
        QTRY_COMPARE(last().state, MessageState::stopped);
        QTRY_COMPARE(engine_->model().state, ModelStatus::State::ready);
    }

    void deleting_forgets_the_session() {
        load();
        say("one");
        const qint64 conversation = chats_->current();
        chats_->remove(conversation);
        QCOMPARE(chats_->current(), 0);
        QTRY_COMPARE(script_->forgotten(), std::vector<std::int64_t>{conversation});
        chats_->restore(conversation);
        QCOMPARE(chats_->current(), conversation);
        QCOMPARE(last().text, QStringLiteral("Hello there."));
    }

private:
    void load() {
        engine_->open({});
        QTRY_COMPARE(engine_->model().state, ModelStatus::State::ready);
    }
    void say(const char* text) {
        chats_->send(QString::fromUtf8(text));
        QTRY_VERIFY(!chats_->busy());
    }
    const Message& last() const { return *chats_->tree().find(chats_->tree().leaf()); }

    std::unique_ptr<QTemporaryDir> folder_;
    std::shared_ptr<Script> script_;
    std::unique_ptr<EngineController> engine_;
    std::unique_ptr<ChatStore> store_;
    std::unique_ptr<ChatService> chats_;
};

QTEST_GUILESS_MAIN(TestChatService)
#include "tst_chat_service.moc"
