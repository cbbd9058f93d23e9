#include <QTest>

#include <algorithm>

#include <spdlog/spdlog.h>

#include "core/base/bytes.h"
#include "core/base/paths.h"
#include "core/base/system.h"
#include "core/vmm/device_list.h"
#include "core/vmm/self_test.h"
#include "tests/simgpu/fixture.h"
#include "tests/simgpu/reduced_drivers.h"

using namespace headroom;
using namespace headroom::vmm;
using headroom::test::SimGpu;
using nlohmann::json;
using namespace std::chrono_literals;

namespace {

std::string joined(const Verdict& verdict) {
    std::string text = std::string(to_string(verdict.kind)) + ": " + verdict.reason;
    for (const auto& o : verdict.observations) text += fmt::format("\n  {} {}: {}", o.step, to_string(o.outcome), o.seen);
    return text;
}

const Observation* find_step(const Verdict& verdict, const std::string& step) {
    for (const auto& o : verdict.observations) {
        if (o.step == step) return &o;
    }
    return nullptr;
}

}  // namespace

// Each imitated fault, through the child process, on both backends: the verdict, and what the reason or the observation has to say.
class TestVerdict : public QObject {
    Q_OBJECT
    SimGpu sim_;

    DeviceListOptions options(std::chrono::milliseconds limit = 60s) {
        DeviceListOptions o;
        o.test = {.path = sim_.path(), .program = {}, .time_limit = limit, .options = {.segment_bytes = 8 * MiB, .rounds = 3, .cycles = 30}};
        o.store = sim_.folder() / "verdicts.json";
        o.retest = true;
        return o;
    }

    void addRow(const char* name, const json& description, const char* verdict, const char* reason, const char* step, const char* outcome,
                const char* seen = "") {
        QTest::newRow(name) << QByteArray::fromStdString(description.dump()) << verdict << reason << step << outcome << seen;
    }

private slots:
    void init() {
        sim_.reset(SimGpu::healthy());
        for (const char* name : {"verdicts.json", "devices.json"}) QFile::remove(QString::fromStdString(to_utf8(sim_.folder() / name)));
    }

