#include "ui/theme/icon_button.h"

namespace headroom::ui {

IconButton::IconButton(const Theme& theme, const QString& icon, const QString& text, QWidget* parent, const QString& shortcut)
    : QToolButton(parent), theme_(theme), icon_(icon) {
    setFocusPolicy(Qt::TabFocus);
    set_text(text, shortcut);
    update_icon();
    connect(&theme_, &Theme::changed, this, &IconButton::update_icon);
}

void IconButton::set_icon(const QString& icon, ColorRole role) {
    icon_ = icon;
    role_ = role;
    update_icon();
}

void IconButton::set_text(const QString& text, const QString& shortcut) {
    setText(text);
    setAccessibleName(text);
    setToolTip(shortcut.isEmpty() ? text : QStringLiteral("%1 (%2)").arg(text, shortcut));
}

void IconButton::make_row() {
    setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    setProperty("row", true);
}

void IconButton::update_icon() {
    setIcon(theme_.icon(icon_, role_));
    setIconSize({theme_.px(20), theme_.px(20)});
}

}  // namespace headroom::ui
