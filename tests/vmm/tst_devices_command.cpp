#include <QTest>

#include <algorithm>

#include "core/base/bytes.h"
#include "core/base/paths.h"
#include "core/base/process.h"
#include "tests/simgpu/fixture.h"

using namespace headroom;
using headroom::test::SimGpu;
using nlohmann::json;

// The finished program, `headroom-cli devices`, on simulated drivers and without any.
class TestDevicesCommand : public QObject {
    Q_OBJECT
    SimGpu sim_;

    ChildResult run(std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), "devices");
        const auto name = program_file().extension() == ".exe" ? "headroom-cli.exe" : "headroom-cli";
        const auto result = run_child({.program = program_folder() / name, .arguments = std::move(arguments), .time_limit = std::chrono::seconds(60)});
        if (!result) qFatal("%s", result.error().message.c_str());
        return *result;
    }

private slots:
    void init() {
        sim_.reset(SimGpu::healthy());
        qputenv("HEADROOM_GPU_LIBRARIES", QByteArray::fromStdString(to_utf8(sim_.folder_for_programs())));
        qputenv("XDG_DATA_HOME", QByteArray::fromStdString(to_utf8(sim_.folder())));
    }

    void jsonHasTheContractsFields() {
        json d = SimGpu::with_faults({{"release_keeps_memory", true}});
        d["cuda"][0] = {{"name", "Card \"A\""}, {"total_mib", 8192}, {"other_mib", 1024}};
        sim_.reset(d);
        const auto result = run({"--json", "--retest"});
        QCOMPARE(result.code, 0);
        const json out = json::parse(result.output, nullptr, false);
        QVERIFY2(out.is_object(), result.output.c_str());
        QCOMPARE(out["devices"].size(), std::size_t(2));
        const json& cuda = out["devices"][0];
        QCOMPARE(cuda["id"].dump(), json("cuda:0").dump());
        QCOMPARE(cuda["backend"].dump(), json("cuda").dump());
        QCOMPARE(cuda["name"].dump(), json("Card \"A\"").dump());
        QCOMPARE(cuda["uuid"].dump(), json("GPU-00112233-4455-6677-8899-aabbccddee00").dump());
        QCOMPARE(cuda["driver"].dump(), json("580.10").dump());
        QCOMPARE(cuda["runtime"].dump(), json("CUDA 13.0").dump());
        QCOMPARE(cuda["total_mib"].dump(), json(8192).dump());
        QCOMPARE(cuda["free_mib"].dump(), json(7168).dump());
        QCOMPARE(cuda["verdict"].dump(), json("off").dump());
        QCOMPARE(cuda["reason"].dump(), json("the free VRAM by the runtime fell by 32 MiB for 32 MiB mapped and rose by 0 MiB after its release (CUDA 13.0, driver 580.10)").dump());
        QCOMPARE(cuda["granularity_min"].dump(), json(2097152).dump());
        QCOMPARE(cuda["granularity_recommended"].dump(), json(2097152).dump());
        QCOMPARE(cuda["segment_mib"].dump(), json(0).dump());
        QCOMPARE(out["devices"][1]["id"].dump(), json("hip:0").dump());
    }
    void keptVerdictsAreQuick() {
        // Drivers take this long to start, and need not be started again.
        sim_.reset(SimGpu::with_faults({}, json::array({{{"function", "cuInit"}, {"call", 1}, {"action", "wait"}, {"code", 500}},
                                                        {{"function", "hipInit"}, {"call", 1}, {"action", "wait"}, {"code", 500}}})));
        QCOMPARE(run({"--json", "--retest"}).code, 0);
        std::vector<double> seconds;
        for (int i = 0; i < 5; ++i) {
            const auto result = run({"--json"});
            QCOMPARE(result.code, 0);
            const json out = json::parse(result.output, nullptr, false);
            QCOMPARE(out["devices"][0]["verdict"].dump(), json("on").dump());
            QCOMPARE(out["devices"][0]["segment_mib"].dump(), json(128).dump());
            QCOMPARE(out["devices"][0]["tested_now"].dump(), json(false).dump());
            seconds.push_back(result.seconds);
        }
        qInfo("kept verdicts: %.1f ms at best of five", *std::ranges::min_element(seconds) * 1000);
#ifndef _WIN32  // AMD's driver is started there: nothing else tells what it depends on
        QVERIFY2(*std::ranges::min_element(seconds) < 0.5, "a driver was started");
#endif
    }
    void textNamesVerdictAndReason() {
        sim_.reset(SimGpu::with_faults({{"later_segments_alias", true}}));
        const auto result = run({"--retest"});
        QCOMPARE(result.code, 0);
        QVERIFY2(result.output.find("cuda:0  Simulated CUDA card    ◐ fixed") != std::string::npos, result.output.c_str());
        QVERIFY2(result.output.find("Reason   segment 2 of 4 shows the pages of segment 1; one mapping") != std::string::npos, result.output.c_str());
        QVERIFY(result.output.find('\x1b') == std::string::npos);  // no colours for a pipe
    }
    void noGpu() {
        qputenv("HEADROOM_GPU_LIBRARIES", QByteArray::fromStdString(to_utf8(sim_.nothing().libraries)));
        std::vector<double> seconds;
        for (int i = 0; i < 5; ++i) {
            const auto result = run({});
            QCOMPARE(result.code, 0);
            QVERIFY2(result.output.starts_with("No NVIDIA or AMD GPU was found, so models run on the processor.\n  NVIDIA: none of "), result.output.c_str());
            seconds.push_back(result.seconds);
        }
        qInfo("no GPU: %.1f ms at best of five", *std::ranges::min_element(seconds) * 1000);
        const json out = json::parse(run({"--json"}).output, nullptr, false);
        QCOMPARE(out["devices"].size(), std::size_t(0));
        QVERIFY(out["explanation"].get<std::string>().find("NVIDIA") != std::string::npos);
    }
};

QTEST_GUILESS_MAIN(TestDevicesCommand)
#include "tst_devices_command.moc"
