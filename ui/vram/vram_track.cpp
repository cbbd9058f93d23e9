#include "ui/vram/vram_track.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QPainterPath>
#include <QSignalBlocker>
#include <QToolTip>

#include <algorithm>
#include <cmath>

#include "core/base/bytes.h"
#include "ui/theme/size_text.h"
#include "ui/vram/vram_paint.h"
#include "ui/vram/vram_words.h"

namespace headroom::ui {
namespace {

constexpr int kHeight = 24;   // of the groove
constexpr int kHandle = 9;    // half of the diamond's width
constexpr int kGrain = 64;    // MiB: a hand does not aim better

}  // namespace

VramTrack::VramTrack(const Theme& theme, QWidget* parent) : QAbstractSlider(parent), theme_(theme) {
    setOrientation(Qt::Horizontal);
    setInvertedAppearance(true);
    setSingleStep(256);
    setPageStep(1024);
    setFocusPolicy(Qt::StrongFocus);
    setMouseTracking(true);
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    setAccessibleName(tr("Keep free for other programs, in MiB"));
    setEnabled(false);
    connect(this, &QAbstractSlider::valueChanged, this, [this] {
        emit reserve_chosen(reserve_bytes());
        describe();
    });
    connect(&theme, &Theme::changed, this, [this] {
        updateGeometry();
        update();
    });
}

void VramTrack::set_device(const engine::VramDevice& device) {
    device_ = device;
    setEnabled(device.elastic && device.total_bytes > 0);
    if (!isSliderDown()) {
        const QSignalBlocker no_hand(this);
        const auto total = static_cast<int>(device.total_bytes / MiB);
        setRange(0, total);
        setValue(static_cast<int>(std::min(device.reserve_bytes, device.total_bytes) / MiB));
    }
    describe();
    update();
}

std::uint64_t VramTrack::reserve_bytes() const { return value() == maximum() ? device_.total_bytes : static_cast<std::uint64_t>(value()) * MiB; }

void VramTrack::describe() {
    QString text = tr("%1 of %2 are kept free. %3.").arg(size_text(reserve_bytes()), size_text(device_.total_bytes), expectation(device_, reserve_bytes()));
    for (const Part& part : parts()) text += tr(" %1: %2.").arg(part.long_name, size_text(part.bytes));
    setAccessibleDescription(text);
}

QSize VramTrack::sizeHint() const { return {theme_.px(320), theme_.px(kHeight + 8)}; }

QSize VramTrack::minimumSizeHint() const { return {theme_.px(96), sizeHint().height()}; }

QRectF VramTrack::groove() const {
    const double side = theme_.px(kHandle) + 2;
    const double tall = theme_.px(kHeight);
    return {side, (height() - tall) / 2, width() - 2 * side, tall};
}

double VramTrack::x_of(std::uint64_t bytes) const {
    const QRectF all = groove();
    if (device_.total_bytes == 0) return all.left();
    return all.left() + all.width() * std::min(1.0, static_cast<double>(bytes) / static_cast<double>(device_.total_bytes));
}

double VramTrack::from_leading(double x) const { return isRightToLeft() ? width() - x : x; }

QPointF VramTrack::handle() const {
    const double bytes = static_cast<double>(device_.total_bytes) - static_cast<double>(std::min(reserve_bytes(), device_.total_bytes));
    return {from_leading(x_of(static_cast<std::uint64_t>(bytes))), groove().center().y()};
}

int VramTrack::value_at(double x) const {
    const QRectF all = groove();
    const double share = std::clamp((all.right() - from_leading(x)) / all.width(), 0.0, 1.0);
    const double wanted = share * maximum();
    const int rounded = static_cast<int>(std::lround(wanted / kGrain)) * kGrain;
    return share >= 1 ? maximum() : std::min(rounded, maximum());
}

bool VramTrack::on_handle(double x) const { return std::abs(x - handle().x()) <= theme_.px(kHandle + 3); }

std::vector<VramTrack::Part> VramTrack::parts() const {
    std::vector<Part> parts;
    std::uint64_t sum = 0;
    for (const VramOwner owner : kVramOwners) {
        const std::uint64_t bytes = bytes_of(device_, owner);
        if (bytes == 0) continue;
        Part part{.begin = x_of(sum), .end = x_of(sum + bytes), .role = color_of(owner), .name = name_of(owner), .long_name = long_name_of(owner), .bytes = bytes};
        // Something that is there is seen.
        part.begin = parts.empty() ? part.begin : parts.back().end;
        part.end = std::min(std::max(part.end, part.begin + 3), groove().right());
        parts.push_back(part);
        sum += bytes;
    }
    if (device_.free_bytes > 0) {
        parts.push_back({.begin = parts.empty() ? groove().left() : parts.back().end, .end = groove().right(), .role = ColorRole::page, .name = tr("free"),
                         .long_name = tr("Free"), .bytes = device_.free_bytes});
    }
    return parts;
}

QString VramTrack::text_at(double x) const {
    if (isEnabled() && on_handle(x)) {
        return tr("%1 kept free for other programs: drag to change it").arg(size_text(reserve_bytes()));
    }
    for (const Part& part : parts()) {
        if (from_leading(x) < part.begin || from_leading(x) >= part.end) continue;
        return tr("%1: %2").arg(part.long_name, size_text(part.bytes));
    }
    return {};
}

bool VramTrack::event(QEvent* event) {
    if (event->type() == QEvent::ToolTip) {
        const auto* help = static_cast<QHelpEvent*>(event);
        const QString text = text_at(help->pos().x());
        QToolTip::showText(help->globalPos(), text, this);
        return true;
    }
    return QAbstractSlider::event(event);
}

void VramTrack::show_expectation() {
    const QPoint below = handle().toPoint() + QPoint(-theme_.px(64), -theme_.px(64));
    QToolTip::showText(mapToGlobal(below), expectation(device_, reserve_bytes()), this);
}

void VramTrack::mousePressEvent(QMouseEvent* event) {
    if (event->button() != Qt::LeftButton) return event->ignore();
    const double x = event->position().x();
    if (on_handle(x)) {
        grip_ = x - handle().x();
        setSliderDown(true);
        show_expectation();
    } else {
        setSliderPosition(std::clamp(value_at(x), value() - pageStep(), value() + pageStep()));
    }
    event->accept();
}

void VramTrack::mouseMoveEvent(QMouseEvent* event) {
    const double x = event->position().x();
    if (isSliderDown()) {
        setSliderPosition(value_at(x - grip_));
        show_expectation();
    }
    const bool hovered = isEnabled() && on_handle(x);
    if (hovered == hovered_) return;
    hovered_ = hovered;
    setCursor(hovered ? Qt::SizeHorCursor : Qt::ArrowCursor);
    update();
}

void VramTrack::mouseReleaseEvent(QMouseEvent* event) {
    if (event->button() != Qt::LeftButton) return event->ignore();
    setSliderDown(false);
    update();
}

void VramTrack::leaveEvent(QEvent* event) {
    hovered_ = false;
    update();
    QAbstractSlider::leaveEvent(event);
}

void VramTrack::keyPressEvent(QKeyEvent* event) {
    const bool mirrored = isRightToLeft();
    switch (event->key()) {
        case Qt::Key_Left: triggerAction(mirrored ? SliderSingleStepSub : SliderSingleStepAdd); break;
        case Qt::Key_Right: triggerAction(mirrored ? SliderSingleStepAdd : SliderSingleStepSub); break;
        case Qt::Key_Up: triggerAction(SliderSingleStepAdd); break;
        case Qt::Key_Down: triggerAction(SliderSingleStepSub); break;
        case Qt::Key_PageUp: triggerAction(SliderPageStepAdd); break;
        case Qt::Key_PageDown: triggerAction(SliderPageStepSub); break;
        case Qt::Key_Home: triggerAction(SliderToMaximum); break;
        case Qt::Key_End: triggerAction(SliderToMinimum); break;
        default: return event->ignore();
    }
    show_expectation();
}

// A wheel that was meant for the page above moves no gigabytes.
void VramTrack::wheelEvent(QWheelEvent* event) { event->ignore(); }

void VramTrack::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.save();
    if (isRightToLeft()) {
        painter.translate(width(), 0);
        painter.scale(-1, 1);
    }
    const QRectF all = groove();
    const double radius = theme_.px(6);
    QPainterPath shape;
    shape.addRoundedRect(all, radius, radius);
    painter.fillPath(shape, theme_.color(ColorRole::page));
    painter.setClipPath(shape);
    for (const Part& part : parts()) {
        if (part.role == ColorRole::page) continue;
        painter.fillRect(QRectF(part.begin, all.top(), part.end - part.begin, all.height()), theme_.color(part.role));
        painter.fillRect(QRectF(part.end - 1, all.top(), 1, all.height()), theme_.color(ColorRole::page));  // told apart without colours
    }
    if (device_.elastic) {
        const double kept = from_leading(handle().x());
        painter.fillRect(QRectF(kept, all.top(), all.right() - kept, all.height()), hatching(theme_, devicePixelRatioF()));
    }
    painter.setClipping(false);
    painter.setPen(QPen(theme_.color(ColorRole::muted), 1));
    painter.drawPath(shape);
    painter.restore();
    paint_labels(painter);
    if (device_.elastic) paint_handle(painter);
}

