#pragma once

#include <QObject>
#include <QThread>
#include <QTimer>

#include <vector>

#include "ui/controller/devices_worker.h"

namespace headroom::ui {

// What the window shows of one GPU: a copy.
struct DeviceStatus {
    engine::Device device;
    engine::VramWish wish;                       // what is kept for the next load
    std::optional<engine::DeviceMemory> memory;  // the newest reading; nothing: nobody counts it, or none was made yet
    bool testing = false;
    engine::DeviceTestProgress progress;         // while testing; number 0: the test is starting
};

// The window's only door to the GPUs. Lives in the window's thread; never waits except in its destructor. The same plan as
// EngineController: commands are queued to a worker in a thread of its own, results come back as signals.
class DevicesController : public QObject {
    Q_OBJECT

public:
    enum class State { idle, searching, found };

    explicit DevicesController(std::unique_ptr<DeviceBackend> backend, QObject* parent = nullptr);
    // Stops the tests that are running and waits for the thread.
    ~DevicesController() override;

    [[nodiscard]] State state() const { return state_; }
    [[nodiscard]] const std::vector<DeviceStatus>& devices() const { return devices_; }
    [[nodiscard]] const QString& explanation() const { return explanation_; }  // `found`, and no devices

    // Looks for the devices; those without a kept verdict are then tested. Does nothing while it is searching or testing.
    void find();
    void test(const std::string& id);
    // While true the memory of every device is read, four times a second at most.
    void set_watching(bool watching);
    // Reads the memory of every device once.
    void read();
    // What is wanted of a device's VRAM has changed. keep: on disk too; a loaded model that uses the device does that itself.
    void set_wish(const std::string& id, const engine::VramWish& wish, bool keep);

    // Searching, or testing a device.
    [[nodiscard]] bool busy() const;
    [[nodiscard]] const DeviceStatus* status(const std::string& id) const;  // null: there is no such device

signals:
    void found();                          // state, devices, explanation
    void device_changed(int index);        // verdict or progress of one device
    void memory_changed(int index);
    void wish_changed(int index);

private:
    void on_found(const engine::DeviceList& list, const DeviceWishes& wishes);
    void on_read(const DeviceReadings& readings);
    [[nodiscard]] int index_of(const std::string& id) const;  // -1: none
    void start_test(DeviceStatus& status);
    template <class Function>
    void queue(Function function);

    QThread thread_;
    DevicesWorker* worker_;  // deleted in its thread
    State state_ = State::idle;
    std::vector<DeviceStatus> devices_;
    QString explanation_;
    QTimer poll_;
    bool reading_ = false;   // a reading was asked for and has not come back
};

}  // namespace headroom::ui
