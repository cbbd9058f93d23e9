#pragma once

#include <QWidget>

#include "ui/theme/theme.h"
#include "ui/vram/vram_history.h"

namespace headroom::ui {

// Ten minutes of a card: VRAM by owner as areas on top of each other, tokens per second as a line. The newest is at the trailing edge.
class HistoryGraph : public QWidget {
    Q_OBJECT

public:
    explicit HistoryGraph(const Theme& theme, QWidget* parent = nullptr);

    void set_history(const VramHistory& history);  // a copy

    [[nodiscard]] QSize sizeHint() const override;

protected:
    bool event(QEvent* event) override;
    void paintEvent(QPaintEvent* event) override;

private:
    using Samples = std::deque<VramSample>;
    [[nodiscard]] QRectF plot() const;
    [[nodiscard]] double x_of(std::int64_t second) const;  // from the leading edge
    [[nodiscard]] double fastest() const;                  // top of the line's scale
    void paint_areas(QPainter& painter) const;
    void paint_speed(QPainter& painter) const;
    void paint_scales(QPainter& painter) const;
    // Calls run(first, last) for each stretch without a gap, last included.
    template <class Run>
    void each_run(Run run) const;

    const Theme& theme_;
    Samples samples_;
};

}  // namespace headroom::ui
