#include "ui/theme/switch.h"

#include <QPainter>

namespace headroom::ui {

Switch::Switch(const Theme& theme, const QString& text, QWidget* parent) : QAbstractButton(parent), theme_(theme) {
    setCheckable(true);
    setFocusPolicy(Qt::StrongFocus);
    setAccessibleName(text);
    setToolTip(text);
    setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Fixed);
    connect(&theme, &Theme::changed, this, [this] { updateGeometry(); });
}

QSize Switch::sizeHint() const { return {theme_.px(44), theme_.px(28)}; }

void Switch::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    const int ring = theme_.px(2);
    const QRectF track = QRectF(rect()).adjusted(2 * ring, 2 * ring, -2 * ring, -2 * ring);
    const double radius = track.height() / 2;
    painter.setPen(Qt::NoPen);
    painter.setBrush(theme_.color(isChecked() ? ColorRole::accent : ColorRole::muted));
    painter.drawRoundedRect(track, radius, radius);
    const bool at_right = isChecked() != isRightToLeft();
    const QPointF center(at_right ? track.right() - radius : track.left() + radius, track.center().y());
    painter.setBrush(theme_.color(isChecked() ? ColorRole::on_accent : ColorRole::page));
    painter.drawEllipse(center, radius - ring, radius - ring);
    if (!hasFocus()) return;
    painter.setBrush(Qt::NoBrush);
    painter.setPen(QPen(theme_.color(ColorRole::accent), ring));
    painter.drawRoundedRect(QRectF(rect()).adjusted(1, 1, -1, -1), height() / 2.0, height() / 2.0);
}

}  // namespace headroom::ui
