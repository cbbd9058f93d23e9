// How missing experts are dealt to the processor and the bus, by what layers take; and where the device sees registered memory.

#include <algorithm>
#include <cmath>
#include <vector>

#include <QTest>

#include "core/base/bytes.h"
#include "core/model/gpu/bus_share.h"
#include "core/residency/pinned_spans.h"
#include "kernels/arguments.h"
#include "tests/simgpu/fixture.h"

using namespace headroom;
using namespace headroom::model;
using namespace headroom::test;

namespace {

// Layers of eight missing experts on a machine where the processor takes `processor` us for an expert and the bus `bus`. Returns how many the device had in
// each layer.
std::vector<int> layers(BusShare& share, double processor, double bus, int count, int missing = 8) {
    std::vector<int> device;
    for (int i = 0; i < count; ++i) {
        const int read = kernels::read_by_device(missing, share.now());
        const double by_processor = processor * (missing - read), by_device = bus * read;
        BusShare::Observed observed{.by_device = read, .by_processor = missing - read, .processor_s = by_processor * 1e-6, .device_s = {}};
        if (by_device > by_processor) observed.device_s = by_device * 1e-6;
        if (observed.by_processor > 0) share.observe(observed);  // else nobody asks
        device.push_back(read);
    }
    return device;
}

// What the layers took in all, as a multiple of what they would have with the best number for each.
double loss(const std::vector<int>& device, double processor, double bus, int missing = 8) {
    double took = 0, best = 1e300;
    for (int k = 0; k <= missing; ++k) best = std::min(best, std::max(k * bus, (missing - k) * processor));
    for (const int k : device) took += std::max(k * bus, (missing - k) * processor);
    return took / (best * static_cast<double>(device.size()));
}

}  // namespace

class TstBusShare : public QObject {
    Q_OBJECT

private slots:
    void both_end_together_data() {
        QTest::addColumn<double>("processor");
        QTest::addColumn<double>("bus");
        QTest::newRow("a quick processor") << 20.0 << 70.0;
        QTest::newRow("alike") << 40.0 << 40.0;
        QTest::newRow("a slow processor") << 90.0 << 40.0;
        QTest::newRow("a very slow one") << 400.0 << 40.0;
        QTest::newRow("two and a half") << 20.0 << 50.0;
        QTest::newRow("a slow bus") << 20.0 << 1000.0;
    }
    void both_end_together() {
        QFETCH(const double, processor);
        QFETCH(const double, bus);
        BusShare share(std::nullopt);
        (void)layers(share, processor, bus, 480);  // ten words
        const double lost = loss(layers(share, processor, bus, 4800), processor, bus);
        QVERIFY2(lost < 1.03, qPrintable(QString::number(lost)));
    }

    // One layer in a thousand takes fifty times as long, since a core or the bus was taken away.
    void is_not_misled_by_one_layer() {
        for (const bool of_device : {false, true}) {
            BusShare share(std::nullopt);
            std::vector<int> all;
            for (int round = 0; round < 8; ++round) {
                const auto some = layers(share, 30, 60, 1000);
                all.insert(all.end(), some.begin(), some.end());
                share.observe({.by_device = 3, .by_processor = 5, .processor_s = of_device ? 150e-6 : 7500e-6,
                               .device_s = of_device ? std::optional(9000e-6) : std::nullopt});
            }
            const double lost = loss(all, 30, 60);
            QVERIFY2(lost < 1.03, qPrintable(QString::number(lost)));
        }
    }

    // A game begins: the processor becomes slow, and quick again.
    void follows_changes() {
        BusShare share(std::nullopt);
        (void)layers(share, 20, 70, 1000);
        QVERIFY(loss(layers(share, 120, 70, 4800), 120, 70) < 1.05);
        QVERIFY(loss(layers(share, 20, 70, 4800), 20, 70) < 1.05);
    }

    void a_fixed_share_stays() {
        BusShare share(0.25);
        (void)layers(share, 100, 10, 100);
        QCOMPARE(share.now(), kernels::kWholeShare / 4);
        QCOMPARE(share.counted().by_device, std::uint64_t{200});
        QCOMPARE(share.counted().by_processor, std::uint64_t{600});
    }

    void the_device_sees_registered_memory() {
        SimGpu simulator;
        simulator.reset(SimGpu::healthy());
        const auto driver = gpu::Driver::load(gpu::Backend::cuda, simulator.path());
        REQUIRE(driver);
        REQUIRE((*driver)->make_current(0));
        constexpr std::size_t page = 4096;
        std::vector<std::byte> memory(64 * page);
        const auto* first = reinterpret_cast<const std::byte*>((reinterpret_cast<std::uintptr_t>(memory.data()) + page - 1) / page * page);
        residency::PinnedSpans pinned(**driver);
        const std::span<const std::byte> spans[] = {{first + 100, 3 * page}, {first + 10 * page, 5 * page}};
        pinned.register_all(spans, {});
        const auto at = [&](std::size_t offset, std::size_t bytes) { return pinned.on_device(first + offset, bytes); };
        const auto seen = [&](std::size_t offset) { return reinterpret_cast<gpu::DevicePointer>(first + offset); };
        QCOMPARE(at(100, 3 * page), seen(100));
        QCOMPARE(at(0, 4 * page), seen(0));  // whole pages
        QCOMPARE(at(0, 4 * page + 1), gpu::DevicePointer{0});
        QCOMPARE(at(5 * page, 10), gpu::DevicePointer{0});
        QCOMPARE(at(9 * page, 2 * page), gpu::DevicePointer{0});
        QCOMPARE(at(14 * page, page), seen(14 * page));
        QCOMPARE(at(14 * page + 1, page), gpu::DevicePointer{0});
    }
};

QTEST_GUILESS_MAIN(TstBusShare)
#include "tst_bus_share.moc"
