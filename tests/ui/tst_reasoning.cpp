#include <QTest>

#include "ui/chat/reasoning.h"

using namespace headroom::ui;

class TestReasoning : public QObject {
    Q_OBJECT

private slots:
    void split_data() {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("reasoning");
        QTest::addColumn<QString>("answer");
        QTest::addColumn<bool>("thinking");
        QTest::newRow("none") << "Hello" << "" << "Hello" << false;
        QTest::newRow("empty") << "" << "" << "" << false;
        QTest::newRow("whole") << "<think>\nHm.\n</think>\n\nYes." << "Hm." << "Yes." << false;
        QTest::newRow("open") << "<think>\nHm" << "Hm" << "" << true;
        QTest::newRow("opening tag begins") << "<thi" << "" << "" << true;
        QTest::newRow("no tag after all") << "<this" << "" << "<this" << false;
        QTest::newRow("opened in the prompt") << "Hm.</think>Yes." << "Hm." << "Yes." << false;
        QTest::newRow("tag in the middle") << "The tag <think> is" << "" << "The tag <think> is" << false;
        QTest::newRow("empty reasoning") << "<think>\n\n</think>\n\nYes." << "" << "Yes." << false;
    }
    void split() {
        QFETCH(QString, text);
        const AnswerParts parts = split_reasoning(text);
        QTEST(parts.reasoning.toString(), "reasoning");
        QTEST(parts.answer.toString(), "answer");
        QTEST(parts.thinking, "thinking");
    }
};

QTEST_GUILESS_MAIN(TestReasoning)
#include "tst_reasoning.moc"
