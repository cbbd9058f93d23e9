#include "ui/store/settings.h"

#include "core/base/paths.h"

namespace headroom::ui {
namespace {

struct Entry {
    Settings::Key key;
    const char* name;
    QVariant fallback;
};

const Entry& entry(Settings::Key key) {
    static const Entry table[] = {
        {Settings::Key::last_model, "model/last", QStringLiteral("builtin")},
        {Settings::Key::model_folder, "model/folder", QString()},  // empty: "models" beside the settings
        {Settings::Key::context, "model/context", 0},
        {Settings::Key::threads, "model/threads", 0},
        {Settings::Key::kv_type, "model/kv_type", QStringLiteral("f16")},
        {Settings::Key::color_mode, "appearance/colors", QStringLiteral("system")},
        {Settings::Key::text_percent, "appearance/text_percent", 100},
        {Settings::Key::window_geometry, "window/geometry", QByteArray()},
        {Settings::Key::sidebar_shown, "window/sidebar", true},
        {Settings::Key::bar_explained, "window/bar_explained", false},
        {Settings::Key::server_on, "server/on", false},
        {Settings::Key::server_port, "server/port", 8080},
        {Settings::Key::server_key, "server/key", QString()},
        {Settings::Key::server_origins, "server/origins", QStringList()},
    };
    return table[static_cast<std::size_t>(key)];
}

}  // namespace

Settings::Settings(const std::filesystem::path& data_folder)
    : data_folder_(data_folder),
      file_(QString::fromStdString(to_utf8(data_folder / "settings.ini")), QSettings::IniFormat) {}

QVariant Settings::get(Key key) const {
    const QVariant value = file_.value(QLatin1String(entry(key).name), entry(key).fallback);
    if (key == Key::model_folder && value.toString().isEmpty()) return QString::fromStdString(to_utf8(data_folder_ / "models"));
    return value;
}

void Settings::set(Key key, const QVariant& value) { file_.setValue(QLatin1String(entry(key).name), value); }

}  // namespace headroom::ui
