#include "core/vmm/device_list.h"

#include <mutex>
#include <thread>

#include <spdlog/spdlog.h>

#include "core/base/system.h"
#include "core/gpu/nvml.h"
#include "core/vmm/known_devices.h"
#include "core/vmm/verdict_text.h"

namespace headroom::vmm {
namespace {

bool find_kept(ListedDevice& device, const DeviceListOptions& options) {
    device.verdict = options.retest ? std::nullopt : VerdictStore(options.store).find(device.info);
    device.from_store = device.verdict.has_value();
    return device.from_store;
}

std::mutex store_mutex;  // the store is read, changed and written again

void test(ListedDevice& device, const DeviceListOptions& options) {
    device.verdict = test_in_child(device.info, options.test);
    if (options.test.stop.stop_requested()) return device.verdict.reset();
    spdlog::info("{} ({}): verdict {}{}{}", device.info.id, device.info.name, to_string(device.verdict->kind),
                 device.verdict->reason.empty() ? "" : ": ", device.verdict->reason);
    if (!device.verdict->keep) return;
    const std::scoped_lock lock(store_mutex);
    if (const auto kept = VerdictStore(options.store).keep(*device.verdict); !kept) {
        spdlog::warn("The verdict is not kept: {}", kept.error().message);
    }
}

}  // namespace

DeviceList find_devices(const gpu::SearchPath& path, const std::filesystem::path& known) {
    DeviceList list;
    const auto add = [&](const gpu::DeviceInfo& device) {
        list.devices.push_back({device, gpu::MemoryCounter::open(device, path), std::nullopt, false});
    };
    // Asks a driver, and hands it to `keep` where it has devices.
    const auto ask = [&](gpu::Backend backend, std::string& problem, const auto& keep) {
        const auto driver = gpu::Driver::load(backend, path);
        if (!driver) {
            problem = driver.error().message;
            return;
        }
        for (const auto& device : (*driver)->devices()) add(device);
        if (!known.empty()) keep(**driver);
    };
    const KnownDevices kept(known);
    const auto nvml = gpu::Nvml::load(path);  // alive while counters are opened: starting it again would cost as much again
    if (const auto devices = nvml && !known.empty() ? kept.find_cuda(**nvml) : std::nullopt) {
        for (const auto& device : *devices) add(device);
    } else {
        ask(gpu::Backend::cuda, list.cuda_problem, [&](const gpu::Driver& driver) {
            if (nvml) kept.keep_cuda(**nvml, driver.devices());
        });
    }
    if (const auto devices = known.empty() ? std::nullopt : kept.find_hip(path)) {
        for (const auto& device : *devices) add(device);
    } else {
        ask(gpu::Backend::hip, list.hip_problem, [&](const gpu::Driver& driver) { kept.keep_hip(path, driver.library_file(), driver.devices()); });
    }
    return list;
}

void add_verdict(ListedDevice& device, const DeviceListOptions& options) {
    if (find_kept(device, options)) return;
    if (options.on_test) options.on_test(device.info);
    test(device, options);
}

DeviceList list_devices(const DeviceListOptions& options) {
    if (options.retest) {
        std::error_code code;
        std::filesystem::remove(options.known(), code);
    }
    DeviceList list = find_devices(options.test.path, options.known());
    // Cards are tested side by side, each in a child of its own; only the first line of each test needs this thread.
    std::vector<std::jthread> tests;
    for (auto& device : list.devices) {
        if (find_kept(device, options)) continue;
        if (options.on_test) options.on_test(device.info);
        tests.emplace_back([&] { test(device, options); });
    }
    tests.clear();
    return list;
}

}  // namespace headroom::vmm
