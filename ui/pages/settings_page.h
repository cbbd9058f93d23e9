#pragma once

#include <QWidget>

#include "ui/store/settings.h"
#include "ui/theme/theme.h"

class QFormLayout;

namespace headroom::ui {

// Settings of the whole program: where models lie, how they are loaded, how the window looks. Each takes effect at once.
class SettingsPage : public QWidget {
    Q_OBJECT

public:
    SettingsPage(Theme& theme, Settings& settings, QWidget* parent = nullptr);

signals:
    void reload_model();  // context, threads or the like were changed: the model is to be loaded anew

private:
    QWidget* make_folder_row();
    void add_row(QFormLayout& form, const QString& label, QWidget* field, const QString& help);

    Theme& theme_;
    Settings& settings_;
};

}  // namespace headroom::ui
