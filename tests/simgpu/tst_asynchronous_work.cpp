#include <QTest>

#include <cstring>

#include "core/base/bytes.h"
#include "core/base/paths.h"
#include "core/base/process.h"
#include "core/vmm/arena.h"
#include "core/vmm/self_test.h"
#include "tests/simgpu/fixture.h"

using namespace headroom;
using headroom::test::SimGpu;
using headroom::vmm::Arena;
using headroom::vmm::SegmentPool;

namespace {

constexpr std::uint64_t unit = 2 * MiB;
constexpr const char* crash_command = "unfenced-kernel";

// word += 1: an order of work shows in the result when fills and copies come in between.
void increment(const SimLaunch*, void** p) { ++**static_cast<std::uint32_t**>(p[0]); }

nlohmann::json asynchronous() {
    auto description = SimGpu::healthy();
    description["asynchronous"] = true;
    return description;
}

struct Machine {
    std::unique_ptr<gpu::Driver> driver;
    std::unique_ptr<SegmentPool> pool;
    std::unique_ptr<Arena> arena;

    static Result<Machine> start(const SimGpu& sim, gpu::Backend backend = gpu::Backend::cuda) {
        Machine m;
        HR_TRY(m.driver, gpu::Driver::load(backend, sim.path()));
        HR_CHECK(m.driver->make_current(0));
        m.pool = std::make_unique<SegmentPool>(*m.driver, 0);
        HR_TRY(m.arena, Arena::create(*m.pool, {.bytes = 4 * unit, .segment_bytes = unit, .granularity = unit}));
        HR_CHECK(m.arena->map(0));
        return m;
    }
    // Launches `increment` on the first word of slot 0.
    Result<> launch(gpu::StreamHandle stream) {
        HR_TRY(const auto module, driver->load_module("simulated module: increment"));
        HR_TRY(const auto function, driver->function(module, "increment"));
        auto word = arena->address(0);
        void* parameters[] = {&word};
        HR_CHECK(driver->launch(function, {}, {}, 0, stream, parameters));
        return driver->unload_module(module);
    }
};

}  // namespace

// The simulator's asynchronous mode, and through it what a program has to wait for.
class TestAsynchronousWork : public QObject {
    Q_OBJECT
    SimGpu sim_;

    static void backends() {
        QTest::addColumn<int>("backend");
        QTest::newRow("cuda") << 0;
        QTest::newRow("hip") << 1;
    }

public:
    // In a child: a kernel under way when its memory goes, with or without the fence.
    static int crash(bool fenced) {
        SimGpu sim;
        sim.reset(asynchronous());
        sim.register_kernel("increment", increment, {8});
        auto m = Machine::start(sim);
        if (!m || !m->launch(nullptr)) return 3;
        if (fenced && !m->driver->synchronize()) return 3;
        if (!m->arena->unmap(0)) return 3;
        return m->driver->synchronize() ? 0 : 4;
    }

private slots:
    void init() {
        sim_.reset(asynchronous());
        sim_.register_kernel("increment", increment, {8});
    }

