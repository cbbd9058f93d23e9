#include <QElapsedTimer>
#include <QSignalSpy>
#include <QTest>

#include "core/base/bytes.h"
#include "tests/ui/support/closing_time.h"
#include "tests/ui/support/scripted_backend.h"
#include "ui/controller/engine_controller.h"

using namespace headroom;
using namespace headroom::test;
using namespace headroom::ui;

class TestEngineController : public QObject {
    Q_OBJECT

private slots:
    void init() {
        script_ = std::make_shared<Script>();
        engine_ = std::make_unique<EngineController>(std::make_unique<ScriptedBackend>(script_));
    }
    void cleanup() { engine_.reset(); }

    void loads_and_answers() {
        QSignalSpy progress(engine_.get(), &EngineController::load_progress);
        load();
        QCOMPARE(engine_->model().info.name, "Guide");
        QVERIFY(progress.size() >= 1);
        QSignalSpy text(engine_.get(), &EngineController::text_added);
        QSignalSpy finished(engine_.get(), &EngineController::answer_finished);
        engine_->answer(5, request());
        QTRY_COMPARE(finished.size(), 1);
        QCOMPARE(text.size(), 2);
        QCOMPARE(text[0][0].toLongLong(), 5);
        QCOMPARE(text[0][1].toString() + text[1][1].toString(), QStringLiteral("Hello there."));
        const auto outcome = finished[0][1].value<AnswerOutcome>();
        QCOMPARE(outcome.finish, engine::FinishReason::stop);
        QCOMPARE(outcome.stats.completion_tokens, 2);
    }

    void asks_before_loading_what_does_not_fit() {
        script_->inspection.estimate.weights_bytes = 40 * GiB;
        engine_->open({});
        QTRY_COMPARE(engine_->model().state, ModelStatus::State::asking);
        QVERIFY(script_->loads().empty());
        engine_->load_anyway();
        QTRY_COMPARE(engine_->model().state, ModelStatus::State::ready);
    }

    // A device's memory is being tested: the file is read meanwhile, the load waits.
    void loads_wait_while_they_are_held() {
        engine_->hold_loads(true);
        engine_->open({});
        QTRY_VERIFY(engine_->model().held);
        QCOMPARE(engine_->model().state, ModelStatus::State::inspecting);
        QVERIFY(script_->loads().empty());
        engine_->hold_loads(false);
        QTRY_COMPARE(engine_->model().state, ModelStatus::State::ready);
        QVERIFY(!engine_->model().held);
        // Cancelled while it waits: it does not begin.
        engine_->hold_loads(true);
        engine_->open({});
        QTRY_VERIFY(engine_->model().held);
        engine_->cancel_load();
        engine_->hold_loads(false);
        QTest::qWait(50);
        QCOMPARE(engine_->model().state, ModelStatus::State::none);
        QCOMPARE(script_->loads().size(), 1U);
    }

    void problems_are_told_in_words_data() {
        QTest::addColumn<int>("where");
        QTest::newRow("not found") << 0;
        QTest::newRow("unsupported") << 1;
        QTest::newRow("load") << 2;
    }
    void problems_are_told_in_words() {
        QFETCH(int, where);
        const Error error{ErrorKind::unsupported, "model.gguf: the family \"rwkv\" is not supported"};
        if (where == 0) script_->find_error = error;
        if (where == 1) script_->inspection.problem = error.message;
        if (where == 2) script_->load_error = error;
        engine_->open({});
        QTRY_COMPARE(engine_->model().state, ModelStatus::State::failed);
        QCOMPARE(engine_->model().problem, QString::fromStdString(error.message));
    }

    void cancelling_a_load_is_immediate() {
        script_->hold();
        engine_->open({});
        QTRY_COMPARE(engine_->model().state, ModelStatus::State::loading);
        engine_->cancel_load();
        QCOMPARE(engine_->model().state, ModelStatus::State::none);
        script_->go();
        load();  // the worker is free again
    }

    void the_newest_open_wins() {
        script_->hold();
        engine_->open({});
        QTRY_COMPARE(engine_->model().state, ModelStatus::State::loading);
        OpenRequest other;
        other.name = "other.gguf";
        engine_->open(other);
        script_->go();
        QTRY_COMPARE(engine_->model().state, ModelStatus::State::ready);
        QCOMPARE(engine_->model().path, std::filesystem::path("other.gguf"));
        QTest::qWait(20);
        QCOMPARE(engine_->model().path, std::filesystem::path("other.gguf"));
    }

    void stopping_an_answer() {
        load();
        script_->hold();
        QSignalSpy finished(engine_.get(), &EngineController::answer_finished);
        QSignalSpy text(engine_.get(), &EngineController::text_added);
        engine_->answer(1, request());
        engine_->answer(2, request());  // waits in the queue
        script_->release(1);
        QTRY_COMPARE(text.size(), 1);
        engine_->stop_answer(2);
        engine_->stop_answer(1);
        QTRY_COMPARE(finished.size(), 2);
        for (const auto& call : finished) QCOMPARE(call[1].value<AnswerOutcome>().finish, engine::FinishReason::cancelled);
        QCOMPARE(script_->requests().size(), 1U);  // the second one was never begun
    }

    void an_error_ends_an_answer() {
        load();
        script_->answer_error = Error{ErrorKind::context_full, "The conversation has 3000 tokens, the context 2048."};
        QSignalSpy finished(engine_.get(), &EngineController::answer_finished);
        engine_->answer(1, request());
        QTRY_COMPARE(finished.size(), 1);
        QCOMPARE(finished[0][1].value<AnswerOutcome>().error, QStringLiteral("The conversation has 3000 tokens, the context 2048."));
    }

    void closing_while_loading_or_answering_is_quick() {
        for (const bool answering : {false, true}) {
            if (answering) load();
            script_->hold();
            if (answering) {
                engine_->answer(1, request());
                QTRY_COMPARE(script_->requests().size(), 1U);
            } else {
                engine_->open({});
                QTRY_COMPARE(engine_->model().state, ModelStatus::State::loading);
            }
            QElapsedTimer time;
            time.start();
            engine_.reset();
            QVERIFY2(time.elapsed() < kClosingTime, qPrintable(QString::number(time.elapsed())));
            init();
        }
    }

private:
    void load() {
        engine_->open({});
        QTRY_COMPARE(engine_->model().state, ModelStatus::State::ready);
    }
    static AnswerRequest request() {
        AnswerRequest request;
        request.conversation = 1;
        request.turns = {{"user", "Hi"}};
        return request;
    }

    std::shared_ptr<Script> script_;
    std::unique_ptr<EngineController> engine_;
};

QTEST_GUILESS_MAIN(TestEngineController)
#include "tst_engine_controller.moc"
