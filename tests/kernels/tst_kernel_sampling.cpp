#include <QTest>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/compute/cpu/ops.h"
#include "tests/compute/random_data.h"
#include "tests/kernels/kernel_device.h"

using namespace headroom;
using namespace headroom::test;

class TestKernelSampling : public QObject {
    Q_OBJECT
private slots:
    void initTestCase_data() { KernelDevice::list(); }

    void argmaxIsTheCpus() {
        auto& device = KernelDevice::chosen();
        Random random(1);
        for (const std::int32_t n : {1, 2, 31, 33, 1000, 1024, 1025, 5003}) {
            const std::int32_t rows = 1 + random.below(5);
            auto values = random.values(rows * n);
            for (auto& value : values) value = std::round(4 * value) / 4;  // many ties: the lowest index counts
            if (n == 33) std::ranges::fill(values, -std::numeric_limits<float>::infinity());
            const Array<float> x(device, values);
            const Array<std::int32_t> out(device, static_cast<std::size_t>(rows));
            REQUIRE(kernels::argmax_rows(device.queue(), {.x = x.data(), .rows = rows, .n = n, .out = out.data()}));
            const auto seen = out.read();
            for (std::int32_t row = 0; row < rows; ++row) {
                QCOMPARE(seen[static_cast<std::size_t>(row)], static_cast<std::int32_t>(cpu::argmax(values.data() + std::int64_t(row) * n, n)));
            }
        }
    }

    void topIsASort() {
        auto& device = KernelDevice::chosen();
        Random random(2);
        struct Case {
            std::int32_t rows, n, k;
            int kind;  // 0: random, 1: many ties, 2: all equal, 3: sorted, largest last, 4: mostly -infinity, 5: mostly no numbers
        };
        std::vector<Case> cases = {{2, 1, 1, 0}, {1, 300, 256, 1}, {3, 1000, 40, 0}, {1, 1024, 256, 3}, {2, 5003, 256, 0}, {1, 5003, 100, 1},
                                   {1, 5000, 64, 2}, {1, 8192, 256, 3}, {1, 4099, 20, 4}, {1, 4099, 20, 5}, {1, 70, 64, 5}};
        if (!device.emulated()) {
            for (int kind = 0; kind < 6; ++kind) cases.push_back({3, 151936, 256, kind});
            cases.push_back({64, 32000, 40, 0});
        }
        for (const Case& c : cases) {
            auto values = random.values(std::int64_t{c.rows} * c.n);
            for (std::size_t i = 0; i < values.size(); ++i) {
                if (c.kind == 1) values[i] = std::round(2 * values[i]) / 2;  // -0 among them, which equals 0
                if (c.kind == 2) values[i] = 0.5F;
                if (c.kind == 3) values[i] = static_cast<float>(i % static_cast<std::size_t>(c.n));
                if (c.kind == 4 && i % 997 != 5) values[i] = -std::numeric_limits<float>::infinity();
                if (c.kind == 5 && i % 997 != 5) values[i] = std::numeric_limits<float>::quiet_NaN();
            }
            const Array<float> x(device, values), top(device, static_cast<std::size_t>(c.rows * c.k));
            const Array<std::int32_t> ids(device, static_cast<std::size_t>(c.rows * c.k));
            REQUIRE(kernels::top_rows(device.queue(), {.x = x.data(), .rows = c.rows, .n = c.n, .k = c.k, .values = top.data(), .ids = ids.data()}));
            for (float& value : values) value = std::isnan(value) ? -std::numeric_limits<float>::infinity() : value;
            std::vector<float> expected;
            std::vector<std::int32_t> expected_ids;
            for (std::int32_t row = 0; row < c.rows; ++row) {
                const float* at = values.data() + std::int64_t{row} * c.n;
                std::vector<std::int32_t> order(static_cast<std::size_t>(c.n));
                std::iota(order.begin(), order.end(), 0);
                std::partial_sort(order.begin(), order.begin() + c.k, order.end(), [&](int a, int b) { return at[a] > at[b] || (at[a] == at[b] && a < b); });
                for (std::int32_t i = 0; i < c.k; ++i) {
                    expected_ids.push_back(order[static_cast<std::size_t>(i)]);
                    expected.push_back(at[expected_ids.back()]);
                }
            }
            const auto text = QString("%1 of %2, kind %3").arg(c.k).arg(c.n).arg(c.kind);
            QVERIFY2(ids.read() == expected_ids, qPrintable(text));
            QVERIFY2(same_bits(top.read(), expected), qPrintable(text));
        }
    }

    void impossibleTopsAreRefused() {
        auto& device = KernelDevice::chosen();
        for (const std::int32_t k : {0, 257, 11}) {
            const auto result = kernels::top_rows(device.queue(), {.x = nullptr, .rows = 1, .n = k == 11 ? 10 : 1000, .k = k, .values = nullptr, .ids = nullptr});
            QVERIFY(!result && result.error().kind == ErrorKind::invalid_argument);
        }
    }
};

QTEST_GUILESS_MAIN(TestKernelSampling)
#include "tst_kernel_sampling.moc"