    void workWaitsForWhoeverNeedsIt() {
        auto m = Machine::start(sim_);
        REQUIRE(m);
        gpu::Driver& d = *m->driver;
        const auto pinned = d.allocate_host(8);
        REQUIRE(pinned);
        auto* words = static_cast<std::uint32_t*>(*pinned);
        words[0] = 7, words[1] = 0;
        const auto stream = d.create_stream();
        REQUIRE(stream);
        const auto word = m->arena->address(0);
        REQUIRE(d.copy_to_device(word, &words[0], 4, *stream));
        REQUIRE(m->launch(*stream));
        REQUIRE(d.copy_to_host(&words[1], word, 4, *stream));
        QCOMPARE(words[1], 0U);  // nothing happened yet
        // A query does one piece of work and never more.
        QCOMPARE(*d.stream_done(*stream), false);
        QCOMPARE(*d.stream_done(*stream), false);
        QCOMPARE(words[1], 0U);
        QCOMPARE(*d.stream_done(*stream), true);
        QCOMPARE(words[1], 8U);
        // A pinned source is read when the copy happens; one that is not pinned when the call is made.
        std::uint32_t plain = 100;
        REQUIRE(d.copy_to_device(word, &words[0], 4, *stream));
        REQUIRE(d.copy_to_device(word + 4, &plain, 4, *stream));
        words[0] = 9, plain = 0;
        REQUIRE(d.synchronize_stream(*stream));
        std::uint32_t seen[2] = {};
        REQUIRE(d.copy_to_host(seen, word, 8, *stream));  // to plain memory: done when the call returns
        QCOMPARE(seen[0], 9U);
        QCOMPARE(seen[1], 100U);
        REQUIRE(d.destroy_stream(*stream));
        REQUIRE(d.free_host(*pinned));
    }
    void eventsOrderStreams_data() { backends(); }
    void eventsOrderStreams() {
        QFETCH(int, backend);
        auto m = Machine::start(sim_, static_cast<gpu::Backend>(backend));
        REQUIRE(m);
        gpu::Driver& d = *m->driver;
        const auto a = d.create_stream(), b = d.create_stream();
        const auto event = d.create_event(false), later = d.create_event(false);
        REQUIRE(a);
        REQUIRE(b);
        REQUIRE(event);
        REQUIRE(later);
        const auto word = m->arena->address(0);
        std::uint32_t zero = 0, seen = 99;
        REQUIRE(d.copy_to_device(word, &zero, 4, *a));
        REQUIRE(m->launch(*a));
        REQUIRE(d.record_event(*event, *a));
        REQUIRE(m->launch(*a));  // behind the event: nobody waits for it
        REQUIRE(d.record_event(*later, *a));
        QCOMPARE(*d.event_done(*event), false);
        REQUIRE(d.wait_event(*b, *event));
        REQUIRE(d.copy_to_host(&seen, word, 4, *b));
        QCOMPARE(seen, 1U);
        QCOMPARE(*d.event_done(*event), true);
        REQUIRE(d.synchronize_event(*later));
        REQUIRE(d.copy_to_host(&seen, word, 4, *b));
        QCOMPARE(seen, 2U);
        // Recorded again, an event stands for its newest recording; a wait that was enqueued keeps the old one.
        REQUIRE(d.record_event(*event, *a));
        REQUIRE(d.wait_event(*b, *event));
        REQUIRE(m->launch(*a));
        REQUIRE(d.record_event(*event, *a));
        REQUIRE(d.copy_to_host(&seen, word, 4, *b));
        QCOMPARE(seen, 2U);
        REQUIRE(d.synchronize_event(*event));
        REQUIRE(d.copy_to_host(&seen, word, 4, *b));
        QCOMPARE(seen, 3U);
        // Without a wait the other stream's work is not there yet.
        REQUIRE(m->launch(*a));
        REQUIRE(d.copy_to_host(&seen, word, 4, *b));
        QCOMPARE(seen, 3U);
        REQUIRE(d.synchronize());
        REQUIRE(d.copy_to_host(&seen, word, 4, *b));
        QCOMPARE(seen, 4U);
        for (const auto e : {*event, *later}) REQUIRE(d.destroy_event(e));
        for (const auto s : {*a, *b}) REQUIRE(d.destroy_stream(s));
    }
    void graphsAreWorkOfTheirStream() {
        auto m = Machine::start(sim_);
        REQUIRE(m);
        gpu::Driver& d = *m->driver;
        const auto a = d.create_stream(), b = d.create_stream();
        const auto fork = d.create_event(false), join = d.create_event(false), end = d.create_event(false);
        REQUIRE(a);
        REQUIRE(b);
        const auto word = m->arena->address(0);
        std::uint32_t zero = 0, seen = 99;
        REQUIRE(d.copy_to_device(word, &zero, 4, *a));
        REQUIRE(d.begin_capture(*a));
        QVERIFY(!d.synchronize_stream(*a));  // not while capturing
        REQUIRE(m->launch(*a));
        REQUIRE(d.record_event(*fork, *a));
        REQUIRE(d.wait_event(*b, *fork));  // the second stream takes part
        REQUIRE(m->launch(*b));
        REQUIRE(d.record_event(*join, *b));
        REQUIRE(d.wait_event(*a, *join));
        REQUIRE(m->launch(*a));
        const auto graph = d.end_capture(*a);
        REQUIRE(graph);
        const auto exec = d.instantiate_graph(*graph);
        REQUIRE(exec);
        REQUIRE(d.destroy_graph(*graph));
        REQUIRE(d.copy_to_host(&seen, word, 4, *b));  // the second stream is a stream again; nothing was launched
        QCOMPARE(seen, 0U);
        REQUIRE(d.launch_graph(*exec, *a));
        REQUIRE(d.record_event(*end, *a));
        REQUIRE(d.launch_graph(*exec, *a));
        REQUIRE(d.destroy_graph_exec(*exec));  // those under way go on
        REQUIRE(d.copy_to_host(&seen, word, 4, *b));
        QVERIFY(seen == 0);
        REQUIRE(d.wait_event(*b, *end));
        REQUIRE(d.copy_to_host(&seen, word, 4, *b));
        QCOMPARE(seen, 3U);
        REQUIRE(d.synchronize_stream(*a));
        REQUIRE(d.copy_to_host(&seen, word, 4, *b));
        QCOMPARE(seen, 6U);
        for (const auto e : {*fork, *join, *end}) REQUIRE(d.destroy_event(e));
        for (const auto s : {*a, *b}) REQUIRE(d.destroy_stream(s));
    }
    void missingFenceBeforeAnUnmapIsReported_data() { backends(); }
    void missingFenceBeforeAnUnmapIsReported() {
        QFETCH(int, backend);
        for (const bool fenced : {true, false}) {
            sim_.reset(asynchronous());
            auto m = Machine::start(sim_, static_cast<gpu::Backend>(backend));
            REQUIRE(m);
            const auto stream = m->driver->create_stream();
            REQUIRE(stream);
            REQUIRE(m->driver->fill(m->arena->address(0), 1, unit, *stream));
            if (fenced) REQUIRE(m->driver->synchronize_stream(*stream));
            REQUIRE(m->arena->unmap(0));
            const auto end = m->driver->synchronize_stream(*stream);
            QCOMPARE(end.has_value(), fenced);
            if (fenced) continue;
            const std::string expected = backend == 0
                                             ? "cuStreamSynchronize on cuda:0 (Simulated CUDA card) failed: CUDA_ERROR_ILLEGAL_ADDRESS (700)"
                                             : "hipStreamSynchronize on hip:0 (Simulated HIP card) failed: hipErrorIllegalAddress (700)";
            QCOMPARE(end.error().message, expected);
            // From then on every piece of work is refused, as on a card.
            REQUIRE(m->arena->map(0));
            QVERIFY(!m->driver->fill(m->arena->address(0), 1, unit));
            QVERIFY(!m->driver->synchronize());
        }
    }
    // Unmapping beside work is counted, and fails where the driver wants none; behind it nothing works any more.
    void unmappingBesideWorkIsSeen_data() {
        QTest::addColumn<bool>("wants_quiet");
        QTest::newRow("counted") << false;
        QTest::newRow("refused") << true;
    }
    void unmappingBesideWorkIsSeen() {
        QFETCH(const bool, wants_quiet);
        auto description = asynchronous();
        description["faults"] = {{"unmap_wants_quiet", wants_quiet}};
        sim_.reset(description);
        auto m = Machine::start(sim_);
        REQUIRE(m);
        REQUIRE(m->arena->map(1));
        REQUIRE(m->arena->unmap(1));
        QCOMPARE(sim_.counters().unmaps_beside_work, std::uint64_t{0});
        REQUIRE(m->arena->map(1));
        REQUIRE(m->driver->fill(m->arena->address(0), 1, 4));  // not of what goes
        QCOMPARE(m->arena->unmap(1).has_value(), !wants_quiet);
        QCOMPARE(sim_.counters().unmaps_beside_work, std::uint64_t{1});
        QCOMPARE(m->driver->synchronize().has_value(), !wants_quiet);
    }

