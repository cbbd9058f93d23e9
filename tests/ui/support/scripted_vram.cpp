#include "tests/ui/support/scripted_vram.h"

#include <algorithm>
#include <thread>

#include "core/base/bytes.h"

namespace headroom::test {

engine::VramDevice ScriptedVram::card() {
    engine::VramDevice device;
    device.id = "cuda:0";
    device.name = "NVIDIA GeForce RTX 4070";
    device.uuid = "GPU-9f9b4a3c-0011-2233-4455-6677889900aa";
    device.verdict = "on";
    device.elastic = true;
    device.total_bytes = 12 * GiB;
    device.free_bytes = 3 * GiB + 512 * MiB;
    device.weights_bytes = 6 * GiB;
    device.kv_bytes = GiB;
    device.scratch_bytes = 512 * MiB;
    device.blocks_resident = 6'144;
    device.blocks_total = 6'144;
    device.block_name = "experts";
    device.default_reserve_bytes = GiB;
    device.reserve_bytes = GiB;
    device.full_bytes = 7 * GiB + 512 * MiB;
    device.speeds = {{2 * GiB, 20}, {4 * GiB, 40}, {7 * GiB + 512 * MiB, 71}};
    return device;
}

engine::VramReport ScriptedVram::report() {
    engine::VramReport report;
    report.device = "cuda:0";
    report.number = 2;
    report.wish.reserve_bytes = 7 * GiB;
    report.reserve_bytes = 7 * GiB;
    report.free_before = 3 * GiB + 512 * MiB;
    report.free_after = 7 * GiB + 512 * MiB;
    report.own_before = 7 * GiB + 512 * MiB;
    report.own_after = 3 * GiB + 512 * MiB;
    report.total_ms = 31;
    report.blocks_resident = 2'890;
    report.blocks_total = 6'144;
    report.block_name = "experts";
    report.weights_bytes = 2 * GiB;
    report.kv_bytes = GiB;
    return report;
}

void ScriptedVram::change(const engine::VramDevice& device) {
    const std::scoped_lock lock(mutex_);
    *std::ranges::find(devices_, device.id, &engine::VramDevice::id) = device;
}

void ScriptedVram::tell(const engine::VramReport& report) {
    std::jthread watcher([&] {
        const std::scoped_lock lock(listeners_->mutex);
        for (const auto& [key, listener] : listeners_->all) listener(report);
    });
}

std::vector<std::pair<std::string, engine::VramWish>> ScriptedVram::wishes() const {
    const std::scoped_lock lock(mutex_);
    return wishes_;
}

int ScriptedVram::listeners() const {
    const std::scoped_lock lock(listeners_->mutex);
    return static_cast<int>(listeners_->all.size());
}

void ScriptedVram::close() {
    const std::scoped_lock lock(mutex_);
    devices_.clear();
}

std::vector<engine::VramDevice> ScriptedVram::devices() const {
    const std::scoped_lock lock(mutex_);
    return devices_;
}

Result<> ScriptedVram::set(std::string_view device, const engine::VramWish& wish, Done) {
    const std::scoped_lock lock(mutex_);
    wishes_.emplace_back(device, wish);
    const auto at = std::ranges::find(devices_, device, &engine::VramDevice::id);
    if (at == devices_.end()) return fail(ErrorKind::not_found, "There is no {}", device);
    at->wish = wish;
    at->reserve_bytes = wish.reserve_bytes.value_or(at->default_reserve_bytes);
    if (!at->elastic) return fail(ErrorKind::unsupported, "The memory of {} cannot be changed; the next load keeps to it: {}", device, at->reason);
    return {};
}

Result<engine::VramReport> ScriptedVram::set_and_wait(std::string_view device, const engine::VramWish& wish) {
    HR_CHECK(set(device, wish, {}));
    return report();
}

std::shared_ptr<void> ScriptedVram::listen(Listener listener) {
    const std::scoped_lock lock(listeners_->mutex);
    const int key = listeners_->next++;
    listeners_->all.emplace(key, std::move(listener));
    return std::shared_ptr<void>(nullptr, [listeners = listeners_, key](void*) {
        const std::scoped_lock guard(listeners->mutex);
        listeners->all.erase(key);
    });
}

}  // namespace headroom::test
