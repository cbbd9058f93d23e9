#include <QTest>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>

#ifndef _WIN32
#include <sys/resource.h>
#endif

#include <spdlog/sinks/ringbuffer_sink.h>
#include <spdlog/spdlog.h>

#include "core/base/bytes.h"
#include "core/base/system.h"
#include "core/vmm/create_arena.h"
#include "core/vmm/open_files.h"
#include "tests/simgpu/fixture.h"

using namespace headroom;
using namespace headroom::vmm;
using headroom::test::SimGpu;

namespace {
#ifdef _WIN32
bool set_open_file_limit(std::uint64_t) { return false; }  // there is none
#else
bool set_open_file_limit(std::uint64_t soft) {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
    limit.rlim_cur = soft;
    return ::setrlimit(RLIMIT_NOFILE, &limit) == 0;
}
#endif

constexpr std::uint64_t unit = 2 * MiB;

ArenaOptions options(std::uint64_t bytes, std::uint64_t segment = unit) { return {.bytes = bytes, .segment_bytes = segment, .granularity = unit}; }
}  // namespace

class TestArena : public QObject {
    Q_OBJECT
    SimGpu sim_;

    Result<std::unique_ptr<gpu::Driver>> driver(gpu::Backend backend = gpu::Backend::cuda) {
        HR_TRY(auto driver, gpu::Driver::load(backend, sim_.path()));
        HR_CHECK(driver->make_current(0));
        return driver;
    }

private slots:
    void init() { sim_.reset(SimGpu::healthy()); }

