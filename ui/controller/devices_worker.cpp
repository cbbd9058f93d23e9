#include "ui/controller/devices_worker.h"

#include <spdlog/spdlog.h>

namespace headroom::ui {

DevicesWorker::DevicesWorker(std::unique_ptr<DeviceBackend> backend) : backend_(std::move(backend)) {}

DevicesWorker::~DevicesWorker() {
    for (auto& [id, test] : tests_) test.request_stop();  // all of them before the first is waited for
    tests_.clear();
}

void DevicesWorker::find() {
    const engine::DeviceList list = backend_->find();
    for (const engine::Device& device : list.devices) spdlog::info("{}: {} at {}, {}", device.id, device.name, device.bus, device.runtime);
    DeviceWishes wishes;
    for (const engine::Device& device : list.devices) wishes[device.id] = backend_->wish(device.uuid);
    emit found(list, wishes);
}

void DevicesWorker::test(const std::string& id) {
    tests_[id] = std::jthread([this, id](const std::stop_token& stop) {
        const auto on_progress = [this, &id](const engine::DeviceTestProgress& progress) { emit test_progress(id, progress); };
        emit tested(id, backend_->test(id, on_progress, stop));
    });
}

void DevicesWorker::read(const std::vector<std::string>& ids) {
    DeviceReadings readings;
    for (const std::string& id : ids) readings[id] = backend_->read(id);
    emit was_read(readings);
}

void DevicesWorker::keep(const std::string& uuid, const engine::VramWish& wish) {
    if (const auto kept = backend_->keep(uuid, wish); !kept) spdlog::warn("what is wanted of {} could not be kept: {}", uuid, kept.error().message);
}

}  // namespace headroom::ui