    void missingFenceBeforeAMoveLosesData() {
        auto m = Machine::start(sim_);
        REQUIRE(m);
        gpu::Driver& d = *m->driver;
        std::vector<unsigned char> seen(unit);
        REQUIRE(m->arena->map(1));
        REQUIRE(d.fill(m->arena->address(0), 1, unit));
        REQUIRE(d.synchronize());
        const auto stream = d.create_stream();
        REQUIRE(stream);
        REQUIRE(d.copy_on_device(m->arena->address(1), m->arena->address(0), unit, *stream));
        REQUIRE(m->arena->unmap(0));
        REQUIRE(m->arena->map(0));  // the copy, still to come, takes what is there now
        REQUIRE(d.fill(m->arena->address(0), 2, unit));
        REQUIRE(d.synchronize());
        REQUIRE(d.copy_to_host(seen.data(), m->arena->address(1), unit));
        QVERIFY(seen[0] == 2 || seen[0] == 0);
        REQUIRE(d.destroy_stream(*stream));
    }
    void missingFenceUnderAKernelCrashes_data() {
        QTest::addColumn<bool>("fenced");
        QTest::newRow("fenced") << true;
        QTest::newRow("not fenced") << false;
    }
    void missingFenceUnderAKernelCrashes() {
        QFETCH(bool, fenced);
        const auto result = run_child({.program = program_file(), .arguments = {crash_command, fenced ? "1" : "0"}, .time_limit = std::chrono::seconds(60)});
        REQUIRE(result);
        const bool clean = result->end == ChildResult::End::exited && result->code == 0;
        QCOMPARE(clean, fenced);
        // A sanitizer turns the signal into an exit code of its own.
        QVERIFY(fenced || result->end == ChildResult::End::crashed || (result->code != 3 && result->code != 4));
    }
    // The self-test and the arena wait for all that they have to.
    void theSelfTestIsClean_data() { backends(); }
    void theSelfTestIsClean() {
        QFETCH(int, backend);
        {
            const auto driver = gpu::Driver::load(static_cast<gpu::Backend>(backend), sim_.path());
            REQUIRE(driver);
            const auto device = (*driver)->devices()[0];
            const auto counter = gpu::MemoryCounter::open(device, sim_.path());
            const vmm::SelfTestOptions options{.segment_bytes = 8 * MiB, .rounds = 5, .cycles = 30};
            const auto verdict = vmm::run_self_test(**driver, device, counter.get(), options);
            QCOMPARE(verdict.reason, std::string());
            QCOMPARE(verdict.kind, vmm::VerdictKind::on);
            QVERIFY(verdict.kernel_test);
        }
        QCOMPARE(test::leaks(sim_.counters()), std::string());
    }
};

int main(int argc, char** argv) {
    if (argc > 2 && std::strcmp(argv[1], crash_command) == 0) return TestAsynchronousWork::crash(std::strcmp(argv[2], "1") == 0);
    QCoreApplication app(argc, argv);
    TestAsynchronousWork test;
    return QTest::qExec(&test, argc, argv);
}
#include "tst_asynchronous_work.moc"