    void oddSizesAreRoundedUp() {
        const auto d = driver();
        REQUIRE(d);
        SegmentPool pool(**d, 0);
        const auto tiny = Arena::create(pool, options(4097));
        REQUIRE(tiny);
        QCOMPARE((*tiny)->slot_count(), std::size_t(1));
        QCOMPARE((*tiny)->bytes(), std::uint64_t(4097));
        QCOMPARE((*tiny)->slot_bytes(0), unit);
        REQUIRE((*tiny)->map(0));
        QCOMPARE((*tiny)->mapped_bytes(), unit);
        const auto odd = Arena::create(pool, options(7 * unit - 1, 3 * unit));
        REQUIRE(odd);
        QCOMPARE((*odd)->slot_count(), std::size_t(3));
        QCOMPARE((*odd)->slot_bytes(2), unit);  // the last slot is smaller
        QCOMPARE((*odd)->reserved_bytes(), 7 * unit);
        for (std::size_t slot = 0; slot < 3; ++slot) REQUIRE((*odd)->map(slot));
        REQUIRE((*d)->fill((*odd)->base(), 0x11, 7 * unit));  // one piece of addresses
        QVERIFY(!Arena::create(pool, options(0)));
        QVERIFY(!Arena::create(pool, options(unit, unit + 1)));
        QVERIFY(!Arena::create(pool, options(~std::uint64_t(0))));
        QVERIFY(!Arena::create(pool, {.bytes = unit, .segment_bytes = unit, .granularity = 0}));
    }
    void wrongSlotsAreRefused() {
        const auto d = driver();
        REQUIRE(d);
        SegmentPool pool(**d, 0);
        const auto arena = Arena::create(pool, options(4 * unit));
        REQUIRE(arena);
        REQUIRE((*arena)->map(1));
        const std::size_t twice[] = {0, 0}, unknown[] = {9}, again[] = {0, 1};
        for (const auto which : {std::span<const std::size_t>(twice), std::span<const std::size_t>(unknown), std::span<const std::size_t>(again)}) {
            const auto done = (*arena)->map(which);
            QVERIFY(!done);
            QCOMPARE(done.error().kind, ErrorKind::invalid_argument);
        }
        QVERIFY(!(*arena)->unmap(0));
        QVERIFY(!(*arena)->move(0, 2));
        QVERIFY(!(*arena)->move(1, 1));
        QCOMPARE((*arena)->mapped_bytes(), unit);
    }
    void movesKeepContents() {
        const auto d = driver();
        REQUIRE(d);
        SegmentPool pool(**d, 0);
        const auto arena = Arena::create(pool, options(4 * unit));
        REQUIRE(arena);
        REQUIRE((*arena)->map(0));
        REQUIRE((*d)->fill((*arena)->address(0), 0x5A, unit));
        REQUIRE((*arena)->move(0, 3));
        QVERIFY(!(*arena)->mapped(0) && (*arena)->mapped(3));
        std::vector<unsigned char> seen(unit);
        REQUIRE((*d)->copy_to_host(seen.data(), (*arena)->address(3), unit));
        QVERIFY(std::ranges::all_of(seen, [](unsigned char c) { return c == 0x5A; }));
        QVERIFY(!(*d)->copy_to_host(seen.data(), (*arena)->address(0), unit));
    }
    void spareSegmentsPassBetweenArenas() {
        const auto d = driver();
        REQUIRE(d);
        SegmentPool pool(**d, 0);
        const auto a = Arena::create(pool, options(2 * unit)), b = Arena::create(pool, options(2 * unit));
        REQUIRE(a);
        REQUIRE(b);
        REQUIRE((*a)->map(0));
        REQUIRE((*a)->unmap(0));
        QCOMPARE(pool.spare_bytes(), unit);
        QCOMPARE(sim_.counters().segments, std::uint64_t(1));
        REQUIRE((*b)->map(1));
        QCOMPARE(sim_.counters().segments, std::uint64_t(1));  // the same one
        QCOMPARE(pool.spare_bytes(), std::uint64_t(0));
        REQUIRE((*b)->unmap(1));
        const auto released = pool.trim();
        REQUIRE(released);
        QCOMPARE(*released, unit);
        QCOMPARE(pool.total_bytes(), std::uint64_t(0));
    }
    void accessFromTheBase() {
        // A runtime that refuses access for anything but the start of a range, once there are three ranges.
        sim_.reset(SimGpu::with_faults({{"access_only_from_base", true}}));
        const auto d = driver(gpu::Backend::hip);
        REQUIRE(d);
        SegmentPool pool(**d, 0);
        std::vector<std::unique_ptr<Arena>> arenas;
        for (int i = 0; i < 3; ++i) {
            auto arena = Arena::create(pool, options(4 * unit));
            REQUIRE(arena);
            arenas.push_back(std::move(*arena));
        }
        REQUIRE(arenas[0]->map(0));
        const auto refused = arenas[0]->map(1);
        QVERIFY(!refused);
        QVERIFY(arenas[0]->access_refused());
        QVERIFY(!arenas[0]->mapped(1));
        QVERIFY2(refused.error().message.starts_with("hipMemSetAccess"), refused.error().message.c_str());
        arenas[0]->set_access_style(AccessStyle::from_base);
        for (const std::size_t slot : {1, 2, 3}) REQUIRE(arenas[0]->map(slot));
        REQUIRE(arenas[0]->unmap(1));
        REQUIRE(arenas[0]->map(1));  // the gap closes again
        QVERIFY(!arenas[1]->map(2));  // but nothing grows behind one that is there
    }
    void closingIsCompleteAndRepeatable() {
        {
            const auto d = driver();
            REQUIRE(d);
            SegmentPool pool(**d, 0);
            const auto arena = Arena::create(pool, options(4 * unit));
            REQUIRE(arena);
            const std::size_t which[] = {0, 2, 3};
            REQUIRE((*arena)->map(which));
            sim_.fail("cuMemUnmap", 2);
            QVERIFY(!(*arena)->close());
            QCOMPARE((*arena)->mapped_bytes(), 2 * unit);
            REQUIRE((*arena)->close());
            REQUIRE((*arena)->close());
            QCOMPARE((*arena)->mapped_bytes(), std::uint64_t(0));
        }
        QCOMPARE(test::leaks(sim_.counters()), std::string());
    }
    void openFilePlans() {
        // 16 GiB in segments of 64 MiB, one file each: 256 of them beside those in use and kept free.
        const auto fits = plan_open_files(16 * GiB, 64 * MiB, 1, 30, 4096);
        QCOMPARE(fits.needed, std::uint64_t(256 + 30 + 256));
        QCOMPARE(fits.segment_bytes, 64 * MiB);
        QVERIFY(fits.fits);
        const auto larger = plan_open_files(192 * GiB, 64 * MiB, 1, 30, 1024);
        QVERIFY(larger.fits);
        QCOMPARE(larger.segment_bytes, 512 * MiB);  // 384 + 286; segments of 256 MiB would need 1,054
        const auto never = plan_open_files(1024 * GiB, 64 * MiB, 1, 30, 1024);
        QVERIFY(!never.fits);
        QCOMPARE(never.segment_bytes, 1 * GiB);
    }

