#include "core/engine/choose_devices.h"

#include <algorithm>

#include <spdlog/spdlog.h>

#include "core/base/quote.h"
#include "core/gpu/display.h"
#include "core/vmm/device_list.h"

namespace headroom::engine {
namespace {

constexpr gpu::Backend kBackends[] = {gpu::Backend::cuda, gpu::Backend::hip};

std::optional<vmm::Verdict> verdict_of(const gpu::DeviceInfo& device, const LoadOptions& options, const std::stop_token& stop) {
    if (options.data_folder.empty()) return std::nullopt;
    vmm::ListedDevice listed{.info = device, .counter = nullptr, .verdict = std::nullopt};
    vmm::DeviceListOptions test;
    test.test.path = options.drivers;
    test.test.stop = stop;
    test.store = options.data_folder / "verdicts.json";
    test.on_test = [](const gpu::DeviceInfo& info) { spdlog::info("testing what the memory of {} ({}) can be trusted with", info.id, info.name); };
    vmm::add_verdict(listed, test);
    return std::move(listed.verdict);
}

void add(ChosenDevices& chosen, gpu::Driver& driver, const gpu::DeviceInfo& device, const LoadOptions& options, const std::stop_token& stop) {
    VramTarget watched{.id = device.id, .name = device.name, .uuid = device.uuid, .verdict = "off", .reason = "the device was not tested",
                       .total_bytes = device.total_bytes,
                       .default_reserve_bytes = default_reserve(device.total_bytes, gpu::has_display(device, options.drivers)),
                       .wish = {.reserve_bytes = options.reserve_bytes, .cap_bytes = options.cap_bytes},
                       .keep = !options.reserve_bytes && !options.cap_bytes, .usage = {}, .read_free = {}, .resize = {}};
    if (watched.keep) watched.wish = VramWishes(options.data_folder).find(device.uuid);
    auto verdict = verdict_of(device, options, stop);
    if (verdict) {
        watched.verdict = vmm::to_string(verdict->kind);
        watched.reason = verdict->reason;
    }
    chosen.targets.push_back({.driver = &driver, .device = device,
                              .reserve_bytes = watched.wish.reserve_bytes.value_or(watched.default_reserve_bytes),
                              .cap_bytes = watched.wish.cap_bytes.value_or(0), .verdict = std::move(verdict)});
    chosen.watched.push_back(std::move(watched));
}

}  // namespace

Result<ChosenDevices> choose_devices(const LoadOptions& options, const std::stop_token& stop) {
    ChosenDevices chosen;
    const std::string_view wanted = options.device;
    if (wanted == "cpu") return chosen;
    const bool any = wanted == "auto";
    const auto backend = gpu::backend_from(wanted.substr(0, wanted.find(':')));
    if (!any && (!backend || wanted.find(':') == std::string_view::npos)) {
        return fail(ErrorKind::invalid_argument, "The device {} is not known: expected \"cpu\", \"auto\", or an id such as \"cuda:0\" or \"hip:0\"",
                    quote(wanted));
    }
    std::string seen, problem;
    for (const gpu::Backend kind : kBackends) {
        if (!any && kind != *backend) continue;
        auto driver = gpu::Driver::load(kind, options.drivers);
        if (!driver) {
            problem = driver.error().message;
            continue;
        }
        const auto devices = (*driver)->devices();
        if (any) {
            const gpu::DeviceInfo* first = gpu::default_device(devices);
            if (first == nullptr || first->integrated) continue;
            add(chosen, **driver, *first, options, stop);
            for (const gpu::DeviceInfo& device : devices) {
                if (device.index != first->index && !device.integrated) add(chosen, **driver, device, options, stop);
            }
        } else {
            for (const gpu::DeviceInfo& device : devices) {
                seen.append(seen.empty() ? "" : ", ").append(device.id);
                if (device.id == wanted) add(chosen, **driver, device, options, stop);
            }
        }
        if (chosen.targets.empty()) continue;
        chosen.drivers.push_back(std::move(*driver));
        return chosen;
    }
    if (any) return chosen;
    if (!problem.empty()) return fail(ErrorKind::not_found, "There is no device {}: {}", quote(wanted), problem);
    return fail(ErrorKind::not_found, "There is no device {}; there are: {}", quote(wanted), seen);
}

}  // namespace headroom::engine