void VramTrack::paint_labels(QPainter& painter) const {
    QFont small = font();
    small.setPointSizeF(small.pointSizeF() * 0.85);
    painter.setFont(small);
    const QFontMetricsF metrics(small);
    const QRectF all = groove();
    const double kept = device_.elastic ? from_leading(handle().x()) : all.right();
    const double room = theme_.px(6);
    const auto label = [&](double begin, double end, ColorRole on, const QString& name, std::uint64_t bytes) {
        QString text = tr("%1 %2").arg(name, size_text(bytes));
        if (metrics.horizontalAdvance(text) + 2 * room > end - begin) text = name;
        const double wide = metrics.horizontalAdvance(text);
        if (wide + 2 * room > end - begin) return;
        QRectF box(begin + room, all.top(), wide, all.height());
        if (isRightToLeft()) box.moveLeft(width() - box.right());
        if (on == ColorRole::hover) {  // on hatching
            const QRectF plate = box.adjusted(-room / 2, (all.height() - metrics.height()) / 2 - 1, room / 2, -(all.height() - metrics.height()) / 2 + 1);
            painter.setPen(Qt::NoPen);
            painter.setBrush(theme_.color(ColorRole::page));
            painter.drawRoundedRect(plate, room / 2, room / 2);
        }
        painter.setPen(theme_.color(on == ColorRole::hover || on == ColorRole::page ? ColorRole::text : theme_.text_on(on)));
        painter.drawText(box, Qt::AlignCenter | Qt::TextDontClip, text);
    };
    const double gap = theme_.px(kHandle);
    for (const Part& part : parts()) {
        // The hatching and the handle leave a label the room before them.
        if (part.begin < kept) label(part.begin, std::min(part.end, kept - (part.end > kept - gap ? gap : 0)), part.role, part.name, part.bytes);
    }
    if (device_.elastic && device_.reserve_bytes > 0) label(kept + gap, all.right(), ColorRole::hover, tr("keep free"), reserve_bytes());
}

