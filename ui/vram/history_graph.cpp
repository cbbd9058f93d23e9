#include "ui/vram/history_graph.h"

#include <QHelpEvent>
#include <QLocale>
#include <QPainter>
#include <QPainterPath>
#include <QStyle>
#include <QToolTip>

#include <algorithm>
#include <array>
#include <cmath>

#include "ui/theme/size_text.h"
#include "ui/vram/vram_paint.h"

namespace headroom::ui {
namespace {

constexpr int kGap = 2;  // seconds without a sample that are not a gap yet: timers are not exact

struct Layer {
    VramOwner owner;
    std::uint64_t VramSample::*bytes;
};
constexpr std::array kLayers{Layer{VramOwner::others, &VramSample::others}, Layer{VramOwner::kv, &VramSample::kv},
                             Layer{VramOwner::weights, &VramSample::weights}, Layer{VramOwner::scratch, &VramSample::scratch}};

}  // namespace

HistoryGraph::HistoryGraph(const Theme& theme, QWidget* parent) : QWidget(parent), theme_(theme) {
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    setAccessibleName(tr("VRAM and speed in the last ten minutes"));
    connect(&theme, &Theme::changed, this, [this] {
        updateGeometry();
        update();
    });
}

void HistoryGraph::set_history(const VramHistory& history) {
    samples_ = history.samples();
    if (!samples_.empty()) {
        const VramSample& now = samples_.back();
        const auto [least, most] = std::ranges::minmax_element(samples_, {}, [](const VramSample& sample) { return sample.kv + sample.weights + sample.scratch; });
        const auto own = [](const VramSample& sample) { return size_text(sample.kv + sample.weights + sample.scratch); };
        setAccessibleDescription(tr("The model holds %1 now; between %2 and %3 in the time shown. Other programs hold %4.")
                                     .arg(own(now), own(*least), own(*most), size_text(now.others)));
    }
    update();
}

QSize HistoryGraph::sizeHint() const { return {theme_.px(240), theme_.px(120) + 2 * fontMetrics().height()}; }

QRectF HistoryGraph::plot() const { return QRectF(rect()).adjusted(0.5, fontMetrics().height() + 2, -0.5, -fontMetrics().height() - 2); }

double HistoryGraph::x_of(std::int64_t second) const {
    const QRectF all = plot();
    const auto ago = static_cast<double>(samples_.back().second - second);
    return all.right() - ago / VramHistory::kSeconds * all.width();
}

double HistoryGraph::fastest() const {
    const double most = std::ranges::max(samples_, {}, &VramSample::tokens_per_second).tokens_per_second;
    if (most <= 0) return 0;
    const double step = std::pow(10, std::floor(std::log10(most)));
    return std::ceil(most * 1.05 / step * 2) / 2 * step;
}

template <class Run>
void HistoryGraph::each_run(Run run) const {
    for (auto first = samples_.begin(); first != samples_.end();) {
        auto last = first;
        while (std::next(last) != samples_.end() && std::next(last)->second - last->second <= kGap) ++last;
        run(first, last);
        first = std::next(last);
    }
}

void HistoryGraph::paint_areas(QPainter& painter) const {
    const QRectF all = plot();
    each_run([&](auto first, auto last) {
        std::vector<double> below(static_cast<std::size_t>(last - first) + 1, 0.0);
        const double extra = first == last ? 1 : 0;  // one sample is seen
        for (const Layer& layer : kLayers) {
            QPolygonF area;
            const auto y = [&](double bytes, const VramSample& sample) {
                const double share = sample.total == 0 ? 0 : std::min(1.0, bytes / static_cast<double>(sample.total));
                return all.bottom() - share * all.height();
            };
            for (auto at = first;; ++at) {
                area << QPointF(x_of(at->second), y(below[static_cast<std::size_t>(at - first)], *at));
                if (at == last) break;
            }
            for (auto at = last;; --at) {
                double& sum = below[static_cast<std::size_t>(at - first)];
                sum += static_cast<double>((*at).*layer.bytes);
                area << QPointF(x_of(at->second) - extra, y(sum, *at));
                if (at == first) break;
            }
            painter.setPen(Qt::NoPen);
            painter.setBrush(theme_.color(color_of(layer.owner)));
            painter.drawPolygon(area);
        }
    });
}

void HistoryGraph::paint_speed(QPainter& painter) const {
    const double top = fastest();
    if (top <= 0) return;
    const QRectF all = plot();
    const auto point = [&](const VramSample& sample) {
        return QPointF(x_of(sample.second), all.bottom() - sample.tokens_per_second / top * all.height());
    };
    const auto draw = [&](const QColor& color, double wide) {
        painter.setBrush(Qt::NoBrush);
        painter.setPen(QPen(color, wide, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
        each_run([&](auto first, auto last) {
            QPolygonF line;
            for (auto at = first;; ++at) {
                if (at->tokens_per_second > 0) line << point(*at);
                if (at->tokens_per_second <= 0 || at == last) {
                    if (line.size() == 1) line << line.front() - QPointF(1, 0);
                    painter.drawPolyline(line);
                    line.clear();
                }
                if (at == last) break;
            }
        });
    };
    draw(theme_.color(ColorRole::page), 4);  // a rim: the line is seen on every area
    draw(theme_.color(ColorRole::text), 2);
}

void HistoryGraph::paint_scales(QPainter& painter) const {
    const QRectF all = plot();
    painter.setPen(theme_.color(ColorRole::muted));
    const auto place = [&](const QRectF& box, Qt::Alignment side, const QString& text) {
        painter.drawText(QStyle::visualRect(layoutDirection(), rect(), box.toRect()), static_cast<int>(QStyle::visualAlignment(layoutDirection(), side) | Qt::AlignVCenter),
                         text);
    };
    const QRectF above(0, 0, width(), all.top());
    const QRectF below(0, all.bottom(), width(), height() - all.bottom());
    place(above, Qt::AlignLeft, tr("VRAM, %1").arg(size_text(samples_.back().total)));
    const double top = fastest();
    if (top > 0) place(above, Qt::AlignRight, tr("━ up to %1 tok/s").arg(QLocale().toString(top, 'f', top < 10 ? 1 : 0)));
    place(below, Qt::AlignLeft, tr("10 minutes ago"));
    place(below, Qt::AlignRight, tr("now"));
}

void HistoryGraph::paintEvent(QPaintEvent*) {
    if (samples_.empty()) return;
    QPainter painter(this);
    paint_scales(painter);
    painter.setRenderHint(QPainter::Antialiasing);
    if (isRightToLeft()) {
        painter.translate(width(), 0);
        painter.scale(-1, 1);
    }
    const QRectF all = plot();
    painter.setClipRect(all);
    paint_areas(painter);
    painter.setPen(QPen(theme_.color(ColorRole::border), 1));
    for (int minute = 2; minute < 10; minute += 2) {
        const double x = all.right() - minute / 10.0 * all.width();
        painter.drawLine(QPointF(x, all.top()), QPointF(x, all.bottom()));
    }
    for (const double share : {0.25, 0.5, 0.75}) painter.drawLine(QPointF(all.left(), all.bottom() - share * all.height()), QPointF(all.right(), all.bottom() - share * all.height()));
    paint_speed(painter);
    painter.setClipping(false);
    painter.setPen(QPen(theme_.color(ColorRole::border), 1));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(all);
}

bool HistoryGraph::event(QEvent* event) {
    if (event->type() != QEvent::ToolTip || samples_.empty()) return QWidget::event(event);
    const auto* help = static_cast<QHelpEvent*>(event);
    const double x = isRightToLeft() ? width() - help->pos().x() : help->pos().x();
    const auto nearest = std::ranges::min_element(samples_, {}, [&](const VramSample& sample) { return std::abs(x_of(sample.second) - x); });
    QStringList lines{tr("%1 s ago").arg(QLocale().toString(qlonglong{samples_.back().second - nearest->second}))};
    if (std::abs(x_of(nearest->second) - x) > 3 * plot().width() / VramHistory::kSeconds + 2) return true;
    for (const Layer& layer : kLayers) lines << tr("%1: %2").arg(long_name_of(layer.owner), size_text((*nearest).*layer.bytes));
    if (nearest->tokens_per_second > 0) lines << tr("%1 tok/s").arg(QLocale().toString(nearest->tokens_per_second, 'f', 1));
    QToolTip::showText(help->globalPos(), lines.join(u'\n'), this);
    return true;
}

}  // namespace headroom::ui
