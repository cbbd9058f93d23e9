// The emulator itself: that it runs what is right and says what is wrong.

#include <QTest>

#include <numeric>

#include "tests/kernels/emulator.h"

// The kernels of this test borrow names and structures: the emulator knows those of HR_KERNELS only. `n` says what to do wrong.
#define HR_EMULATED
#include "kernels/portable.h"

using namespace headroom;
using namespace headroom::test;
using kernels::Kernel;

namespace {

enum Mistake { none, lane_missing, lane_ends_early, lane_elsewhere, barriers_differ, barrier_and_warp };

}  // namespace

namespace headroom::device {

// Sums 64 numbers with warp functions, shared memory and a barrier.
HR_KERNEL(argmax_rows, ArgmaxArguments, 64) {
    const auto mistake = static_cast<Mistake>(a.n);
    __shared__ int sums[2];
    int sum = static_cast<int>(a.x[block_x() * 64 + thread()]);
    if (mistake == lane_ends_early && thread() == 40) return;
    if (mistake == lane_missing && thread() == 40) {
        sync();
    } else if (mistake == lane_elsewhere && thread() == 40) {
        sum += shuffle_xor(sum, 1);
    }
    for (int h = 16; h > 0; h >>= 1) sum += shuffle_xor(sum, h);
    if (lane() == 0) sums[warp()] = sum;
    if (mistake == barriers_differ && warp() == 1) {
        sync();
    } else {
        sync();
    }
    if (mistake == barrier_and_warp && thread() == 0) sync();
    if (mistake == barrier_and_warp && warp() == 0) sum = shuffle(sum, 0);
    if (thread() == 0) a.out[block_x()] = sums[0] + sums[1];
}

// A barrier is missing: every thread reads its neighbour's number, which is there in one order of threads only.
HR_KERNEL(top_rows, TopArguments, 256) {
    __shared__ int numbers[256];
    numbers[thread()] = block_x() * 1000 + thread();
    if (a.k == 1) sync();
    a.ids[block_x() * threads() + thread()] = numbers[thread() == 0 ? 0 : thread() - 1] + numbers[thread() == threads() - 1 ? thread() : thread() + 1];
}

// What dynamic shared memory holds before anything is written, and who is where.
HR_KERNEL(hand_over, HandOverArguments, 32) {
    const int block = (block_z() * 3 + block_y()) * grid_x() + block_x();
    for (int i = 0; i < a.width; ++i) {
        if (float_to_bits(reinterpret_cast<float*>(dynamic_shared())[i]) != 0xffffffffU) atomic_add(a.host_chosen, 1);
    }
    sync();
    for (int i = thread(); i < a.width; i += threads()) reinterpret_cast<float*>(dynamic_shared())[i] = 1.0F;
    if (thread() == 0) a.host_x[block] = static_cast<float>(block);
}

}  // namespace headroom::device

class TestEmulator : public QObject {
    Q_OBJECT
private slots:
    void runsBlocksAndWarps() {
        std::vector<float> x(640);
        std::iota(x.begin(), x.end(), 0.0F);
        std::vector<std::int32_t> out(10);
        const kernels::ArgmaxArguments arguments{.x = x.data(), .rows = 10, .n = none, .out = out.data()};
        REQUIRE(emulate(Kernel::argmax_rows, {10}, {64}, 0, &arguments));
        for (int block = 0; block < 10; ++block) QCOMPARE(out[static_cast<std::size_t>(block)], 64 * (64 * block) + 63 * 32);
    }

    void saysWhereThreadsAre_data() {
        QTest::addColumn<int>("mistake");
        QTest::addColumn<QString>("message");
        // The lane's barrier comes before the one that the other warp waits at.
        QTest::newRow("a lane waits at a barrier") << int(lane_missing) << "threads of a block are at different barriers: ";
        QTest::newRow("a lane has ended") << int(lane_ends_early) << "lane";
        QTest::newRow("a lane is at another warp function") << int(lane_elsewhere) << "lanes of a warp are at different warp functions: ";
        QTest::newRow("two barriers") << int(barriers_differ) << "threads of a block are at different barriers: ";
        QTest::newRow("a barrier and a warp function") << int(barrier_and_warp) << "threads of a block wait for each other at ";
    }
    void saysWhereThreadsAre() {
        QFETCH(int, mistake);
        QFETCH(QString, message);
        std::vector<float> x(128, 1.0F);
        std::vector<std::int32_t> out(2);
        const kernels::ArgmaxArguments arguments{.x = x.data(), .rows = 2, .n = mistake, .out = out.data()};
        const auto done = emulate(Kernel::argmax_rows, {2}, {64}, 0, &arguments);
        QVERIFY(!done);
        QCOMPARE(done.error().kind, ErrorKind::device);
        const auto text = QString::fromStdString(done.error().message);
        QVERIFY2(text.startsWith("argmax_rows: ") && text.contains(message) && text.contains("tst_emulator.cpp:"), qPrintable(text));
        runsBlocksAndWarps();  // and goes on
    }

    void missingBarrierShows() {
        constexpr int threads = 96;
        const auto wrong = [&](int barrier) {
            std::vector<std::int32_t> ids(4 * threads);
            const kernels::TopArguments arguments{.x = nullptr, .rows = 4, .n = 0, .k = barrier, .values = nullptr, .ids = ids.data()};
            if (!emulate(Kernel::top_rows, {4}, {threads}, 0, &arguments)) return -1;
            int count = 0;
            for (int i = 0; i < 4 * threads; ++i) {
                const int block = i / threads, thread = i % threads;
                count += ids[static_cast<std::size_t>(i)] != 2000 * block + std::max(thread - 1, 0) + std::min(thread + 1, threads - 1);
            }
            return count;
        };
        QCOMPARE(wrong(1), 0);
        QVERIFY(wrong(0) > 300);
    }

    void sharedMemoryIsFreshAndBlocksAreCounted() {
        std::vector<float> seen(24, -1.0F);
        std::int32_t stale = 0;
        kernels::HandOverArguments arguments{};
        arguments.width = 100;
        arguments.host_x = seen.data();
        arguments.host_chosen = &stale;
        REQUIRE(emulate(Kernel::hand_over, {4, 3, 2}, {32}, 400, &arguments));
        QCOMPARE(stale, 0);
        for (int block = 0; block < 24; ++block) QCOMPARE(seen[static_cast<std::size_t>(block)], static_cast<float>(block));
    }

    void refusesWrongLaunches() {
        const kernels::TopArguments arguments{};
        QCOMPARE(emulate(Kernel::top_rows, {1}, {257}, 0, &arguments).error().kind, ErrorKind::invalid_argument);
        QCOMPARE(emulate(Kernel::top_rows, {1}, {32, 2}, 0, &arguments).error().kind, ErrorKind::invalid_argument);
        QCOMPARE(emulate(Kernel::top_rows, {0}, {32}, 0, &arguments).error().kind, ErrorKind::invalid_argument);
        QCOMPARE(emulate(Kernel::await_host, {1}, {32}, 0, &arguments).error().kind, ErrorKind::not_found);
    }
};

QTEST_GUILESS_MAIN(TestEmulator)
#include "tst_emulator.moc"
