// Measures a real card's virtual memory and asks for its verdict: what docs/virtual-memory.md reports. Uses only what the product uses.
//   vmm_bench cuda|hip [LIBRARIES]     LIBRARIES: a folder to load the driver's libraries from, instead of the system's
//   vmm_bench list [LIBRARIES]         how long listing takes with the verdicts that an earlier run in this folder kept
//   vmm_bench find                     how long it takes to find the devices, without testing them

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/base/bytes.h"
#include "core/base/log.h"
#include "core/base/paths.h"
#include "core/gpu/nvml.h"
#include "core/vmm/device_list.h"

using namespace headroom;
using Clock = std::chrono::steady_clock;

namespace {

double ms_since(Clock::time_point start) { return std::chrono::duration<double, std::milli>(Clock::now() - start).count(); }

double median(std::vector<double> values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
}

// One size of segments: medians of several runs, in ms per GiB; and how long after the release NVML shows the memory as free.
struct Row {
    double create, map, access, unmap, release, worst_give_back, nvml_ms;
};

Result<Row> measure(gpu::Driver& driver, int device, gpu::MemoryCounter* counter, std::uint64_t total, std::uint64_t segment, int runs) {
    const std::size_t count = total / segment;
    const double gib = static_cast<double>(total) / static_cast<double>(GiB);
    std::vector<double> create, map, access, unmap, release, give_back, nvml;
    HR_TRY(auto range, vmm::AddressRange::reserve(driver, device, total));
    for (int run = 0; run < runs; ++run) {
        std::vector<gpu::SegmentHandle> handles(count);
        auto start = Clock::now();
        for (auto& handle : handles) {
            HR_TRY(handle, driver.create_segment(device, segment));
        }
        create.push_back(ms_since(start) / gib);
        start = Clock::now();
        for (std::size_t i = 0; i < count; ++i) HR_CHECK(driver.map(device, range.base() + i * segment, segment, handles[i]));
        map.push_back(ms_since(start) / gib);
        start = Clock::now();
        for (std::size_t i = 0; i < count; ++i) HR_CHECK(driver.set_access(device, range.base() + i * segment, segment, false));
        access.push_back(ms_since(start) / gib);
        HR_CHECK(driver.fill(range.base(), 1, total));
        HR_CHECK(driver.synchronize());  // the fence
        std::uint64_t free_before = 0;
        if (counter) {
            HR_TRY(const auto reading, counter->read());
            free_before = reading.free;
        }
        const auto begin = Clock::now();
        for (std::size_t i = 0; i < count; ++i) HR_CHECK(driver.unmap(device, range.base() + i * segment, segment));
        unmap.push_back(ms_since(begin) / gib);
        start = Clock::now();
        for (const auto handle : handles) HR_CHECK(driver.release_segment(device, handle));
        release.push_back(ms_since(start) / gib);
        give_back.push_back(ms_since(begin) / gib);
        const auto released = Clock::now();
        double seen = -1;
        while (counter && ms_since(released) < 1000) {
            HR_TRY(const auto reading, counter->read());
            if (reading.free >= free_before + total - 64 * MiB) {
                seen = ms_since(released);
                break;
            }
        }
        nvml.push_back(seen);
    }
    HR_CHECK(range.free());
    return Row{median(create), median(map), median(access), median(unmap), median(release), *std::ranges::max_element(give_back),
               *std::ranges::max_element(nvml)};
}

int bench(gpu::Backend backend, const gpu::SearchPath& path) {
    const auto loaded = gpu::Driver::load(backend, path);
    if (!loaded) return std::printf("%s\n", loaded.error().message.c_str()), 1;
    gpu::Driver& driver = **loaded;
    const auto& device = driver.devices()[0];
    // Cards of NVIDIA's are counted by the system's NVML on both paths.
    const auto counter = gpu::open_nvml_counter(device, {});
    if (const auto current = driver.make_current(0); !current) return std::printf("%s\n", current.error().message.c_str()), 1;
    std::printf("\n%s through %s: %s, driver %s; 8 GiB, medians of 7 runs, ms per GiB\n\n", device.name.c_str(), std::string(gpu::to_string(backend)).c_str(),
                device.runtime.c_str(), device.driver.c_str());
    std::printf("| segments of | create | map | access | unmap | release | given back, worst run | NVML shows it after, worst run |\n");
    std::printf("|---|---|---|---|---|---|---|---|\n");
    for (const std::uint64_t mib : {2, 8, 16, 32, 64, 128, 256, 512, 1024}) {
        const auto row = measure(driver, 0, counter.get(), 8 * GiB, mib * MiB, 7);
        if (!row) return std::printf("%s\n", row.error().message.c_str()), 1;
        std::printf("| %d MiB | %.3f | %.3f | %.3f | %.3f | %.3f | %.3f | %.1f ms |\n", static_cast<int>(mib), row->create, row->map, row->access, row->unmap,
                    row->release, row->worst_give_back, row->nvml_ms);
    }
    return 0;
}

int verdict(const gpu::SearchPath& path, gpu::Backend backend) {
    vmm::DeviceListOptions options;
    options.test.path = path;
    options.store = from_utf8("vmm_bench_verdicts.json");
    auto start = Clock::now();
    vmm::DeviceList list = vmm::find_devices(path);
    std::printf("finding the devices: %.1f ms\n", ms_since(start));
    options.retest = true;
    for (auto& device : list.devices) {
        if (device.info.backend != backend) continue;
        start = Clock::now();
        vmm::add_verdict(device, options);
        std::printf("%s %s: verdict after %.2f s\n%s\n", device.info.id.c_str(), device.info.name.c_str(), ms_since(start) / 1000,
                    to_json(*device.verdict).dump(1).c_str());
    }
    options.retest = false;
    (void)vmm::list_devices(options);  // leaves the list of known devices
    return 0;
}

// In a process of its own, as `headroom-cli devices` does it.
int list_kept(const gpu::SearchPath& path) {
    vmm::DeviceListOptions options;
    options.test.path = path;
    options.store = from_utf8("vmm_bench_verdicts.json");
    const auto start = Clock::now();
    const auto list = vmm::list_devices(options);
    for (const auto& device : list.devices) {
        const auto reading = device.counter ? device.counter->read() : fail(ErrorKind::not_found, "no counter");
        std::printf("%s: verdict %s%s, %llu MiB free\n", device.info.id.c_str(), std::string(to_string(device.verdict->kind)).c_str(),
                    device.from_store ? ", kept" : "", reading ? static_cast<unsigned long long>(reading->free / MiB) : 0ull);
    }
    std::printf("listed with kept verdicts: %.1f ms\n", ms_since(start));
    return 0;
}

int find() {
    auto start = Clock::now();
    const auto nvml = gpu::Nvml::load({});
    std::printf("NVML loaded: %.1f ms (%s)\n", ms_since(start), nvml ? (*nvml)->driver_version().c_str() : nvml.error().message.c_str());
    start = Clock::now();
    const auto driver = gpu::Driver::load(gpu::Backend::cuda, {});
    std::printf("CUDA loaded, devices listed: %.1f ms (%s)\n", ms_since(start), driver ? "" : driver.error().message.c_str());
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    if (const auto code = vmm::run_hidden_command(arguments)) return *code;
    start_log(LogLevel::warning);
    std::setvbuf(stdout, nullptr, _IOLBF, 1 << 12);
    if (!arguments.empty() && arguments[0] == "find") return find();
    gpu::SearchPath path;
    if (arguments.size() > 1) path.libraries = std::filesystem::absolute(from_utf8(arguments[1]));
    if (!arguments.empty() && arguments[0] == "list") return list_kept(path);
    const auto backend = arguments.empty() ? std::nullopt : gpu::backend_from(arguments[0]);
    if (!backend) return std::printf("usage: vmm_bench cuda|hip|list [LIBRARIES] | find\n"), 2;
    const int first = verdict(path, *backend);
    const int second = bench(*backend, path);
    return first != 0 ? first : second;
}
