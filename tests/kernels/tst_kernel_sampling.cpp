#include <QTest>

#include <limits>

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
};

QTEST_GUILESS_MAIN(TestKernelSampling)
#include "tst_kernel_sampling.moc"
