#include <QTest>

#include "core/base/quote.h"

using namespace headroom;

class TestQuote : public QObject {
    Q_OBJECT
private slots:
    void text_data() {
        QTest::addColumn<QByteArray>("in");
        QTest::addColumn<QByteArray>("out");
        QTest::newRow("empty") << QByteArray("") << QByteArray("");
        QTest::newRow("plain") << QByteArray("a b.c") << QByteArray("a b.c");
        QTest::newRow("two to four bytes") << QByteArray("ß€😀") << QByteArray("ß€😀");
        QTest::newRow("control characters") << QByteArray("a\n\t\x1B[0m\x7F") << QByteArray("a\\x0A\\x09\\x1B[0m\\x7F");
        QTest::newRow("zero byte") << QByteArray("a\0b", 3) << QByteArray("a\\x00b");
        QTest::newRow("C1 control character") << QByteArray("\xC2\x9B") << QByteArray("\\xC2\\x9B");
        QTest::newRow("no-break space") << QByteArray("\xC2\xA0") << QByteArray("\xC2\xA0");
        QTest::newRow("lone continuation") << QByteArray("\x80z") << QByteArray("\\x80z");
        QTest::newRow("never a first byte") << QByteArray("\xC0\xFF") << QByteArray("\\xC0\\xFF");
        QTest::newRow("cut off") << QByteArray("a\xE2\x82") << QByteArray("a\\xE2\\x82");
        QTest::newRow("overlong") << QByteArray("\xE0\x80\xAF") << QByteArray("\\xE0\\x80\\xAF");
        QTest::newRow("overlong of four") << QByteArray("\xF0\x8F\xBF\xBF") << QByteArray("\\xF0\\x8F\\xBF\\xBF");
        QTest::newRow("surrogate") << QByteArray("\xED\xA0\x80") << QByteArray("\\xED\\xA0\\x80");
        QTest::newRow("last before the surrogates") << QByteArray("\xED\x9F\xBF") << QByteArray("\xED\x9F\xBF");
        QTest::newRow("last of all") << QByteArray("\xF4\x8F\xBF\xBF") << QByteArray("\xF4\x8F\xBF\xBF");
        QTest::newRow("beyond the last") << QByteArray("\xF4\x90\x80\x80") << QByteArray("\\xF4\\x90\\x80\\x80");
    }
    void text() {
        QFETCH(QByteArray, in);
        QFETCH(QByteArray, out);
        QCOMPARE(printable(in.toStdString()), out.toStdString());
        QCOMPARE(quote(in.toStdString()), '"' + out.toStdString() + '"');
    }
    void quotesAndBackslashes() {
        QCOMPARE(quote("a\"b\\c"), std::string("\"a\\\"b\\\\c\""));
        QCOMPARE(printable("a\"b\\c"), std::string("a\"b\\c"));
    }
    void limits() {
        QCOMPARE(printable("abcdef", 6), std::string("abcdef"));
        QCOMPARE(printable("abcdefg", 6), std::string("abcdef…"));
        QCOMPARE(printable("abcdeß", 6), std::string("abcde…"));  // no half characters
        QCOMPARE(quote("abcd", 3), std::string("\"abc…\""));
        QCOMPARE(quote(std::string(80, 'x')), '"' + std::string(80, 'x') + '"');
        QCOMPARE(quote(std::string(81, 'x')), '"' + std::string(80, 'x') + "…\"");
    }
};

QTEST_GUILESS_MAIN(TestQuote)
#include "tst_quote.moc"
