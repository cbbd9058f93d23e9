#include <QDateTime>
#include <QTemporaryDir>
#include <QTest>

#include <fstream>
#include <thread>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/paths.h"
#include "core/base/system.h"

using namespace headroom;

class TestSystem : public QObject {
    Q_OBJECT
private slots:
    void cores() {
        QVERIFY(physical_cores() >= 1);
        QVERIFY(physical_cores() <= static_cast<int>(std::thread::hardware_concurrency()));
    }
    void memory() {
        QVERIFY(total_ram() > 64 * MiB);
        QVERIFY(available_ram() > 0);
        QVERIFY(available_ram() <= total_ram());
    }
    // The peak grows by what is really touched.
    void peak() {
        const std::uint64_t before = peak_resident_bytes();
        QVERIFY(before > 0);
        constexpr std::size_t size = 64 * MiB;
        std::vector<char> touched(size, 1);
        QVERIFY(touched[size / 2] == 1);
        QVERIFY(peak_resident_bytes() >= size);
        QVERIFY(peak_resident_bytes() >= before);
        QVERIFY(peak_resident_bytes() <= total_ram());
    }
    void openFiles() {
        const auto limit = open_file_limit();
        const auto count = open_file_count();
#ifdef Q_OS_WIN
        QVERIFY(!limit && !count && !raise_open_file_limit(1000));
#else
        QVERIFY(limit && limit->soft > 0 && limit->soft <= limit->hard);
        QVERIFY(count && *count >= 3);
        {
            QTemporaryDir folder;
            std::ofstream file(from_utf8(folder.filePath("x").toStdString()));
            QCOMPARE(*open_file_count(), *count + 1);
        }
        QCOMPARE(*open_file_count(), *count);
        // Never lowered, never above the hard limit.
        QCOMPARE(raise_open_file_limit(1)->soft, limit->soft);
        const auto raised = raise_open_file_limit(~0ull);
        QVERIFY(raised->soft >= limit->soft);
        QCOMPARE(raised->soft, raised->hard);
        QCOMPARE(open_file_limit()->soft, raised->soft);
#endif
    }
    void time() {
        const auto seconds = [](const QDateTime& time) { return time.toSecsSinceEpoch() + time.offsetFromUtc(); };
        const qint64 before = seconds(QDateTime::currentDateTime());
        const qint64 now = local_time().time_since_epoch().count();
        const qint64 after = seconds(QDateTime::currentDateTime());
        QVERIFY2(before <= now && now <= after, qPrintable(QString("%1 %2 %3").arg(before).arg(now).arg(after)));
    }
};

QTEST_GUILESS_MAIN(TestSystem)
#include "tst_system.moc"
