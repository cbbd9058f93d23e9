#include "ui/chat/context_bar.h"

#include <QLocale>
#include <QPainter>
#include <QStyle>

#include <algorithm>

namespace headroom::ui {

ContextBar::ContextBar(const Theme& theme, QWidget* parent) : QWidget(parent), theme_(theme) {
    setObjectName(QStringLiteral("context_bar"));
    setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Fixed);
    setToolTip(tr("How much of the model's context this conversation takes. When it is full, a new chat is needed."));
    connect(&theme_, &Theme::changed, this, &QWidget::updateGeometry);
}

void ContextBar::set_use(int used, int size) {
    used_ = used;
    size_ = size;
    setAccessibleName(text());
    update();
}

QString ContextBar::text() const {
    if (size_ <= 0) return {};
    const QLocale locale;
    return tr("Context %1 of %2").arg(locale.toString(used_), locale.toString(size_));
}

QSize ContextBar::sizeHint() const { return {200, fontMetrics().height() + theme_.px(4)}; }

void ContextBar::paintEvent(QPaintEvent*) {
    if (size_ <= 0) return;
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    const int bar_width = theme_.px(96);
    const double fraction = std::clamp(static_cast<double>(used_) / size_, 0.0, 1.0);
    const auto place = [&](const QRectF& rect) { return QStyle::visualRect(layoutDirection(), this->rect(), rect.toRect()); };
    const QRectF bar(0, (height() - theme_.px(4)) / 2.0, bar_width, theme_.px(4));
    painter.setPen(Qt::NoPen);
    painter.setBrush(theme_.color(ColorRole::border));
    painter.drawRoundedRect(place(bar), 2, 2);
    painter.setBrush(theme_.color(fraction > 0.9 ? ColorRole::danger : ColorRole::accent));
    if (used_ > 0) painter.drawRoundedRect(place(QRectF(bar.left(), bar.top(), std::max(4.0, bar_width * fraction), bar.height())), 2, 2);
    painter.setPen(theme_.color(ColorRole::muted));
    const QRectF words(bar_width + theme_.px(8), 0, width() - bar_width - theme_.px(8), height());
    painter.drawText(place(words), static_cast<int>(Qt::AlignVCenter | QStyle::visualAlignment(layoutDirection(), Qt::AlignLeft)), text());
}

}  // namespace headroom::ui
