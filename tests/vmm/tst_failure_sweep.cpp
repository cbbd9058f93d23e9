#include <QTest>

#include <map>
#include <set>

#include "core/base/bytes.h"
#include "core/vmm/self_test.h"
#include "tests/simgpu/fixture.h"

using namespace headroom;
using namespace headroom::vmm;
using headroom::test::SimGpu;

namespace {

constexpr std::uint64_t unit = 64 * KiB;  // small, because the session runs once for each of its calls

nlohmann::json machine() {
    const nlohmann::json card = {{"granularity_min", unit}, {"granularity_rec", unit}};
    return {{"cuda", nlohmann::json::array({card})}, {"hip", nlohmann::json::array({card})}};
}

// What a session tells: nothing, or the sentence about the call that failed.
struct Session {
    std::string problem;
    Verdict verdict;
};

// Verdict, map, grow, move, shrink, teardown, as a program does it. After each failure the arena has to agree with itself.
Session run_session(gpu::Backend backend, const gpu::SearchPath& path) {
    Session session;
    const auto note = [&](const Error& error) { session.problem += error.message + "\n"; };
    auto loaded = gpu::Driver::load(backend, path);
    if (!loaded) return note(loaded.error()), session;
    gpu::Driver& driver = **loaded;
    const auto device = driver.devices()[0];
    const auto counter = gpu::MemoryCounter::open(device, path);
    const SelfTestOptions quick{.segment_bytes = 2 * unit, .rounds = 2, .cycles = 2, .pause = std::chrono::milliseconds(0)};
    session.verdict = run_self_test(driver, device, counter.get(), quick);
    if (auto current = driver.make_current(0); !current) return note(current.error()), session;

    SegmentPool pool(driver, 0);
    auto made = Arena::create(pool, {.bytes = 5 * unit + 1, .segment_bytes = 2 * unit, .granularity = unit});
    if (!made) return note(made.error()), session;
    Arena& arena = **made;
    const auto check = [&](const Result<>& done) {
        if (!done) note(done.error());
        std::uint64_t bytes = 0;
        for (std::size_t slot = 0; slot < arena.slot_count(); ++slot) {
            if (!arena.mapped(slot)) continue;
            bytes += arena.slot_bytes(slot);
            const auto used = driver.fill(arena.address(slot), 1, arena.slot_bytes(slot));
            if (used) continue;
            note(used.error());
            if (!driver.fill(arena.address(slot), 1, arena.slot_bytes(slot))) session.problem += fmt::format("slot {} cannot be used\n", slot);
        }
        if (bytes != arena.mapped_bytes()) session.problem += "the arena miscounts\n";
    };
    const std::size_t all[] = {0, 1, 2};
    check(arena.map(all));                                           // grow
    if (arena.mapped(2)) check(arena.unmap(2));                      // shrink at the tail
    if (arena.mapped(0)) check(arena.unmap(0));                      // and in front
    if (arena.mapped(1) && !arena.mapped(0)) check(arena.move(1, 0));
    if (auto trimmed = pool.trim(); !trimmed) note(trimmed.error());
    if (!arena.mapped(1)) check(arena.map(1));
    if (auto closed = arena.close(); !closed) {
        note(closed.error());
        if (auto again = arena.close(); !again) note(again.error());
    }
    if (auto trimmed = pool.trim(); !trimmed) note(trimmed.error());
    return session;
}

}  // namespace

class TestFailureSweep : public QObject {
    Q_OBJECT
    SimGpu sim_;

private slots:
    void everyCallFailsOnce_data() {
        QTest::addColumn<int>("backend");
        QTest::newRow("cuda") << 0;
        QTest::newRow("hip") << 1;
    }
    void everyCallFailsOnce() {
        QFETCH(int, backend);
        const auto which = static_cast<gpu::Backend>(backend);
        sim_.reset(machine());
        const Session healthy = run_session(which, sim_.path());
        QCOMPARE(healthy.problem, std::string());
        QCOMPARE(healthy.verdict.kind, VerdictKind::on);
        const auto calls = sim_.trace();
        QVERIFY(calls.size() > 200);

        // Calls whose failure has no consequence: the attributes and counters that are asked for and may be missing.
        const std::set<std::string> optional = {"cuDeviceGetAttribute", "hipDeviceGetAttribute", "hipDeviceGetUuid", "hipGetDevicePropertiesR0600",
                                                "nvmlSystemGetDriverVersion", "nvmlDeviceGetComputeRunningProcesses_v3", "nvmlInit_v2", "nvmlShutdown",
                                                "nvmlDeviceGetHandleByPciBusId_v2"};
        std::map<std::string, std::uint64_t> count;
        int swept = 0;
        for (const auto& function : calls) {
            const auto k = ++count[function];
            sim_.reset(machine());
            sim_.fail(function, k, 999);
            const Session session = run_session(which, sim_.path());
            const auto where = fmt::format("{} call {}: verdict {} ({}), session: {}", function, k, to_string(session.verdict.kind),
                                           session.verdict.reason, session.problem);
            const auto left = test::leaks(sim_.counters());
            QVERIFY2(left.empty(), (where + "; left: " + left).c_str());
            QVERIFY2(session.problem.find("cannot be used") == std::string::npos, where.c_str());
            QVERIFY2(session.problem.find("miscounts") == std::string::npos, where.c_str());
            ++swept;
            if (optional.contains(function)) continue;
            // The call is named by the reason, by a step that found another way, or by the session's own error. Only the last clean-up,
            // which tries again by itself, has nobody to tell.
            std::string told = session.verdict.reason + session.problem;
            for (const auto& o : session.verdict.observations) told += o.seen;
            const bool cleaning = function == "cuDevicePrimaryCtxRelease_v2" || function == "cuModuleUnload" || function == "hipModuleUnload" ||
                                  function == "cuMemFree_v2" || function == "hipFree";
            QVERIFY2(cleaning || told.find(function) != std::string::npos, where.c_str());
            if (!session.verdict.observations.empty() && session.verdict.kind != VerdictKind::on) QVERIFY2(!session.verdict.reason.empty(), where.c_str());
        }
        qInfo("%d calls failed once each", swept);
    }
};

QTEST_GUILESS_MAIN(TestFailureSweep)
#include "tst_failure_sweep.moc"