    // The arena that a verdict asks for.
    void verdictsMakeArenas() {
        const auto d = driver();
        REQUIRE(d);
        SegmentPool pool(**d, 0);
        Verdict verdict;
        verdict.kind = VerdictKind::on;
        verdict.granularity_recommended = unit;
        verdict.segment_bytes = 4 * unit;
        verdict.access = AccessStyle::from_base;
        const auto on = create_arena(pool, verdict, 9 * unit + 1);
        REQUIRE(on);
        QCOMPARE((*on)->slot_count(), std::size_t(3));
        QCOMPARE((*on)->slot_bytes(0), 4 * unit);
        QCOMPARE((*on)->access_style(), AccessStyle::from_base);
        verdict.kind = VerdictKind::fixed;
        verdict.segment_bytes = 0;
        const auto fixed = create_arena(pool, verdict, 9 * unit + 1);
        REQUIRE(fixed);
        QCOMPARE((*fixed)->slot_count(), std::size_t(1));
        QCOMPARE((*fixed)->slot_bytes(0), 10 * unit);
        verdict.kind = VerdictKind::off;
        verdict.reason = "why";
        const auto off = create_arena(pool, verdict, unit);
        QVERIFY(!off);
        QCOMPARE(off.error().kind, ErrorKind::invalid_argument);
        QVERIFY(off.error().message.ends_with(": why"));
    }
    // H8: a runtime that keeps one file open for each segment.
    void openFileLimitIsRaisedForSegments() {
        const auto limit = open_file_limit();
        if (!limit) QSKIP("this system sets no open-file limit");
        const std::uint64_t in_use = open_file_count().value_or(0);
        constexpr std::size_t count = 64;
        sim_.reset(SimGpu::with_faults({{"open_file_per_segment", true}}));
        const auto d = driver(gpu::Backend::hip);
        REQUIRE(d);
        SegmentPool pool(**d, 0);
        std::vector<std::size_t> all(count);
        std::iota(all.begin(), all.end(), 0);
        const auto lowered = in_use + count / 2;
        QVERIFY(set_open_file_limit(lowered));
        {
            const auto plain = Arena::create(pool, options(count * unit));
            REQUIRE(plain);
            const auto refused = (*plain)->map(all);
            QVERIFY(!refused);
            QCOMPARE(refused.error().kind, ErrorKind::out_of_memory);
            REQUIRE(pool.trim());
        }
        const auto log = std::make_shared<spdlog::sinks::ringbuffer_sink_mt>(8);
        log->set_pattern("%v");
        spdlog::default_logger()->sinks().push_back(log);
        Verdict verdict;
        verdict.kind = VerdictKind::on;
        verdict.granularity_recommended = verdict.segment_bytes = unit;
        verdict.open_files_needed = in_use + 2 * count;
        const auto arena = create_arena(pool, verdict, count * unit);
        REQUIRE(arena);
        REQUIRE((*arena)->map(all));
        const auto again = create_arena(pool, verdict, unit);
        REQUIRE(again);
        const auto lines = log->last_formatted();
        std::erase(spdlog::default_logger()->sinks(), log);
        QVERIFY(set_open_file_limit(limit->soft));
        QCOMPARE(lines.size(), std::size_t(1));  // once
        QVERIFY2(lines[0].starts_with(fmt::format("open-file limit {} -> {}", lowered, verdict.open_files_needed)), lines[0].c_str());
    }

