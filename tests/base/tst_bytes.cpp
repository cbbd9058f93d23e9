#include <QTest>

#include "core/base/bytes.h"
#include "core/base/error.h"

using namespace headroom;

class TestBytes : public QObject {
    Q_OBJECT
private slots:
    void sizes() {
        QCOMPARE(format_bytes(0), std::string("0 B"));
        QCOMPARE(format_bytes(1023), std::string("1023 B"));
        QCOMPARE(format_bytes(1024), std::string("1.0 KiB"));
        QCOMPARE(format_bytes(MiB - 1), std::string("1.0 MiB"));
        QCOMPARE(format_bytes(8 * GiB), std::string("8.0 GiB"));
        QCOMPARE(format_bytes(~0ull), std::string("16.0 EiB"));
    }
    void checkedArithmetic() {
        QVERIFY(!checked_mul<std::uint64_t>(1ull << 32, 1ull << 32));
        QCOMPARE(*checked_mul<std::uint64_t>(3, 5), 15ull);
        QVERIFY(!checked_add<std::uint64_t>(~0ull, 1));
        QCOMPARE(*checked_round_up(33, 32), 64ull);
        QCOMPARE(*checked_round_up(64, 32), 64ull);
        QVERIFY(!checked_round_up(~0ull, 32));
    }
    void tryMacroHandsErrorsOn() {
        const auto inner = [](bool good) -> Result<int> {
            if (!good) return fail(ErrorKind::io, "no {}", 7);
            return 3;
        };
        const auto outer = [&](bool good) -> Result<int> {
            HR_TRY(const int value, inner(good));
            HR_CHECK(inner(good));
            return value + 1;
        };
        QCOMPARE(*outer(true), 4);
        QCOMPARE(outer(false).error().message, std::string("no 7"));
        QCOMPARE(outer(false).error().kind, ErrorKind::io);
    }
};

QTEST_GUILESS_MAIN(TestBytes)
#include "tst_bytes.moc"
