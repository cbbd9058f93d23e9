#pragma once

#include <QStringList>

#include <filesystem>
#include <memory>

#include "ui/controller/devices_controller.h"
#include "ui/controller/server_controller.h"
#include "ui/main_window/main_window.h"
#include "ui/vram/vram_controller.h"

namespace headroom::ui {

// Everything behind the window, in the order in which it is built and torn down. Tests build it with a folder and backends of their own.
class Program {
public:
    // data_folder: conversations, settings, models. Shows nothing yet.
    Program(const std::filesystem::path& data_folder, std::unique_ptr<Backend> backend, std::unique_ptr<DeviceBackend> devices,
            std::unique_ptr<ServerBackend> server);
    ~Program();
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;

    // Opens the model of the command line, or the last one, or the built-in one.
    void open_first_model(const QString& model, int context, int threads);

    [[nodiscard]] MainWindow& window() { return *window_; }
    [[nodiscard]] Theme& theme() { return theme_; }
    [[nodiscard]] Settings& settings() { return settings_; }
    [[nodiscard]] ChatStore& store() { return store_; }
    [[nodiscard]] ChatService& chats() { return *chats_; }
    [[nodiscard]] EngineController& engine() { return engine_; }
    [[nodiscard]] DevicesController& devices() { return devices_; }
    [[nodiscard]] ServerController& server() { return server_; }
    [[nodiscard]] VramController& vram() { return vram_; }

private:
    void add_bar();

    Settings settings_;
    LogBuffer log_;
    Theme theme_;
    ChatStore store_;
    EngineController engine_;
    DevicesController devices_;
    VramController vram_;
    ServerController server_;
    std::unique_ptr<ChatService> chats_;
    std::unique_ptr<MainWindow> window_;
};

}  // namespace headroom::ui
