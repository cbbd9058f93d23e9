#pragma once

#include <QTimer>

#include <functional>

#include "ui/theme/icon_button.h"

namespace headroom::ui {

// Copies a text and shows for a moment that it did.
class CopyButton : public IconButton {
    Q_OBJECT

public:
    CopyButton(const Theme& theme, const QString& text, QWidget* parent = nullptr);
    void set_source(std::function<QString()> source) { source_ = std::move(source); }

private:
    std::function<QString()> source_;
    QTimer back_;
};

}  // namespace headroom::ui
