#pragma once

#include <QSettings>
#include <QVariant>

#include <filesystem>

namespace headroom::ui {

// The program's settings: one table of keys with their defaults (settings.cpp), kept in settings.ini of the user's data folder.
class Settings {
public:
    enum class Key {
        last_model,      // path, or "builtin"
        model_folder,    // path
        context,         // positions; 0: the model's own
        threads,         // 0: physical cores
        kv_type,         // of keys and values: "f16", "q8_0"
        color_mode,      // "system", "light", "dark"
        text_percent,    // 100: the system's size
        window_geometry, // as saved by QWidget
        sidebar_shown,
        bar_explained,   // the VRAM bar was, once
        server_on,
        server_port,
        server_key,      // empty: none is asked for
        server_origins,  // list
    };

    explicit Settings(const std::filesystem::path& data_folder);

    [[nodiscard]] QVariant get(Key key) const;
    [[nodiscard]] QString text(Key key) const { return get(key).toString(); }
    [[nodiscard]] int number(Key key) const { return get(key).toInt(); }
    void set(Key key, const QVariant& value);
    // Writes what has changed to the file now.
    void save() { file_.sync(); }

private:
    std::filesystem::path data_folder_;
    QSettings file_;
};

}  // namespace headroom::ui
