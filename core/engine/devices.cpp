#include "core/engine/devices.h"

#include <algorithm>

#include "core/vmm/device_list.h"
#include "core/vmm/verdict_text.h"

namespace headroom::engine {
namespace {

DeviceVerdict to_verdict(const vmm::Verdict& from) {
    using Outcome = DeviceTestStep::Outcome;
    DeviceVerdict verdict;
    switch (from.kind) {
        case vmm::VerdictKind::on: verdict.kind = DeviceVerdict::Kind::on; break;
        case vmm::VerdictKind::fixed: verdict.kind = DeviceVerdict::Kind::fixed; break;
        case vmm::VerdictKind::off: verdict.kind = DeviceVerdict::Kind::off; break;
    }
    verdict.meaning = vmm::text::meaning(vmm::to_string(from.kind));
    verdict.reason = from.reason;
    verdict.segment_bytes = from.segment_bytes;
    verdict.tested_at = from.tested_at;
    verdict.seconds = from.seconds;
    for (const auto& seen : from.observations) {
        Outcome outcome = Outcome::passed;
        switch (seen.outcome) {
            case vmm::Observation::Outcome::passed: break;
            case vmm::Observation::Outcome::noted: outcome = Outcome::noted; break;
            case vmm::Observation::Outcome::failed: outcome = Outcome::failed; break;
            case vmm::Observation::Outcome::skipped: outcome = Outcome::skipped; break;
        }
        verdict.steps.push_back({outcome, std::string(vmm::text::step_title(seen.step)), seen.seen, seen.seconds});
    }
    return verdict;
}

Device to_device(const vmm::ListedDevice& from) {
    const gpu::DeviceInfo& info = from.info;
    Device device{.id = info.id, .name = info.name, .bus = info.bus, .uuid = info.uuid, .architecture = info.architecture, .driver = info.driver,
                  .runtime = info.runtime, .total_bytes = info.total_bytes, .integrated = info.integrated, .verdict = {}};
    if (from.verdict) device.verdict = to_verdict(*from.verdict);
    return device;
}

}  // namespace

struct Devices::Found {
    vmm::DeviceListOptions options;
    std::vector<vmm::ListedDevice> devices;

    const vmm::ListedDevice* device(std::string_view id) const {
        const auto at = std::ranges::find(devices, id, [](const vmm::ListedDevice& d) { return std::string_view(d.info.id); });
        return at == devices.end() ? nullptr : &*at;
    }
};

Devices::Devices(const std::filesystem::path& data_folder) : found_(std::make_unique<Found>()) {
    found_->options.test.path = gpu::SearchPath::from_environment();
    found_->options.store = data_folder / "verdicts.json";
    found_->options.retest = true;  // test() is only called for that
}

Devices::~Devices() = default;

DeviceList Devices::find() {
    vmm::DeviceList found = vmm::find_devices(found_->options.test.path, found_->options.known());
    const vmm::VerdictStore store(found_->options.store);
    DeviceList list;
    for (auto& device : found.devices) {
        device.verdict = store.find(device.info);
        list.devices.push_back(to_device(device));
    }
    found_->devices = std::move(found.devices);
    if (list.devices.empty()) list.explanation = vmm::text::no_gpu(found.cuda_problem, found.hip_problem);
    return list;
}

std::optional<DeviceVerdict> Devices::test(std::string_view id, const std::function<void(const DeviceTestProgress&)>& on_progress,
                                           std::stop_token stop) const {
    const vmm::ListedDevice* known = found_->device(id);
    if (!known) return std::nullopt;
    vmm::ListedDevice device = *known;
    vmm::DeviceListOptions options = found_->options;
    options.test.stop = std::move(stop);
    options.test.on_step = [&](std::string_view step) {
        const auto at = std::ranges::find(vmm::text::steps, step);
        on_progress({std::string(vmm::text::step_title(step)), static_cast<int>(at - vmm::text::steps.begin()) + 1,
                     static_cast<int>(vmm::text::steps.size())});
    };
    vmm::add_verdict(device, options);
    return device.verdict ? std::optional(to_verdict(*device.verdict)) : std::nullopt;
}

std::optional<DeviceMemory> Devices::read(std::string_view id) const {
    const vmm::ListedDevice* device = found_->device(id);
    if (!device || !device->counter) return std::nullopt;
    const auto reading = device->counter->read();
    if (!reading) return std::nullopt;
    return DeviceMemory{.total = reading->total, .used = reading->used, .free = reading->free, .own = reading->own};
}

}  // namespace headroom::engine
