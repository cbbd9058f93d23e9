#pragma once

// The simulated drivers in a test: the folder they lie in, their description, and their control functions.

#include <QTemporaryDir>

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/gpu/driver.h"
#include "core/gpu/search_path.h"
#include "tests/simgpu/control.h"

// Ends the test function unless a Result holds a value; its error is the message.
#define REQUIRE(expression)                                                                           \
    do {                                                                                              \
        const auto& required_ = (expression);                                                         \
        QVERIFY2(required_.has_value(), required_ ? "" : required_.error().message.c_str());           \
    } while (false)

namespace headroom::test {

class SimGpu {
public:
    // Loads the simulator into this process; it stays there.
    SimGpu();
    // Where the simulator lies: simgpu/ of the build folder.
    [[nodiscard]] static std::filesystem::path library();

    // Starts again with a description (see control.h), here and in child processes started from now on.
    void reset(const nlohmann::json& description);
    // One card of each kind with 4 GiB.
    [[nodiscard]] static nlohmann::json healthy();
    [[nodiscard]] static nlohmann::json with_faults(nlohmann::json faults, nlohmann::json calls = nlohmann::json::array());

    [[nodiscard]] gpu::SearchPath path() const;
    // What HEADROOM_GPU_LIBRARIES has to name so that a finished program sees these drivers and their counters in sysfs (on Windows: the drivers).
    [[nodiscard]] std::filesystem::path folder_for_programs() const;
    // A folder without any driver.
    [[nodiscard]] gpu::SearchPath nothing() const;
    // A fresh folder for verdict caches.
    [[nodiscard]] std::filesystem::path folder() const;

    [[nodiscard]] SimCounters counters() const;
    [[nodiscard]] std::vector<std::string> trace() const;
    void fail(const std::string& function, std::uint64_t call, int code = 1) { rule_(function.c_str(), call, "fail", code); }
    void clear_rules() { rule_(nullptr, 0, nullptr, 0); }
    void set_other(gpu::Backend backend, int device, std::uint64_t bytes) { other_(std::string(gpu::to_string(backend)).c_str(), device, bytes); }
    void register_kernel(const char* name, SimKernel kernel, const std::vector<std::size_t>& sizes) {
        register_(name, kernel, sizes.data(), sizes.size());
    }

private:
    QTemporaryDir folder_;
    SimReset reset_ = nullptr;
    SimReadCounters counters_ = nullptr;
    SimTrace trace_ = nullptr;
    SimRule rule_ = nullptr;
    SimOther other_ = nullptr;
    SimRegister register_ = nullptr;
};

// What is alive, in words, for a test's message; empty where nothing is left and no segment was ever mapped twice or made for RDMA.
[[nodiscard]] std::string leaks(const SimCounters& counters);

}  // namespace headroom::test
