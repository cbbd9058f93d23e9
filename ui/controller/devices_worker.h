#pragma once

#include <QObject>

#include <map>
#include <memory>
#include <thread>

#include "ui/controller/device_backend.h"

namespace headroom::ui {

using DeviceWishes = std::map<std::string, engine::VramWish>;                          // by the device's id
using DeviceReadings = std::map<std::string, std::optional<engine::DeviceMemory>>;  // by the device's id

// Owns the backend; moved to the devices' thread. DevicesController queues its public functions and gets the signals queued back.
class DevicesWorker : public QObject {
    Q_OBJECT

public:
    explicit DevicesWorker(std::unique_ptr<DeviceBackend> backend);
    // Stops the tests that are running.
    ~DevicesWorker() override;

    // Ends with found(). Not while a test is running.
    void find();
    // Tests the device in a thread of its own; ends with tested().
    void test(const std::string& id);
    // Ends with was_read().
    void read(const std::vector<std::string>& ids);
    // Keeps what is wanted of a device's VRAM for the next load.
    void keep(const std::string& uuid, const engine::VramWish& wish);

signals:
    void found(const engine::DeviceList& list, const DeviceWishes& wishes);
    void test_progress(const std::string& id, const engine::DeviceTestProgress& progress);
    void tested(const std::string& id, const std::optional<engine::DeviceVerdict>& verdict);
    void was_read(const DeviceReadings& readings);

private:
    std::unique_ptr<DeviceBackend> backend_;
    std::map<std::string, std::jthread> tests_;  // the newest of each device, running or done
};

}  // namespace headroom::ui