    void faults_data() {
        QTest::addColumn<QByteArray>("description");
        QTest::addColumn<QString>("verdict");
        QTest::addColumn<QString>("reason");  // %1: the runtime
        QTest::addColumn<QString>("step");
        QTest::addColumn<QString>("outcome");
        QTest::addColumn<QString>("seen");    // part of the observation
        const auto with = [](json faults) { return SimGpu::with_faults(std::move(faults)); };
        addRow("healthy", SimGpu::healthy(), "on", "", "teardown", "passed", "everything given back, 2 times");
        json device = {{"vmm", false}};
        addRow("no attribute", {{"cuda", {device}}, {"hip", {device}}}, "off",
               "the driver says that this device does not support virtual memory management (%1)", "entry points", "failed");
        device = {{"granularity_min", 4096}, {"granularity_rec", 4096}};
        addRow("H5: granularity of 4 KiB", {{"cuda", {device}}, {"hip", {device}}}, "off",
               "the recommended allocation granularity is 4 KiB, not 2 MiB or more (%1)", "granularity", "failed");
        device = {{"granularity_min", 65536}, {"granularity_rec", 65536}};
        addRow("H6: granularity of 64 KiB", {{"cuda", {device}}, {"hip", {device}}}, "on", "", "granularity", "noted", "recommended 64 KiB");
        device = {{"granularity_min", 4096}, {"granularity_rec", 2097152}};
        addRow("minimum of 4 KiB", {{"cuda", {device}}, {"hip", {device}}}, "on", "", "granularity", "passed", "minimum 4 KiB, recommended 2 MiB");
        device = {{"granularity_min", 3145728}, {"granularity_rec", 3145728}};
        addRow("granularity of 3 MiB", {{"cuda", {device}}, {"hip", {device}}}, "on", "", "granularity", "passed", "recommended 3 MiB");
        addRow("H2: later segments alias", with({{"later_segments_alias", true}}), "fixed",
               "segment 2 of 4 shows the pages of segment 1; one mapping for everything works, so memory is mapped once and not given back (%1)",
               "patterns", "noted", "segment 2 of 4");
        addRow("H3: access only from the base", with({{"access_only_from_base", true}}), "on", "", "ranges", "noted",
               "access is granted from the base of each range");
        addRow("H4: access for one mapping only", with({{"access_single_mapping", true}}), "on", "", "ranges", "passed");
        addRow("H3 and H4", with({{"access_only_from_base", true}, {"access_single_mapping", true}}), "off", "*the step \"Growing several ranges\" failed: access was refused for a mapping alone",
               "ranges", "failed");
        addRow("H7: release keeps the memory", with({{"release_keeps_memory", true}}), "off",
               "the free VRAM by the runtime fell by 32 MiB for 32 MiB mapped and rose by 0 MiB after its release (%1)", "release", "failed");
        addRow("H9: spanning unmap breaks the free", with({{"spanning_unmap_breaks_free", true}}), "on", "", "teardown", "passed");
        addRow("H10: stale second mapping", with({{"double_map_stale", true}}), "on", "", "patterns", "passed");
        addRow("H11: dirty memory", with({{"fresh_memory_dirty", true}}), "on", "", "patterns", "noted", "fresh segments held old data");
        addRow("H12: zeros after cycles", with({{"zeros_after_unmaps", 45}}), "off",
               "data that nobody touched changed within 30 cycles of mapping and unmapping beside it (%1)", "canary", "failed");
        addRow("H14: small copies fail", with({{"small_copies_fail", true}}), "on", "", "patterns", "noted", "once the host is granted access too");
        addRow("C1: large reservations fail", with({{"reserve_limit_mib", 1500}}), "on", "", "addresses", "noted",
               "4.0 GiB were refused, 1.0 GiB reserved in one piece");
        addRow("C1: nearly all reservations fail", with({{"reserve_limit_mib", 100}}), "off",
               "*of 4.0 GiB of addresses the driver reserved at most 64.0 MiB in one piece: ", "addresses", "failed");
        addRow("C2: access with the RDMA flag fails", with({{"rdma_access_fails", true}}), "on", "", "patterns", "passed");
        addRow("C3: allocations spill", with({{"allocations_spill", true}}), "on", "", "release", "passed");
        addRow("C4: the runtime's figure is off", with({{"runtime_free_extra_mib", 700}}), "on", "", "release", "passed");
        addRow("a replaced segment shows the old one", with({{"middle_replacement_lost", true}}), "off",
               "after a segment in the middle was replaced, slot 5 did not hold what was written to it (%1)", "replacement", "failed");
        device = {{"other_mib", 4000}};
        addRow("a full card", {{"cuda", {device}}, {"hip", {device}}}, "off",
               "only 96.0 MiB of VRAM were free and the self-test needs 256.0 MiB: close other programs and test again (%1)", "entry points", "failed");
    }
    void faults() {
        QFETCH(QByteArray, description);
        QFETCH(QString, verdict);
        QFETCH(QString, reason);
        QFETCH(QString, step);
        QFETCH(QString, outcome);
        QFETCH(QString, seen);
        sim_.reset(json::parse(description.toStdString()));
        const auto list = list_devices(options());
        QCOMPARE(list.devices.size(), std::size_t(2));
        for (const auto& device : list.devices) {
            const Verdict& v = *device.verdict;
            const auto text = joined(v);
            QVERIFY2(to_string(v.kind) == verdict.toStdString(), text.c_str());
            const QString runtime = device.info.backend == gpu::Backend::cuda ? "CUDA 13.0, driver 580.10" : "HIP 7.1.0, driver 580.10";
            if (reason.startsWith('*')) {
                QVERIFY2(v.reason.find(reason.mid(1).toStdString()) == 0, text.c_str());
            } else {
                QCOMPARE(QString::fromStdString(v.reason), reason.contains("%1") ? reason.arg(runtime) : reason);
            }
            const Observation* o = find_step(v, step.toStdString());
            QVERIFY2(o, text.c_str());
            QVERIFY2(to_string(o->outcome) == outcome.toStdString(), text.c_str());
            QVERIFY2(o->seen.find(seen.toStdString()) != std::string::npos, text.c_str());
            QVERIFY2(v.kernel_test || v.observations.size() < 4, text.c_str());
        }
    }
    void missingFunctionsAreNamed_data() {
        QTest::addColumn<QString>("library");
        QTest::addColumn<int>("backend");
        enum Group { basic, vmm };
        const auto add = [](Group group, const char* cuda, const char* hip) {
            if (group != vmm) return;
            QTest::newRow(cuda) << "libcuda.so.1" << 0;
            QTest::newRow(hip) << "libamdhip64.so.7" << 1;
        };
#define HR_ADD(group, member, cuda, hip, parameters) add(group, cuda, hip);
        HR_GPU_ENTRY_POINTS(HR_ADD)
#undef HR_ADD
    }
    void missingFunctionsAreNamed() {
#ifdef _WIN32
        QSKIP("the simulated drivers can be reduced on Linux only");
#endif
        QFETCH(QString, library);
        QFETCH(int, backend);
        const std::string function = QTest::currentDataTag();
        QTemporaryDir folder;
        auto o = options();
        o.test.path.libraries = from_utf8(folder.path().toStdString());
        o.test.options = {.segment_bytes = 2 * MiB, .rounds = 1, .cycles = 1};
        QVERIFY(test::make_reduced_drivers(sim_.path().libraries, o.test.path.libraries, {function}));
        auto list = find_devices(o.test.path);
        QCOMPARE(list.devices.size(), std::size_t(2));  // the device is there; only its memory cannot be given back
        for (auto& device : list.devices) add_verdict(device, o);
        const Verdict &v = *list.devices[static_cast<std::size_t>(backend)].verdict, &other = *list.devices[static_cast<std::size_t>(1 - backend)].verdict;
        QCOMPARE(v.kind, VerdictKind::off);
        QCOMPARE(QString::fromStdString(v.reason),
                 QStringLiteral("%1/%2 lacks functions for virtual memory: %3 (%4, driver 580.10)")
                     .arg(folder.path(), library, QString::fromStdString(function), backend == 0 ? "CUDA 13.0" : "HIP 7.1.0"));
        QCOMPARE(v.observations.size(), std::size_t(1));
        QVERIFY2(other.kind == VerdictKind::on, joined(other).c_str());
    }
    void rdmaIsNeverAskedFor() {
        // What the fault does, by hand: memory made for GPUDirect RDMA gets no access.
        sim_.reset(SimGpu::with_faults({{"rdma_access_fails", true}}));
        {
            const auto driver = gpu::Driver::load(gpu::Backend::cuda, sim_.path());
            REQUIRE(driver);
            REQUIRE((*driver)->make_current(0));
#ifdef _WIN32
            const char* name = "nvcuda.dll";
#else
            const char* name = "libcuda.so.1";
#endif
            const auto library = DynamicLibrary::open(sim_.path().libraries / name);
            REQUIRE(library);
            const auto create = library->function<int (*)(gpu::SegmentHandle*, std::size_t, const gpu::abi::AllocationProperties*, unsigned long long)>("cuMemCreate");
            gpu::SegmentHandle segment = 0;
            gpu::abi::AllocationProperties properties;
            properties.rdma = 1;
            QCOMPARE(create(&segment, 2 * MiB, &properties, 0), 0);
            const auto range = (*driver)->reserve(0, 2 * MiB);
            REQUIRE(range);
            REQUIRE((*driver)->map(0, *range, 2 * MiB, segment));
            const auto access = (*driver)->set_access(0, *range, 2 * MiB, false);
            QVERIFY(!access);
            QCOMPARE(access.error().message, std::string("cuMemSetAccess on cuda:0 (Simulated CUDA card) failed: CUDA_ERROR_NOT_SUPPORTED (801)"));
            REQUIRE((*driver)->unmap(0, *range, 2 * MiB));
            REQUIRE((*driver)->release_segment(0, segment));
            REQUIRE((*driver)->free_addresses(0, *range, 2 * MiB));
        }
        QCOMPARE(test::leaks(sim_.counters()), std::string("1 segments for RDMA"));
        sim_.reset(SimGpu::with_faults({{"rdma_access_fails", true}}));
        const auto driver = gpu::Driver::load(gpu::Backend::cuda, sim_.path());
        REQUIRE(driver);
        const auto verdict = run_self_test(**driver, (*driver)->devices()[0], nullptr, options().test.options);
        QVERIFY2(verdict.kind == VerdictKind::on, joined(verdict).c_str());
        QCOMPARE(sim_.counters().rdma_segments, std::uint64_t(0));
    }
    void pagedOutMemoryShowsInTheCounter() {
        // C5: the driver moved what was idle to RAM. Nothing fails; what the counter says is less than what the program believes.
        sim_.reset(SimGpu::with_faults({{"paged_out_mib", 24}}));
        const auto driver = gpu::Driver::load(gpu::Backend::cuda, sim_.path());
        REQUIRE(driver);
        REQUIRE((*driver)->make_current(0));
        const auto counter = gpu::MemoryCounter::open((*driver)->devices()[0], sim_.path());
        QVERIFY(counter);
        SegmentPool pool(**driver, 0);
        const auto arena = Arena::create(pool, {.bytes = 32 * MiB, .segment_bytes = 32 * MiB, .granularity = 2 * MiB});
        REQUIRE(arena);
        REQUIRE((*arena)->map(0));
        REQUIRE((*driver)->fill((*arena)->base(), 1, 32 * MiB));
        const auto reading = counter->read();
        REQUIRE(reading);
        QCOMPARE(pool.total_bytes(), 32 * MiB);
        QCOMPARE(reading->own.value_or(0), 8 * MiB);
        QCOMPARE(reading->used, 8 * MiB);
    }
    void openFiles() {
        if (!open_file_limit()) QSKIP("this system sets no open-file limit");
        // A card of 16 GiB needs 256 files and more in segments of 64 MiB: fits.
        json device = {{"total_mib", 16384}};
        json d = {{"hip", {device}}, {"faults", {{"open_file_per_segment", true}}}};
        sim_.reset(d);
        auto o = options();
        o.test.options.segment_bytes = 64 * MiB;
        auto list = list_devices(o);
        const Verdict& v = *list.devices.at(0).verdict;
        QVERIFY2(v.kind == VerdictKind::on, joined(v).c_str());
        QVERIFY2(v.open_files_needed > 512 && v.open_files_needed < 700, joined(v).c_str());
        QCOMPARE(find_step(v, "open files")->outcome, Observation::Outcome::noted);
        // One of 64 TiB fits no limit: off, with the three numbers.
        d["hip"][0]["total_mib"] = 64u << 20;
        d["faults"]["reserve_limit_mib"] = 8u << 20;  // what the test machine's address space has room for
        sim_.reset(d);
        const auto limit = *open_file_limit();
        list = list_devices(o);
        const Verdict& big = *list.devices.at(0).verdict;
        if (limit.hard > 66'000) {
            QVERIFY2(big.kind == VerdictKind::on, joined(big).c_str());
            QVERIFY(big.segment_bytes >= 64 * MiB);
        } else {
            QVERIFY2(big.kind == VerdictKind::off, joined(big).c_str());
            QVERIFY2(big.reason.find(fmt::format("the limit is {}, at most {}", limit.soft, limit.hard)) != std::string::npos, big.reason.c_str());
        }
    }
    void hangEndsInItsTime() {
        sim_.reset(SimGpu::with_faults({}, json::array({{{"function", "hipMemSetAccess"}, {"call", 1}, {"action", "hang"}}})));
        const auto start = std::chrono::steady_clock::now();
        auto list = find_devices(sim_.path());
        add_verdict(list.devices.at(1), options(3s));
        const auto seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        const Verdict& v = *list.devices[1].verdict;
        QCOMPARE(v.kind, VerdictKind::off);
        QCOMPARE(v.reason, std::string("the self-test did not finish in 3 s in its step \"Patterns in unequal segments\" (HIP 7.1.0, driver 580.10)"));
        QVERIFY2(seconds >= 3 && seconds < 15, std::to_string(seconds).c_str());
        QCOMPARE(find_step(v, "granularity")->outcome, Observation::Outcome::passed);  // what it saw before
        QCOMPARE(find_step(v, "patterns")->outcome, Observation::Outcome::failed);
    }
    void crashIsAVerdict() {
        sim_.reset(SimGpu::with_faults({}, json::array({{{"function", "cuMemUnmap"}, {"call", 1}, {"action", "crash"}}})));
        auto list = find_devices(sim_.path());
        add_verdict(list.devices.at(0), options());
        const Verdict& v = *list.devices[0].verdict;
        QCOMPARE(v.kind, VerdictKind::off);
        QVERIFY2(v.reason.find("in its step \"Patterns in unequal segments\" (CUDA 13.0, driver 580.10)") != std::string::npos, v.reason.c_str());
#ifndef _WIN32
        QVERIFY2(v.reason.starts_with("the self-test crashed (signal 6, Aborted)"), v.reason.c_str());
#endif
        add_verdict(list.devices.at(1), options());  // and the program goes on
        QCOMPARE(list.devices[1].verdict->kind, VerdictKind::on);
    }
    void programThatCannotBeStarted() {
        auto list = find_devices(sim_.path());
        auto o = options();
        o.test.program = sim_.folder() / "absent";
        add_verdict(list.devices.at(0), o);
        QCOMPARE(list.devices[0].verdict->kind, VerdictKind::off);
        QVERIFY(list.devices[0].verdict->reason.starts_with("the self-test could not be started: "));
        QVERIFY(!VerdictStore(o.store).find(list.devices[0].info));
    }
    void verdictsAreKept() {
        auto o = options();
        o.retest = false;
        auto list = list_devices(o);
        QCOMPARE(list.devices.size(), std::size_t(2));
        QVERIFY(!list.devices[0].from_store && !list.devices[1].from_store);
        const auto first = to_json(*list.devices[0].verdict);
        list = list_devices(o);
        QVERIFY(list.devices[0].from_store && list.devices[1].from_store);
        QCOMPARE(to_json(*list.devices[0].verdict).dump(), first.dump());
        // Another driver is another verdict; the old one stays.
        json d = SimGpu::healthy();
        d["driver_version"] = "999.1";
        d["faults"]["release_keeps_memory"] = true;
        sim_.reset(d);
        list = list_devices(o);
        QVERIFY(!list.devices[0].from_store);
        QCOMPARE(list.devices[0].verdict->kind, VerdictKind::off);
        sim_.reset(SimGpu::healthy());
        list = list_devices(o);
        QVERIFY(list.devices[0].from_store);
        QCOMPARE(list.devices[0].verdict->kind, VerdictKind::on);
        // Testing again replaces it.
        sim_.reset(SimGpu::with_faults({{"release_keeps_memory", true}}));
        o.retest = true;
        list = list_devices(o);
        QCOMPARE(list.devices[0].verdict->kind, VerdictKind::off);
        o.retest = false;
        QCOMPARE(list_devices(o).devices[0].verdict->kind, VerdictKind::off);
        // A full card is not remembered.
        d = SimGpu::healthy();
        d["cuda_version"] = 12000;
        d["cuda"][0]["other_mib"] = 4000;
        sim_.reset(d);
        QCOMPARE(list_devices(o).devices[0].verdict->kind, VerdictKind::off);
        d["cuda"][0]["other_mib"] = 0;
        sim_.reset(d);
        QCOMPARE(list_devices(o).devices[0].verdict->kind, VerdictKind::on);
    }
    void devicesAreKnownAgain() {
        auto o = options();
        o.retest = false;
        const auto started = [&](const char* function = "cuInit") { return std::ranges::count(sim_.trace(), std::string(function)); };
        const auto first = list_devices(o);
        QCOMPARE(started(), std::ptrdiff_t(1));
        QCOMPARE(started("hipInit"), std::ptrdiff_t(1));
        sim_.reset(SimGpu::healthy());
        auto list = list_devices(o);
        QCOMPARE(started(), std::ptrdiff_t(0));  // nothing changed: the drivers stay asleep
        QCOMPARE(started("hipInit"), std::ptrdiff_t(0));
        QCOMPARE(list.devices.size(), std::size_t(2));
        for (std::size_t i = 0; i < 2; ++i) {
            const auto &before = first.devices.at(i).info, &again = list.devices.at(i).info;
            QCOMPARE(again.backend, before.backend);
            QCOMPARE(again.id, before.id);
            QCOMPARE(again.name, before.name);
            QCOMPARE(again.uuid, before.uuid);
            QCOMPARE(again.bus, before.bus);
            QCOMPARE(again.architecture, before.architecture);
            QCOMPARE(again.driver, before.driver);
            QCOMPARE(again.runtime, before.runtime);
            QCOMPARE(again.total_bytes, before.total_bytes);
            QCOMPARE(again.shared_per_block, before.shared_per_block);
            QCOMPARE(again.vmm_attribute, before.vmm_attribute);
            QVERIFY(list.devices[i].counter && list.devices[i].from_store);
        }
        // Another driver, another card, another choice of cards: asked anew.
        json d = SimGpu::healthy();
        d["cuda_version"] = 12000;
        sim_.reset(d);
        QCOMPARE(list_devices(o).devices.at(0).info.runtime, std::string("CUDA 12.0"));
        d["cuda"].push_back({{"name", "second"}, {"bus", "0000:09:00.0"}});
        sim_.reset(d);
        QCOMPARE(list_devices(o).devices.size(), std::size_t(3));
        qputenv("CUDA_VISIBLE_DEVICES", "0,1");
        sim_.reset(d);
        list = list_devices(o);
        QCOMPARE(started(), std::ptrdiff_t(1));
        qunsetenv("CUDA_VISIBLE_DEVICES");
        // AMD's: another choice of cards, another kernel driver, another card.
        qputenv("HIP_VISIBLE_DEVICES", "0");
        sim_.reset(d);
        QCOMPARE(list_devices(o).devices.size(), std::size_t(3));
        QCOMPARE(started("hipInit"), std::ptrdiff_t(1));
        qunsetenv("HIP_VISIBLE_DEVICES");
        d["driver_version"] = "6.99";
        sim_.reset(d);
        QCOMPARE(list_devices(o).devices.back().info.driver, std::string("6.99"));
        d["hip"].push_back({{"name", "second"}, {"bus", "0000:89:00.0"}});
        sim_.reset(d);
        QCOMPARE(list_devices(o).devices.size(), std::size_t(4));
        sim_.reset(d);
        QCOMPARE(list_devices(o).devices.back().info.name, std::string("second"));
        QCOMPARE(started("hipInit"), std::ptrdiff_t(0));
        REQUIRE(write_file(sim_.folder() / "devices.json", "{\"machine\": 3"));
        QCOMPARE(list_devices(o).devices.size(), std::size_t(4));
    }
    void damagedStoreIsIgnored() {
        const auto file = sim_.folder() / "verdicts.json";
        for (const char* text : {"", "{", "[]", "{\"self_test\": 1, \"verdicts\": 3}", "{\"self_test\": 1, \"verdicts\": [3, {}, {\"verdict\": \"maybe\"}]}",
                                 "{\"self_test\": \"x\", \"verdicts\": []}"}) {
            REQUIRE(write_file(file, text));
            const VerdictStore store(file);
            gpu::DeviceInfo device;
            QVERIFY(!store.find(device));
            Verdict verdict;
            verdict.kind = VerdictKind::on;
            verdict.os = os_name();
            REQUIRE(store.keep(verdict));
            QVERIFY(store.find(device).has_value());
        }
    }
    void noGpu() {
        auto o = options();
        o.test.path = sim_.nothing();
        const auto list = list_devices(o);
        QVERIFY(list.devices.empty());
        QVERIFY(list.cuda_problem.starts_with("none of "));
        QVERIFY(list.hip_problem.starts_with("none of "));
    }
    void theWholeTestIsQuick() {
        auto o = options();
        o.test.options = {};
        const auto list = list_devices(o);
        for (const auto& device : list.devices) {
            QVERIFY2(device.verdict->kind == VerdictKind::on, joined(*device.verdict).c_str());
            QCOMPARE(device.verdict->segment_bytes, 128 * MiB);
            qInfo("%s: %.2f s", device.info.id.c_str(), device.verdict->seconds);
        }
    }
    void leavesNothingBehind_data() {
        QTest::addColumn<int>("backend");
        QTest::newRow("cuda") << 0;
        QTest::newRow("hip") << 1;
    }
    void leavesNothingBehind() {
        QFETCH(int, backend);
        {
            auto driver = gpu::Driver::load(static_cast<gpu::Backend>(backend), sim_.path());
            REQUIRE(driver);
            const auto device = (*driver)->devices()[0];
            const auto counter = gpu::MemoryCounter::open(device, sim_.path());
            const auto verdict = run_self_test(**driver, device, counter.get());
            QVERIFY2(verdict.kind == VerdictKind::on, joined(verdict).c_str());
        }
        QCOMPARE(test::leaks(sim_.counters()), std::string());
    }
};

int main(int argc, char** argv) {
    if (const auto code = run_hidden_command({argv + 1, argv + argc})) return *code;
    QCoreApplication app(argc, argv);
    spdlog::set_level(spdlog::level::warn);
    TestVerdict test;
    return QTest::qExec(&test, argc, argv);
}
#include "tst_verdict.moc"
