#include "ui/program/program.h"

#include <QCoreApplication>

#include "ui/devices/devices_page.h"
#include "ui/pages/log_page.h"
#include "ui/pages/settings_page.h"

namespace headroom::ui {
Program::Program(const std::filesystem::path& data_folder, std::unique_ptr<Backend> backend, std::unique_ptr<DeviceBackend> devices)
    : settings_(data_folder),
      theme_(mode_from(settings_.text(Settings::Key::color_mode)), settings_.number(Settings::Key::text_percent)),
      store_(data_folder), engine_(std::move(backend)), devices_(std::move(devices)) {
    log_.attach();
    const QString notice = store_.open();
    chats_ = std::make_unique<ChatService>(store_, engine_);
    window_ = std::make_unique<MainWindow>(WindowParts{theme_, settings_, store_, engine_, *chats_, log_});
    window_->add_page(QStringLiteral("devices"), QStringLiteral("devices"), QCoreApplication::translate("Program", "Devices"),
                      new DevicesPage(theme_, devices_));
    window_->add_page(QStringLiteral("log"), QStringLiteral("log"), QCoreApplication::translate("Program", "Log"),
                      new LogPage(theme_, log_));
    auto* page = new SettingsPage(theme_, settings_);
    window_->add_page(QStringLiteral("settings"), QStringLiteral("settings"), QCoreApplication::translate("Program", "Settings"), page,
                      QKeySequence(Qt::CTRL | Qt::Key_Comma));
    QObject::connect(page, &SettingsPage::reload_model, window_.get(),
                     [this] { window_->open_model(QString::fromStdString(engine_.model().request.name)); });
    if (!notice.isEmpty()) window_->show_notice(notice, QStringLiteral("store"));
}

Program::~Program() = default;

void Program::open_first_model(const QString& model, int context, int threads) {
    const QString last = settings_.text(Settings::Key::last_model);
    window_->open_model(!model.isEmpty() ? model : last.isEmpty() ? QStringLiteral("builtin") : last, context, threads);
}

}  // namespace headroom::ui