    // Random steps against a model of what should be mapped where and of what it should hold.
    void agreesWithAModel_data() {
        QTest::addColumn<bool>("asynchronous");
        QTest::newRow("work at once") << false;
        QTest::newRow("work as late as possible") << true;
    }
    void agreesWithAModel() {
        QFETCH(bool, asynchronous);
        auto description = SimGpu::healthy();
        description["asynchronous"] = asynchronous;
        sim_.reset(description);
        {
            const auto d = driver();
            REQUIRE(d);
            gpu::Driver& driver = **d;
            SegmentPool pool(driver, 0);
            std::vector<std::unique_ptr<Arena>> arenas;
            // Odd sizes: slots of 1, 2 and 3 units, the last ones smaller.
            for (const auto& o : {options(17 * unit - 5), options(21 * unit + 1, 2 * unit), options(20 * unit, 3 * unit)}) {
                auto arena = Arena::create(pool, o);
                REQUIRE(arena);
                arenas.push_back(std::move(*arena));
            }
            std::map<std::pair<std::size_t, std::size_t>, unsigned char> model;  // (arena, slot): the byte its first page is filled with
            std::mt19937 random(20261129);
            unsigned char next = 0;
            for (int step = 0; step < 10'000; ++step) {
                const std::size_t a = random() % arenas.size();
                Arena& arena = *arenas[a];
                const std::size_t slot = random() % arena.slot_count(), other = random() % arena.slot_count();
                const bool here = model.contains({a, slot}), there = model.contains({a, other});
                REQUIRE(driver.synchronize());  // as its header asks: before a slot is unmapped or moved
                switch (random() % 5) {
                    case 0:
                    case 1: {
                        const auto done = arena.map(slot);
                        QCOMPARE(done.has_value(), !here);
                        if (!done) break;
                        REQUIRE(driver.fill(arena.address(slot), ++next, 4096));
                        model[{a, slot}] = next;
                        break;
                    }
                    case 2: {
                        const auto done = arena.unmap(slot);
                        QCOMPARE(done.has_value(), here);
                        model.erase({a, slot});
                        break;
                    }
                    case 3: {
                        const auto done = arena.move(slot, other);
                        QCOMPARE(done.has_value(), here && !there && arena.slot_bytes(slot) == arena.slot_bytes(other));
                        if (!done) break;
                        model[{a, other}] = model[{a, slot}];
                        model.erase({a, slot});
                        break;
                    }
                    default: REQUIRE(pool.trim(random() % 4 * unit)); break;
                }
                // One look at random: right contents where something is mapped, a refusal where nothing is.
                unsigned char seen[4096];
                const auto copied = driver.copy_to_host(seen, arena.address(other), sizeof seen);
                const auto expected = model.find({a, other});
                QCOMPARE(copied.has_value(), expected != model.end());
                if (copied) QVERIFY(std::ranges::all_of(seen, [&](unsigned char c) { return c == expected->second; }));
                if (step % 500 == 0) {
                    std::uint64_t mapped = 0, bytes = 0;
                    for (std::size_t i = 0; i < arenas.size(); ++i) {
                        for (std::size_t s = 0; s < arenas[i]->slot_count(); ++s) {
                            QCOMPARE(arenas[i]->mapped(s), model.contains({i, s}));
                            if (arenas[i]->mapped(s)) bytes += arenas[i]->slot_bytes(s);
                            mapped += arenas[i]->mapped(s);
                        }
                    }
                    QCOMPARE(sim_.counters().mappings, mapped);
                    QCOMPARE(pool.total_bytes(), bytes + pool.spare_bytes());
                }
            }
        }
        QCOMPARE(test::leaks(sim_.counters()), std::string());
    }
};

QTEST_GUILESS_MAIN(TestArena)
#include "tst_arena.moc"
