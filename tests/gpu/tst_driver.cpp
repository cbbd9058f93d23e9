#include <QTest>

#include <algorithm>
#include <numeric>
#include <set>

#include "core/base/bytes.h"
#include "core/base/paths.h"
#include "core/gpu/memory_counter.h"
#include "tests/simgpu/fixture.h"
#include "tests/simgpu/reduced_drivers.h"

using namespace headroom;
using namespace headroom::gpu;
using headroom::test::SimGpu;
using nlohmann::json;

namespace {

// y[i] = a * x[i] + y[i]: the whole launch, as a function of the processor.
void axpy(const SimLaunch*, void** p) {
    const float a = *static_cast<float*>(p[0]);
    const float* x = *static_cast<const float**>(p[1]);
    float* y = *static_cast<float**>(p[2]);
    const int n = *static_cast<int*>(p[3]);
    for (int i = 0; i < n; ++i) y[i] += a * x[i];
}

}  // namespace

class TestDriver : public QObject {
    Q_OBJECT
    SimGpu sim_;

    static void backends() {
        QTest::addColumn<int>("backend");
        QTest::newRow("cuda") << 0;
        QTest::newRow("hip") << 1;
    }

private slots:
    void init() { sim_.reset(SimGpu::healthy()); }

    void absentDrivers() {
        for (const Backend backend : {Backend::cuda, Backend::hip}) {
            const auto driver = Driver::load(backend, sim_.nothing());
            QVERIFY(!driver);
            QCOMPARE(driver.error().kind, ErrorKind::not_found);
            QVERIFY2(driver.error().message.starts_with("none of "), driver.error().message.c_str());
        }
    }
    void driverWithoutDevices() {
        sim_.reset({{"cuda", json::array()}, {"hip", json::array()}});
        for (const Backend backend : {Backend::cuda, Backend::hip}) {
            const auto driver = Driver::load(backend, sim_.path());
            QVERIFY(!driver);
            QCOMPARE(driver.error().kind, ErrorKind::not_found);
            QVERIFY2(driver.error().message.ends_with("is there, but it finds no device"), driver.error().message.c_str());
        }
    }
    void describesCudaDevices() {
        sim_.reset({{"cuda",
                     {{{"name", "Card A"}, {"uuid", "9f9b4a3c0011223344556677889900aa"}, {"bus", "0000:0A:00.0"}, {"architecture", "12.0"}, {"total_mib", 8192}},
                      {{"integrated", true}, {"vmm", false}}}},
                    {"cuda_version", 12040},
                    {"driver_version", "551.61"}});
        const auto driver = Driver::load(Backend::cuda, sim_.path());
        REQUIRE(driver);
        const auto devices = (*driver)->devices();
        QCOMPARE(devices.size(), std::size_t(2));
        QCOMPARE(devices[0].id, std::string("cuda:0"));
        QCOMPARE(devices[0].name, std::string("Card A"));
        QCOMPARE(devices[0].uuid, std::string("GPU-9f9b4a3c-0011-2233-4455-6677889900aa"));
        QCOMPARE(devices[0].bus, std::string("0000:0a:00.0"));
        QCOMPARE(devices[0].architecture, std::string("sm_120"));
        QCOMPARE(devices[0].driver, std::string("551.61"));
        QCOMPARE(devices[0].runtime, std::string("CUDA 12.4"));
        QCOMPARE(devices[0].total_bytes, 8 * GiB);
        QVERIFY(devices[0].vmm_attribute && !devices[0].integrated);
        QVERIFY(!devices[1].vmm_attribute && devices[1].integrated);
        QCOMPARE(sim_.counters().contexts, std::uint64_t(0));  // listing costs no context
    }
    void describesHipDevices() {
        sim_.reset({{"hip", {{{"name", "Radeon"}, {"uuid", "4ff8a1b2c3d4e5f6"}, {"architecture", "gfx1201"}}}}, {"hip_version", 70253210}});
        const auto driver = Driver::load(Backend::hip, sim_.path());
        REQUIRE(driver);
        const auto& device = (*driver)->devices()[0];
        QCOMPARE(device.id, std::string("hip:0"));
        QCOMPARE(device.uuid, std::string("GPU-4ff8a1b2c3d4e5f6"));
        QCOMPARE(device.architecture, std::string("gfx1201"));
        QCOMPARE(device.runtime, std::string("HIP 7.2.53210"));
        QCOMPARE(device.driver, std::string("580.10"));
        QVERIFY(device.vmm_attribute);
    }
    void lackingFunctionsAreNamed_data() { backends(); }
    void lackingFunctionsAreNamed() {
#ifdef _WIN32
        QSKIP("the simulated drivers can be reduced on Linux only");
#endif
        QFETCH(int, backend);
        enum Group { basic, vmm };
        std::set<std::string> names;
        const auto add = [&](Group group, const char* cuda, const char* hip) {
            if (group == basic) names.insert(backend == 0 ? cuda : hip);
        };
#define HR_ADD(group, member, cuda, hip, parameters) add(group, cuda, hip);
        HR_GPU_ENTRY_POINTS(HR_ADD)
#undef HR_ADD
        const std::set<std::string> own = backend == 0 ? std::set<std::string>{"cuDeviceGet", "cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRelease_v2",
                                                                               "cuCtxSetCurrent", "cuGetErrorName", "cuFuncSetAttribute"}
                                                       : std::set<std::string>{"hipSetDevice", "hipRuntimeGetVersion", "hipGetErrorName"};
        const char* library = backend == 0 ? "libcuda.so.1" : "libamdhip64.so.7";
        for (const auto& without : {std::set<std::string>{*names.begin()}, names, std::set<std::string>{*own.begin()}, own}) {
            QTemporaryDir folder;
            const gpu::SearchPath path{.libraries = from_utf8(folder.path().toStdString())};
            QVERIFY(test::make_reduced_drivers(sim_.path().libraries, path.libraries, without));
            const auto driver = Driver::load(static_cast<Backend>(backend), path);
            QVERIFY(!driver);
            QCOMPARE(driver.error().kind, ErrorKind::unsupported);
            const std::string& message = driver.error().message;
            QVERIFY2(message.starts_with(to_utf8(path.libraries / library) + " lacks functions that are needed ("), message.c_str());
            QVERIFY2(message.ends_with("): please update the GPU driver"), message.c_str());
            for (const auto& name : without) QVERIFY2(message.find(name) != std::string::npos, message.c_str());
            QCOMPARE(std::ranges::count(message, ','), static_cast<std::ptrdiff_t>(without.size()) - 1);  // and no others
        }
    }
    // HIP 5: the library's name, its functions, and the old structure of properties under the old function.
    void describesDevicesOfHip5() {
#ifdef _WIN32
        QSKIP("the simulated drivers can be reduced on Linux only");
#endif
        sim_.reset({{"hip", {{{"name", "Radeon VII"}, {"uuid", "4ff8a1b2c3d4e5f6"}, {"architecture", "gfx906:sramecc+:xnack-"}, {"total_mib", 16368}}}},
                    {"hip_version", 50221151}});
        QTemporaryDir folder;
        const gpu::SearchPath path{.libraries = from_utf8(folder.path().toStdString()), .sysfs = sim_.path().sysfs};
        QVERIFY(test::make_reduced_drivers(sim_.path().libraries, path.libraries, {"hipGetDevicePropertiesR0600"}, "libamdhip64.so.5"));
        const auto driver = Driver::load(Backend::hip, path);
        REQUIRE(driver);
        QVERIFY((*driver)->library().ends_with("/libamdhip64.so.5"));
        const auto& device = (*driver)->devices()[0];
        QCOMPARE(device.name, std::string("Radeon VII"));
        QCOMPARE(device.architecture, std::string("gfx906:sramecc+:xnack-"));
        QCOMPARE(device.total_bytes, 16368 * MiB);
        QCOMPARE(device.runtime, std::string("HIP 5.2.21151"));
        QCOMPARE(device.uuid, std::string("GPU-4ff8a1b2c3d4e5f6"));
        QVERIFY(device.vmm_attribute);
        // The complete library has both functions; the new one is asked.
        const auto complete = Driver::load(Backend::hip, sim_.path());
        REQUIRE(complete);
        QCOMPARE((*complete)->devices()[0].architecture, device.architecture);
    }
    // H13: one copy must not span two reservations, even where one begins at the other's end. A kernel may.
    void copiesStayWithinAReservation_data() { backends(); }
    void copiesStayWithinAReservation() {
        QFETCH(int, backend);
        constexpr std::uint64_t unit = 2 * MiB;
        auto description = SimGpu::healthy();
        description["adjacent_ranges"] = true;
        sim_.reset(description);
        sim_.register_kernel("axpy", axpy, {4, 8, 8, 4});
        {
            const auto loaded = Driver::load(static_cast<Backend>(backend), sim_.path());
            REQUIRE(loaded);
            Driver& driver = **loaded;
            REQUIRE(driver.make_current(0));
            DevicePointer at[2] = {};
            SegmentHandle segments[2] = {};
            for (int i = 0; i < 2; ++i) {
                const auto range = driver.reserve(0, unit);
                const auto segment = driver.create_segment(0, unit);
                REQUIRE(range);
                REQUIRE(segment);
                at[i] = *range;
                segments[i] = *segment;
                REQUIRE(driver.map(0, at[i], unit, segments[i]));
            }
            QCOMPARE(at[1], at[0] + unit);
            QVERIFY(!driver.set_access(0, at[0], 2 * unit, false));
            for (const auto pointer : at) REQUIRE(driver.set_access(0, pointer, unit, false));
            std::vector<float> ones(2 * unit / sizeof(float), 1.0F);
            QVERIFY(!driver.fill(at[0], 0, 2 * unit));
            QVERIFY(!driver.copy_to_device(at[0], ones.data(), 2 * unit));
            QVERIFY(!driver.copy_to_host(ones.data(), at[1] - 8, 16));
            QVERIFY(!driver.copy_on_device(at[0], at[1] - 8, 16));
            for (const auto pointer : at) REQUIRE(driver.copy_to_device(pointer, ones.data(), unit));  // split at the border
            const auto module = driver.load_module("simulated module: axpy");
            REQUIRE(module);
            const auto function = driver.function(*module, "axpy");
            REQUIRE(function);
            float a = 2;
            int count = static_cast<int>(ones.size());
            void* parameters[] = {&a, &at[0], &at[0], &count};
            REQUIRE(driver.launch(*function, {}, {}, 0, nullptr, parameters));
            REQUIRE(driver.copy_to_host(ones.data(), at[1], unit));
            QCOMPARE(ones[0], 3.0F);
            REQUIRE(driver.unload_module(*module));
            for (int i = 0; i < 2; ++i) {
                REQUIRE(driver.unmap(0, at[i], unit));
                REQUIRE(driver.release_segment(0, segments[i]));
                REQUIRE(driver.free_addresses(0, at[i], unit));
            }
        }
        QCOMPARE(test::leaks(sim_.counters()), std::string());
    }
    void prefersRealCards() {
        std::vector<DeviceInfo> devices(3);
        devices[0].integrated = true;
        devices[0].total_bytes = 64 * GiB;
        devices[1].total_bytes = 8 * GiB;
        devices[2].total_bytes = 16 * GiB;
        QCOMPARE(default_device(devices), &devices[2]);
        devices.resize(1);
        QCOMPARE(default_device(devices), &devices[0]);
        QVERIFY(!default_device({}));
    }
    void errorsNameCallCodeAndDevice() {
        const auto driver = Driver::load(Backend::cuda, sim_.path());
        REQUIRE(driver);
        sim_.fail("cuMemCreate", 1, 2);
        const auto segment = (*driver)->create_segment(0, 2 * MiB);
        QVERIFY(!segment);
        QCOMPARE(segment.error().kind, ErrorKind::out_of_memory);
        QCOMPARE(segment.error().message, std::string("cuMemCreate on cuda:0 (Simulated CUDA card) failed: CUDA_ERROR_OUT_OF_MEMORY (2)"));
        REQUIRE((*driver)->make_current(0));
        const auto copy = (*driver)->fill(4096, 0, 1);
        QVERIFY(!copy);
        QCOMPARE(copy.error().kind, ErrorKind::device);
        QCOMPARE(copy.error().message, std::string("cuMemsetD8Async on cuda:0 (Simulated CUDA card) failed: CUDA_ERROR_INVALID_VALUE (1)"));
        sim_.fail("cuMemFree_v2", 1, 4711);
        QCOMPARE((*driver)->free(0).error().message, std::string("cuMemFree_v2 on cuda:0 (Simulated CUDA card) failed: error 4711"));
        QVERIFY(!(*driver)->make_current(3));
    }
    void worksThroughStreamsGraphsAndEvents_data() {
        QTest::addColumn<int>("backend");
        QTest::addColumn<bool>("asynchronous");
        QTest::newRow("cuda") << 0 << false;
        QTest::newRow("hip") << 1 << false;
        QTest::newRow("cuda, asynchronous") << 0 << true;
        QTest::newRow("hip, asynchronous") << 1 << true;
    }
    void worksThroughStreamsGraphsAndEvents() {
        QFETCH(int, backend);
        QFETCH(bool, asynchronous);
        auto description = SimGpu::healthy();
        description["asynchronous"] = asynchronous;
        sim_.reset(description);
        sim_.register_kernel("axpy", axpy, {4, 8, 8, 4});
        {
            const auto loaded = Driver::load(static_cast<Backend>(backend), sim_.path());
            REQUIRE(loaded);
            Driver& driver = **loaded;
            REQUIRE(driver.make_current(0));
            constexpr int n = 1000;
            std::vector<float> x(n), y(n, 1.0F);
            std::iota(x.begin(), x.end(), 0.0F);
            const auto stream = driver.create_stream();
            REQUIRE(stream);
            auto dx = driver.allocate(n * 4), dy = driver.allocate(n * 4);
            REQUIRE(dx);
            REQUIRE(dy);
            REQUIRE(driver.copy_to_device(*dx, x.data(), n * 4, *stream));
            REQUIRE(driver.copy_to_device(*dy, y.data(), n * 4, *stream));
            const auto module = driver.load_module("simulated module: axpy");
            REQUIRE(module);
            const auto function = driver.function(*module, "axpy");
            REQUIRE(function);
            QVERIFY(!driver.function(*module, "absent"));
            const auto from = driver.create_event(true), to = driver.create_event(true);
            REQUIRE(from);
            REQUIRE(to);
            REQUIRE(driver.record_event(*from, *stream));
            float a = 2;
            int count = n;
            void* parameters[] = {&a, &*dx, &*dy, &count};
            REQUIRE(driver.begin_capture(*stream));
            REQUIRE(driver.launch(*function, {4}, {256}, 0, *stream, parameters));
            const auto graph = driver.end_capture(*stream);
            REQUIRE(graph);
            a = 99;  // the graph keeps the values, not the pointers
            const auto exec = driver.instantiate_graph(*graph);
            REQUIRE(exec);
            for (int i = 0; i < 3; ++i) REQUIRE(driver.launch_graph(*exec, *stream));
            REQUIRE(driver.record_event(*to, *stream));
            REQUIRE(driver.copy_to_host(y.data(), *dy, n * 4, *stream));
            REQUIRE(driver.synchronize_stream(*stream));
            QCOMPARE(*driver.stream_done(*stream), true);
            for (int i = 0; i < n; ++i) QCOMPARE(y[static_cast<std::size_t>(i)], 1.0F + 3 * 2.0F * static_cast<float>(i));
            REQUIRE(driver.elapsed_ms(*from, *to));
            QVERIFY(*driver.elapsed_ms(*from, *to) >= 0);
            REQUIRE(driver.destroy_graph_exec(*exec));
            REQUIRE(driver.destroy_graph(*graph));
            REQUIRE(driver.destroy_event(*from));
            REQUIRE(driver.destroy_event(*to));
            REQUIRE(driver.unload_module(*module));
            REQUIRE(driver.free(*dx));
            REQUIRE(driver.free(*dy));
            REQUIRE(driver.destroy_stream(*stream));
            const auto pinned = driver.allocate_host(4096);
            REQUIRE(pinned);
            REQUIRE(driver.register_host(x.data(), n * 4, true));
            QVERIFY(!driver.register_host(x.data(), n * 4, true));
            REQUIRE(driver.unregister_host(x.data()));
            REQUIRE(driver.free_host(*pinned));
        }
        QCOMPARE(test::leaks(sim_.counters()), std::string());
    }
    void countersSeeEveryProgram() {
        for (const Backend backend : {Backend::cuda, Backend::hip}) {
            sim_.reset(SimGpu::healthy());
            const auto driver = Driver::load(backend, sim_.path());
            REQUIRE(driver);
            const auto counter = MemoryCounter::open((*driver)->devices()[0], sim_.path());
            QVERIFY(counter != nullptr);
            QCOMPARE(std::string(counter->name()), std::string(backend == Backend::cuda ? "NVML" : "amdgpu"));
            sim_.set_other(backend, 0, 1 * GiB);
            REQUIRE((*driver)->make_current(0));
            const auto plain = (*driver)->allocate(64 * MiB);
            REQUIRE(plain);
            const auto reading = counter->read();
            REQUIRE(reading);
            QCOMPARE(reading->total, 4 * GiB);
            QCOMPARE(reading->used, 1 * GiB + 64 * MiB);
            QCOMPARE(reading->free, 3 * GiB - 64 * MiB);
            if (backend == Backend::cuda) QCOMPARE(reading->own.value_or(0), 64 * MiB);
            const auto runtime = (*driver)->memory_info();
            REQUIRE(runtime);
            QCOMPARE(runtime->free, reading->free);
            REQUIRE((*driver)->free(*plain));
        }
    }
    void systemDriversLoadOrSayWhy() {
        for (const Backend backend : {Backend::cuda, Backend::hip}) {
            const auto driver = Driver::load(backend, {});
            if (driver) continue;  // a machine with a GPU
            qInfo("%s", driver.error().message.c_str());
            QVERIFY(!driver.error().message.empty());
        }
    }
};

QTEST_GUILESS_MAIN(TestDriver)
#include "tst_driver.moc"
