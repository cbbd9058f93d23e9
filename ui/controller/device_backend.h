#pragma once

#include <filesystem>

#include "core/engine/devices.h"
#include "core/engine/vram_wishes.h"

namespace headroom::ui {

// What the window needs to know of the machine's GPUs. The seam for tests: a scripted backend stands in for the drivers.
// All but test() are called from the devices' worker thread, one call at a time; test() from further threads beside them.
class DeviceBackend {
public:
    virtual ~DeviceBackend() = default;

    // As the functions of engine::Devices.
    virtual engine::DeviceList find() = 0;
    virtual std::optional<engine::DeviceVerdict> test(std::string_view id, const std::function<void(const engine::DeviceTestProgress&)>& on_progress,
                                                      std::stop_token stop) = 0;
    virtual std::optional<engine::DeviceMemory> read(std::string_view id) = 0;

    // As the functions of engine::VramWishes.
    virtual engine::VramWish wish(std::string_view uuid) = 0;
    virtual Result<> keep(std::string_view uuid, const engine::VramWish& wish) = 0;
};

// The real GPUs.
class EngineDeviceBackend : public DeviceBackend {
public:
    explicit EngineDeviceBackend(const std::filesystem::path& data_folder) : devices_(data_folder), wishes_(data_folder) {}

    engine::DeviceList find() override { return devices_.find(); }
    std::optional<engine::DeviceVerdict> test(std::string_view id, const std::function<void(const engine::DeviceTestProgress&)>& on_progress,
                                              std::stop_token stop) override {
        return devices_.test(id, on_progress, std::move(stop));
    }
    std::optional<engine::DeviceMemory> read(std::string_view id) override { return devices_.read(id); }
    engine::VramWish wish(std::string_view uuid) override { return wishes_.find(uuid); }
    Result<> keep(std::string_view uuid, const engine::VramWish& wish) override { return wishes_.keep(uuid, wish); }

private:
    engine::Devices devices_;
    engine::VramWishes wishes_;
};

}  // namespace headroom::ui
