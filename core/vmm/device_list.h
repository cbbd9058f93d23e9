#pragma once

// The machine's GPUs with their verdicts: what `headroom-cli devices` prints and the window's Devices page shows.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/gpu/driver.h"
#include "core/gpu/memory_counter.h"
#include "core/vmm/self_test_process.h"
#include "core/vmm/verdict_store.h"

namespace headroom::vmm {

struct ListedDevice {
    gpu::DeviceInfo info;
    std::shared_ptr<gpu::MemoryCounter> counter;  // the driver's own; null where there is none
    std::optional<Verdict> verdict;
    bool from_store = false;                      // it was not tested just now
};

struct DeviceList {
    std::vector<ListedDevice> devices;   // CUDA's, then HIP's
    std::string cuda_problem;            // why there are none of this kind; empty where there are
    std::string hip_problem;
};

struct DeviceListOptions {
    SelfTestProcess test;                // also says where drivers are looked for
    std::filesystem::path store = VerdictStore::default_file();
    [[nodiscard]] std::filesystem::path known() const { return store.parent_path() / "devices.json"; }  // see KnownDevices
    bool retest = false;                 // do not look into the store
    std::function<void(const gpu::DeviceInfo& device)> on_test;  // called before a device is tested
};

// The devices without their verdicts: loads the drivers, makes no context, tests nothing. known: a file that spares starting the
// drivers where nothing changed since (KnownDevices); empty: ask them.
[[nodiscard]] DeviceList find_devices(const gpu::SearchPath& path, const std::filesystem::path& known = {});

// The verdict of one device: from the store, or by a test in a child, which is then kept. Blocks for the test's time limit at most. Where
// the test was stopped there is no verdict. Different devices may be tested side by side from several threads.
void add_verdict(ListedDevice& device, const DeviceListOptions& options);

// Both; devices that have to be tested are tested side by side.
[[nodiscard]] DeviceList list_devices(const DeviceListOptions& options);

}  // namespace headroom::vmm
