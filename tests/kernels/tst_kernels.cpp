// Kernels: which code a device gets, and what a launch checks.

#include <QTest>

#include "core/compute/gpu/ops.h"
#include "tests/simgpu/fixture.h"
#include "tests/simgpu/simulated_images.h"

using namespace headroom;
using namespace headroom::test;
using kernels::Kernel;
using kernels::Kernels;

namespace {

gpu::DeviceInfo card(gpu::Backend backend, std::string architecture) {
    gpu::DeviceInfo device;
    device.backend = backend;
    device.name = "Some Card";
    device.architecture = std::move(architecture);
    return device;
}

}  // namespace

class TestKernels : public QObject {
    Q_OBJECT

    SimGpu sim_;

    // A driver with its first device current.
    std::unique_ptr<gpu::Driver> driver(gpu::Backend backend = gpu::Backend::cuda) {
        auto loaded = gpu::Driver::load(backend, sim_.path());
        if (!loaded || !(*loaded)->make_current(0)) qFatal("the simulated driver does not load");
        return std::move(*loaded);
    }

private slots:
    void init() { sim_.reset(SimGpu::healthy()); }

    void codeForADevice_data() {
        QTest::addColumn<bool>("hip");
        QTest::addColumn<QString>("architecture");
        QTest::addColumn<QString>("error");
        const auto row = [](const char* name, bool hip, const char* architecture, const char* error) {
            QTest::newRow(name) << hip << architecture << error;
        };
        row("the same", false, "sm_80", "");
        row("a later one of the generation", false, "sm_87", "");
        row("an earlier one of the generation", false, "sm_75", "this build has no kernels for sm_75 (Some Card); it was built for sm_80, sm_86, PTX of compute_90");
        row("PTX", false, "sm_120", "");
        row("AMD", true, "gfx1100", "");
        row("AMD, with features", true, "gfx90a:sramecc+:xnack-", "");
        row("another AMD", true, "gfx1101", "this build has no kernels for gfx1101 (Some Card); it was built for gfx90a, gfx1100");
        row("HIP on an NVIDIA card", true, "sm_86", "");
        row("unknown", true, "", "this build has no kernels for a device of unknown architecture (Some Card); it was built for gfx90a, gfx1100");
    }
    void codeForADevice() {
        QFETCH(bool, hip);
        QFETCH(QString, architecture);
        QFETCH(QString, error);
        const auto* data = simulated_images().images[0].data;
        const kernels::Image images[] = {{"a", "cuda", data, 1}, {"a", "gfx90a", data, 1}, {"a", "gfx1100", data, 1},
                                         {"b", "cuda", data, 1}, {"b", "gfx90a", data, 1}, {"b", "gfx1100", data, 1}};
        const auto backend = hip ? gpu::Backend::hip : gpu::Backend::cuda;
        const auto gpu = driver(backend);
        const auto loaded = Kernels::load(*gpu, card(backend, architecture.toStdString()), {images, "80 86", "90"});
        if (error.isEmpty()) {
            REQUIRE(loaded);
            QCOMPARE(sim_.counters().modules, 2U);
        } else {
            QVERIFY(!loaded);
            QCOMPARE(loaded.error().kind, ErrorKind::unsupported);
            QCOMPARE(QString::fromStdString(loaded.error().message), error);
        }
    }

    void buildWithoutACompiler() {
        const auto gpu = driver();
        const auto nvidia = Kernels::load(*gpu, card(gpu::Backend::cuda, "sm_89"), {});
        QVERIFY(!nvidia);
        QCOMPARE(nvidia.error().message, std::string("this build has no kernels for NVIDIA cards, so Some Card is not used: it was built without nvcc"));
        const auto amd = Kernels::load(*gpu, card(gpu::Backend::hip, "gfx1100"), {});
        QVERIFY(!amd);
        QCOMPARE(amd.error().message, std::string("this build has no kernels for AMD cards, so Some Card is not used: it was built without clang"));
    }

    // The code in this program, where the simulated cards are ones that it was built for.
    void codeOfThisBuildLoads() {
        for (const auto backend : {gpu::Backend::cuda, gpu::Backend::hip}) {
            const auto gpu = driver(backend);
            const auto loaded = Kernels::load(*gpu, gpu->devices()[0]);
            QVERIFY2(loaded || loaded.error().message.find("built without") != std::string::npos, loaded ? "" : loaded.error().message.c_str());
        }
    }

    void failuresLeaveNothing() {
        for (const auto* call : {"cuModuleLoadData", "cuModuleUnload"}) {
            const auto gpu = driver();
            sim_.fail(call, 1);
            const auto loaded = Kernels::load(*gpu, gpu->devices()[0], simulated_images());
            QCOMPARE(loaded.has_value(), call == std::string("cuModuleUnload"));
            sim_.clear_rules();
            if (!loaded) QCOMPARE(loaded.error().kind, ErrorKind::device);
        }
        QCOMPARE(leaks(sim_.counters()), std::string());
    }

    void launchesAreChecked() {
        const auto gpu = driver();
        const auto loaded = Kernels::load(*gpu, gpu->devices()[0], simulated_images());
        REQUIRE(loaded);
        Kernels& kernels = **loaded;
        QCOMPARE(kernels.shared_limit(), 227U << 10);
        std::vector<float> x = {1, 3, 2};
        std::int32_t best = -1;
        const kernels::ArgmaxArguments arguments{.x = x.data(), .rows = 1, .n = 3, .out = &best};
        REQUIRE(kernels.launch(Kernel::argmax_rows, {1}, {32}, 0, nullptr, arguments));
        QCOMPARE(best, 1);

        const auto other = kernels.launch(Kernel::argmax_rows, {1}, {32}, 0, nullptr, kernels::TopArguments{});
        QVERIFY(!other);
        QCOMPARE(other.error().message, fmt::format("the kernel argmax_rows takes a structure of {} bytes; it was given {}", sizeof arguments,
                                                    sizeof(kernels::TopArguments)));
        const auto greedy = kernels.launch(Kernel::argmax_rows, {1}, {32}, (227 << 10) + 1, nullptr, arguments);
        QVERIFY(!greedy);
        QCOMPARE(greedy.error().message, std::string("the kernel argmax_rows would need 232449 bytes of shared memory; a block on Simulated CUDA card has at most 232448"));
    }

    // The driver is asked once for each larger amount, and for each kernel.
    void sharedMemoryIsAskedForOnce() {
        const auto gpu = driver();
        const auto loaded = Kernels::load(*gpu, gpu->devices()[0], simulated_images());
        REQUIRE(loaded);
        std::vector<float> x = {1, 3, 2};
        std::int32_t best = -1;
        const kernels::ArgmaxArguments arguments{.x = x.data(), .rows = 1, .n = 3, .out = &best};
        const auto asked = [&] { return std::ranges::count(sim_.trace(), "cuFuncSetAttribute"); };
        REQUIRE((*loaded)->launch(Kernel::argmax_rows, {1}, {32}, 0, nullptr, arguments));
        QCOMPARE(asked(), 0);
        for (const unsigned bytes : {50000U, 50000U, 40000U, 90000U, 60000U}) {
            REQUIRE((*loaded)->launch(Kernel::argmax_rows, {1}, {32}, bytes, nullptr, arguments));
        }
        QCOMPARE(asked(), 2);
    }
};

QTEST_GUILESS_MAIN(TestKernels)
#include "tst_kernels.moc"