void VramTrack::paint_handle(QPainter& painter) const {
    const double half = theme_.px(kHandle);
    const QPointF at = handle();
    const auto diamond = [&](double wide, double tall) {
        return QPolygonF{at + QPointF(0, -tall), at + QPointF(wide, 0), at + QPointF(0, tall), at + QPointF(-wide, 0)};
    };
    const double tall = groove().height() / 2 + theme_.px(3);
    painter.setPen(QPen(theme_.color(ColorRole::page), 2));
    painter.setBrush(theme_.color(ColorRole::text));
    painter.drawLine(QPointF(at.x(), at.y() - tall), QPointF(at.x(), at.y() + tall));
    painter.setPen(QPen(theme_.color(ColorRole::text), 1.5));
    painter.drawLine(QPointF(at.x(), groove().top()), QPointF(at.x(), groove().bottom()));
    painter.setPen(QPen(theme_.color(ColorRole::page), 1.5));
    painter.setBrush(theme_.color(isSliderDown() || hovered_ ? ColorRole::accent : ColorRole::text));
    painter.drawPolygon(diamond(half, tall));
    if (!hasFocus()) return;
    painter.setPen(QPen(theme_.color(ColorRole::accent), 2));
    painter.setBrush(Qt::NoBrush);
    painter.drawPolygon(diamond(half + 1, tall));
}

}  // namespace headroom::ui
