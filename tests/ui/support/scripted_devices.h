#pragma once

// GPUs that do what a test says: they stand in for the drivers.

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>

#include "ui/controller/device_backend.h"

namespace headroom::test {

// Shared by the test and the backend. Set the plain fields before the call they are for.
class DeviceScript {
public:
    engine::DeviceList list = none();
    std::map<std::string, engine::DeviceVerdict> verdicts;  // what a test finds; by id
    std::map<std::string, engine::DeviceMemory> memory;     // by id; through set_memory() once the window is there
    std::map<std::string, engine::VramWish> wishes;         // kept, by UUID; through kept() once the window is there

    // No GPU, with the words of the real thing.
    [[nodiscard]] static engine::DeviceList none();
    [[nodiscard]] static engine::Device card(const std::string& id, const std::string& name);
    [[nodiscard]] static engine::DeviceVerdict on();
    [[nodiscard]] static engine::DeviceVerdict off(const std::string& reason);

    // From now on tests wait before the first of their ten steps, until each is allowed so many, or all of them again.
    void hold();
    void release(int steps);
    void go();

    void set_memory(const std::string& id, const engine::DeviceMemory& reading);
    [[nodiscard]] int finds() const;
    [[nodiscard]] int reads() const;  // of all devices
    [[nodiscard]] engine::VramWish kept(const std::string& uuid) const;
    [[nodiscard]] int stopped() const;  // tests that were stopped

private:
    friend class ScriptedDevices;

    mutable std::mutex mutex_;
    std::condition_variable_any changed_;
    int allowed_ = -1;  // -1: any number
    int finds_ = 0, reads_ = 0, stopped_ = 0;
};

class ScriptedDevices : public ui::DeviceBackend {
public:
    explicit ScriptedDevices(std::shared_ptr<DeviceScript> script) : script_(std::move(script)) {}

    engine::DeviceList find() override;
    std::optional<engine::DeviceVerdict> test(std::string_view id, const std::function<void(const engine::DeviceTestProgress&)>& on_progress,
                                              std::stop_token stop) override;
    std::optional<engine::DeviceMemory> read(std::string_view id) override;
    engine::VramWish wish(std::string_view uuid) override { return script_->kept(std::string(uuid)); }
    Result<> keep(std::string_view uuid, const engine::VramWish& wish) override;

private:
    std::shared_ptr<DeviceScript> script_;
};

}  // namespace headroom::test
