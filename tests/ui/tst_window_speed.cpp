// How quick the window is: opening, scrolling a thousand conversations, closing. The bounds are wide (debug builds, busy machines, wine); the
// figures are printed.

#include <QElapsedTimer>
#include <QListView>
#include <QScrollBar>
#include <QSqlQuery>

#include <algorithm>

#include "tests/ui/support/window_fixture.h"

using namespace headroom;
using namespace headroom::test;
using namespace headroom::ui;

namespace {

void add_thousand_conversations(ChatStore& store) {
    QSqlQuery query(store.database().connection());
    query.exec(QStringLiteral("BEGIN"));
    for (int i = 0; i < 1'000; ++i) {
        const qint64 id = store.add_conversation(QStringLiteral("Conversation %1 about something that has a long title").arg(i), {});
        QSqlQuery time(store.database().connection());
        time.exec(QStringLiteral("UPDATE conversation SET updated_ms = updated_ms - %1 WHERE id = %2").arg(qint64{i} * 3'600'000).arg(id));
    }
    query.exec(QStringLiteral("COMMIT"));
}

// Rows were really painted: some pixels differ from the background.
bool has_text(const QImage& image) {
    int different = 0;
    for (int y = 0; y < image.height(); y += 2) {
        for (int x = 0; x < image.width(); ++x) different += image.pixel(x, y) != image.pixel(0, 0) ? 1 : 0;
    }
    return different > 100;
}

}  // namespace

class TestWindowSpeed : public QObject {
    Q_OBJECT

private slots:
    void opens_quickly() {
        WindowFixture fixture;
        QElapsedTimer time;
        time.start();
        fixture.start(false);
        fixture.window().grab();
        qInfo("from nothing to a painted window: %lld ms", time.elapsed());
        QVERIFY(time.elapsed() < 5'000);
    }

    void a_thousand_conversations_scroll() {
        WindowFixture fixture;
        fixture.start();
        add_thousand_conversations(fixture.program->store());
        QElapsedTimer time;
        time.start();
        emit fixture.program->chats().list_changed();
        const qint64 listed = time.elapsed();
        auto* list = fixture.find<QListView>("conversations");
        QVERIFY(list->model()->rowCount() > 1'000);
        std::vector<double> frames;
        for (int step = 0; step <= 100; ++step) {
            QElapsedTimer frame;
            frame.start();
            list->verticalScrollBar()->setValue(list->verticalScrollBar()->maximum() * step / 100);
            const QImage image = list->grab().toImage();
            frames.push_back(static_cast<double>(frame.nsecsElapsed()) / 1e6);
            QVERIFY(has_text(image));
        }
        std::ranges::sort(frames);
        qInfo("1,000 conversations: listed in %lld ms; scrolled frames: median %.2f ms, worst %.2f ms", listed, frames[50], frames.back());
        QVERIFY(frames[50] < 16);
    }

    void closes_quickly_while_loading_and_answering() {
        for (const bool answering : {false, true}) {
            WindowFixture fixture;
            fixture.script->chunks.assign(1'000, "word ");
            fixture.start(answering);
            fixture.script->hold();
            if (answering) {
                fixture.send(QStringLiteral("go"));
                QTRY_COMPARE(fixture.script->requests().size(), 1U);
            } else {
                fixture.program->open_first_model({}, 0, 0);
                QTRY_COMPARE(fixture.program->engine().model().state, ModelStatus::State::loading);
            }
            QElapsedTimer time;
            time.start();
            fixture.window().close();
            fixture.stop();
            qInfo("closed while %s: %lld ms", answering ? "answering" : "loading", time.elapsed());
            QVERIFY(time.elapsed() < 1'000);
        }
    }
};

QTEST_MAIN(TestWindowSpeed)
#include "tst_window_speed.moc"
