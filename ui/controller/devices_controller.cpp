#include "ui/controller/devices_controller.h"

#include <algorithm>
#include <chrono>

namespace headroom::ui {

using namespace std::chrono_literals;

DevicesController::DevicesController(std::unique_ptr<DeviceBackend> backend, QObject* parent)
    : QObject(parent), worker_(new DevicesWorker(std::move(backend))) {
    worker_->moveToThread(&thread_);
    connect(&thread_, &QThread::finished, worker_, &QObject::deleteLater);
    // Signals of the worker come from its tests' threads too, so the kind of connection is not left to Qt's guess.
    connect(worker_, &DevicesWorker::found, this, &DevicesController::on_found, Qt::QueuedConnection);
    connect(worker_, &DevicesWorker::was_read, this, &DevicesController::on_read, Qt::QueuedConnection);
    connect(worker_, &DevicesWorker::test_progress, this, [this](const std::string& id, const engine::DeviceTestProgress& progress) {
        const int index = index_of(id);
        if (index < 0) return;
        devices_[static_cast<std::size_t>(index)].progress = progress;
        emit device_changed(index);
    }, Qt::QueuedConnection);
    connect(worker_, &DevicesWorker::tested, this, [this](const std::string& id, const std::optional<engine::DeviceVerdict>& verdict) {
        const int index = index_of(id);
        if (index < 0) return;
        DeviceStatus& status = devices_[static_cast<std::size_t>(index)];
        status.testing = false;
        if (verdict) status.device.verdict = verdict;
        emit device_changed(index);
    }, Qt::QueuedConnection);
    poll_.setInterval(250ms);
    connect(&poll_, &QTimer::timeout, this, &DevicesController::read);
    thread_.setObjectName(QStringLiteral("devices"));
    thread_.start();
}

DevicesController::~DevicesController() {
    thread_.quit();
    thread_.wait();
}

template <class Function>
void DevicesController::queue(Function function) {
    QMetaObject::invokeMethod(worker_, std::move(function), Qt::QueuedConnection);
}

int DevicesController::index_of(const std::string& id) const {
    const auto at = std::ranges::find(devices_, id, [](const DeviceStatus& status) { return status.device.id; });
    return at == devices_.end() ? -1 : static_cast<int>(at - devices_.begin());
}

bool DevicesController::busy() const { return state_ == State::searching || std::ranges::any_of(devices_, &DeviceStatus::testing); }

const DeviceStatus* DevicesController::status(const std::string& id) const {
    const int index = index_of(id);
    return index < 0 ? nullptr : &devices_[static_cast<std::size_t>(index)];
}

void DevicesController::find() {
    if (busy()) return;
    state_ = State::searching;
    queue([worker = worker_] { worker->find(); });
    emit found();
}

void DevicesController::on_found(const engine::DeviceList& list, const DeviceWishes& wishes) {
    state_ = State::found;
    devices_.clear();
    for (const engine::Device& device : list.devices) devices_.push_back({device, wishes.at(device.id), {}, false, {}});
    explanation_ = QString::fromStdString(list.explanation);
    for (DeviceStatus& status : devices_) {
        if (!status.device.verdict) start_test(status);
    }
    emit found();
    if (poll_.isActive()) read();
}

void DevicesController::test(const std::string& id) {
    const int index = index_of(id);
    if (index < 0 || state_ != State::found || devices_[static_cast<std::size_t>(index)].testing) return;
    start_test(devices_[static_cast<std::size_t>(index)]);
    emit device_changed(index);
}

void DevicesController::start_test(DeviceStatus& status) {
    status.testing = true;
    status.progress = {};
    queue([worker = worker_, id = status.device.id] { worker->test(id); });
}

void DevicesController::set_wish(const std::string& id, const engine::VramWish& wish, bool keep) {
    const int index = index_of(id);
    if (index < 0) return;
    DeviceStatus& status = devices_[static_cast<std::size_t>(index)];
    status.wish = wish;
    if (keep) queue([worker = worker_, uuid = status.device.uuid, wish] { worker->keep(uuid, wish); });
    emit wish_changed(index);
}

void DevicesController::set_watching(bool watching) {
    if (watching == poll_.isActive()) return;
    if (!watching) return poll_.stop();
    poll_.start();
    read();
}

void DevicesController::read() {
    if (reading_ || state_ != State::found || devices_.empty()) return;
    reading_ = true;
    std::vector<std::string> ids;
    for (const DeviceStatus& status : devices_) ids.push_back(status.device.id);
    queue([worker = worker_, ids] { worker->read(ids); });
}

void DevicesController::on_read(const DeviceReadings& readings) {
    reading_ = false;
    for (std::size_t i = 0; i < devices_.size(); ++i) {
        const auto reading = readings.find(devices_[i].device.id);
        if (reading == readings.end()) continue;
        devices_[i].memory = reading->second;
        emit memory_changed(static_cast<int>(i));
    }
}

}  // namespace headroom::ui
