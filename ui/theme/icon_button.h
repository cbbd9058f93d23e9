#pragma once

#include <QToolButton>

#include "ui/theme/theme.h"

namespace headroom::ui {

// A button that is an icon: its text is the tooltip and the accessible name. Follows the theme.
class IconButton : public QToolButton {
    Q_OBJECT

public:
    // shortcut: shown in the tooltip behind the text; empty: none.
    IconButton(const Theme& theme, const QString& icon, const QString& text, QWidget* parent = nullptr, const QString& shortcut = {});

    void set_icon(const QString& icon, ColorRole role = ColorRole::muted);
    void set_text(const QString& text, const QString& shortcut = {});
    // The text is shown beside the icon, from the leading edge, as a row of a list.
    void make_row();

private:
    void update_icon();

    const Theme& theme_;
    QString icon_;
    ColorRole role_ = ColorRole::muted;
};

}  // namespace headroom::ui
