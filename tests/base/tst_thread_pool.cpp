#include <QTest>
#include <array>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "core/base/thread_pool.h"

using namespace headroom;

class TestThreadPool : public QObject {
    Q_OBJECT
private slots:
    void runsOnEveryThreadOnce() {
        for (int threads : {1, 2, 5}) {
            ThreadPool pool(threads);
            QCOMPARE(pool.size(), threads);
            std::vector<int> calls(static_cast<std::size_t>(threads));
            for (int round = 0; round < 1000; ++round) pool.run([&](int thread) { ++calls[static_cast<std::size_t>(thread)]; });
            for (int count : calls) QCOMPARE(count, 1000);
        }
    }
    void coversEachIndexOnce() {
        ThreadPool pool(3);
        for (std::int64_t count : {0, 1, 7, 64, 1000}) {
            for (std::int64_t grain : {1, 3, 64, 2000}) {
                std::vector<std::atomic<int>> seen(static_cast<std::size_t>(count));
                pool.parallel_for(count, grain, [&](std::int64_t begin, std::int64_t end, int thread) {
                    Q_ASSERT(thread >= 0 && thread < 3);
                    for (std::int64_t i = begin; i < end; ++i) seen[static_cast<std::size_t>(i)].fetch_add(1);
                });
                for (const auto& times : seen) QCOMPARE(times.load(), 1);
            }
        }
    }
    // Sections so short that workers come late, one upon the other: each piece is done once, by the section that it belongs to.
    void lateThreadsDoNoHarm() {
        ThreadPool pool(4);
        for (int round = 0; round < 5000; ++round) {
            std::array<int, 6> done{};
            pool.parallel_for(6, 2, [&](std::int64_t begin, std::int64_t end, int) {
                for (std::int64_t i = begin; i < end; ++i) ++done[static_cast<std::size_t>(i)];
            });
            for (const int times : done) QCOMPARE(times, 1);
            if (round % 16 != 0) continue;
            std::atomic<int> ran{0};
            pool.run([&](int) { ran.fetch_add(1); });
            QCOMPARE(ran.load(), 4);
        }
    }
    // A worker that went to sleep is woken: the section after a pause longer than any spinning still runs on all threads.
    void wakesSleepers() {
        ThreadPool pool(4);
        for (int round = 0; round < 20; ++round) {
            std::atomic<int> ran{0};
            pool.run([&](int) { ran.fetch_add(1); });
            QCOMPARE(ran.load(), 4);
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
    }
};

QTEST_GUILESS_MAIN(TestThreadPool)
#include "tst_thread_pool.moc"
