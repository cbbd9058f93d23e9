#include "ui/devices/memory_bar.h"

#include <QPainter>
#include <QPainterPath>

#include <algorithm>

#include "ui/theme/size_text.h"

namespace headroom::ui {

MemoryBar::MemoryBar(const Theme& theme, QWidget* parent) : QWidget(parent), theme_(theme) {
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    setAccessibleName(tr("VRAM"));
    connect(&theme, &Theme::changed, this, [this] {
        updateGeometry();
        update();
    });
}

void MemoryBar::set_memory(const engine::DeviceMemory& memory) {
    memory_ = memory;
    setAccessibleDescription(tr("%1 free of %2").arg(size_text(memory.free), size_text(memory.total)));
    update();
}

double MemoryBar::own() const {
    const std::uint64_t own = std::min(memory_.own.value_or(0), memory_.used);
    return memory_.total == 0 ? 0 : static_cast<double>(own) / static_cast<double>(memory_.total);
}

double MemoryBar::others() const {
    return memory_.total == 0 ? 0 : static_cast<double>(std::min(memory_.used, memory_.total)) / static_cast<double>(memory_.total) - own();
}

QString MemoryBar::legend() const {
    const auto item = [](const QColor& color, QChar square, const QString& text) {
        return QStringLiteral("<span style=\"color:%1\">%2</span>&nbsp;%3").arg(color.name(), square, text.toHtmlEscaped().replace(u' ', QChar::Nbsp));
    };
    const auto used = [&](const QString& words, std::uint64_t bytes) { return words.arg(size_text(bytes)); };
    const std::uint64_t own = std::min(memory_.own.value_or(0), memory_.used);
    QStringList items;
    items << item(theme_.color(ColorRole::vram_others), QChar(0x25A0), used(memory_.own ? tr("Other programs %1") : tr("In use %1"), memory_.used - own));
    if (memory_.own) items << item(theme_.color(ColorRole::vram_weights), QChar(0x25A0), used(tr("This program %1"), own));
    items << item(theme_.color(ColorRole::muted), QChar(0x25A1), tr("Free %1 of %2").arg(size_text(memory_.free), size_text(memory_.total)));
    return items.join(QStringLiteral("&nbsp;&nbsp; "));
}

QSize MemoryBar::sizeHint() const { return {theme_.px(160), theme_.px(16)}; }

void MemoryBar::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    if (isRightToLeft()) {
        painter.translate(width(), 0);
        painter.scale(-1, 1);
    }
    const QRectF frame = QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5);
    const double radius = theme_.px(4);
    QPainterPath shape;
    shape.addRoundedRect(frame, radius, radius);
    painter.fillPath(shape, theme_.color(ColorRole::page));
    painter.save();
    painter.setClipPath(shape);
    double x = frame.left();
    const auto part = [&](double share, ColorRole role) {
        // Something that is there is seen: at least two pixels.
        const double part_width = share > 0 ? std::max(2.0, share * frame.width()) : 0;
        painter.fillRect(QRectF(x, frame.top(), part_width, frame.height()), theme_.color(role));
        x += part_width;
    };
    part(others(), ColorRole::vram_others);
    part(own(), ColorRole::vram_weights);
    painter.restore();
    painter.setPen(theme_.color(ColorRole::muted));
    painter.drawPath(shape);
}

}  // namespace headroom::ui
