#include "core/engine/choose_devices.h"

#include <algorithm>

#include "core/base/quote.h"

namespace headroom::engine {
namespace {

constexpr gpu::Backend kBackends[] = {gpu::Backend::cuda, gpu::Backend::hip};

model::GpuTarget target(gpu::Driver& driver, const gpu::DeviceInfo& device, std::optional<std::uint64_t> reserve_bytes) {
    return {.driver = &driver, .device = device, .reserve_bytes = reserve_bytes.value_or(kDefaultReserve), .cap_bytes = 0};
}

}  // namespace

Result<ChosenDevices> choose_devices(std::string_view wanted, std::optional<std::uint64_t> reserve_bytes, const gpu::SearchPath& path) {
    ChosenDevices chosen;
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
        auto driver = gpu::Driver::load(kind, path);
        if (!driver) {
            problem = driver.error().message;
            continue;
        }
        const auto devices = (*driver)->devices();
        if (any) {
            const gpu::DeviceInfo* first = gpu::default_device(devices);
            if (first == nullptr || first->integrated) continue;
            chosen.targets.push_back(target(**driver, *first, reserve_bytes));
            for (const gpu::DeviceInfo& device : devices) {
                if (device.index != first->index && !device.integrated) chosen.targets.push_back(target(**driver, device, reserve_bytes));
            }
        } else {
            for (const gpu::DeviceInfo& device : devices) {
                seen.append(seen.empty() ? "" : ", ").append(device.id);
                if (device.id == wanted) chosen.targets.push_back(target(**driver, device, reserve_bytes));
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
