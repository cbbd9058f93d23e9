#include "ui/program/program.h"

#include <QCoreApplication>

#include "ui/devices/devices_page.h"
#include "ui/pages/log_page.h"
#include "ui/pages/settings_page.h"
#include "ui/server/server_page.h"
#include "ui/vram/vram_bar.h"

namespace headroom::ui {
Program::Program(const std::filesystem::path& data_folder, std::unique_ptr<Backend> backend, std::unique_ptr<DeviceBackend> devices,
                 std::unique_ptr<ServerBackend> server)
    : settings_(data_folder),
      theme_(mode_from(settings_.text(Settings::Key::color_mode)), settings_.number(Settings::Key::text_percent)),
      store_(data_folder), engine_(std::move(backend), data_folder), devices_(std::move(devices)), vram_(engine_, devices_),
      server_(std::move(server), engine_, settings_) {
    log_.attach();
    const QString notice = store_.open();
    chats_ = std::make_unique<ChatService>(store_, engine_);
    window_ = std::make_unique<MainWindow>(WindowParts{theme_, settings_, store_, engine_, *chats_, log_});
    window_->add_page(QStringLiteral("devices"), QStringLiteral("devices"), QCoreApplication::translate("Program", "Devices"),
                      new DevicesPage(theme_, devices_, vram_));
    window_->add_page(QStringLiteral("server"), QStringLiteral("server"), QCoreApplication::translate("Program", "Server"),
                      new ServerPage(theme_, server_));
    window_->add_page(QStringLiteral("log"), QStringLiteral("log"), QCoreApplication::translate("Program", "Log"),
                      new LogPage(theme_, log_));
    auto* page = new SettingsPage(theme_, settings_);
    window_->add_page(QStringLiteral("settings"), QStringLiteral("settings"), QCoreApplication::translate("Program", "Settings"), page,
                      QKeySequence(Qt::CTRL | Qt::Key_Comma));
    QObject::connect(page, &SettingsPage::reload_model, window_.get(),
                     [this] { window_->open_model(QString::fromStdString(engine_.model().request.name)); });
    add_bar();
    const auto hold = [this] { engine_.hold_loads(devices_.busy() || server_.holds_old_model()); };
    QObject::connect(&devices_, &DevicesController::found, &engine_, hold);
    QObject::connect(&devices_, &DevicesController::device_changed, &engine_, hold);
    QObject::connect(&server_, &ServerController::held_changed, &engine_, hold);
    if (!notice.isEmpty()) window_->show_notice(notice, QStringLiteral("store"));
}

Program::~Program() = default;

void Program::add_bar() {
    auto* bar = new VramBar(theme_, vram_);
    window_->set_footer(bar);
    QObject::connect(bar, &VramBar::details_clicked, window_.get(), [this] { window_->show_page(QStringLiteral("devices")); });
    // In the first run with a card whose memory can be given back the bar is explained, until it was used.
    if (settings_.get(Settings::Key::bar_explained).toBool()) return;
    QObject::connect(&vram_, &VramController::figures_changed, window_.get(), [this] {
        if (vram_.state() != VramController::State::card || vram_.devices().empty()) return;
        const engine::VramDevice& device = vram_.devices().front();
        if (device.elastic) settings_.set(Settings::Key::bar_explained, true);
        const bool used = !device.elastic || device.wish.reserve_bytes;
        window_->set_hint(used ? QString()
                               : QCoreApplication::translate("Program", "The bar below is your graphics card's memory: drag ◆ inwards, and other programs "
                                                                        "have more of it at once, while the model goes on.\n↓"));
    });
}

void Program::open_first_model(const QString& model, int context, int threads) {
    // A card that is new here is tested before anything is loaded to it.
    devices_.find();
    const QString last = settings_.text(Settings::Key::last_model);
    window_->open_model(!model.isEmpty() ? model : last.isEmpty() ? QStringLiteral("builtin") : last, context, threads);
}

}  // namespace headroom::ui
