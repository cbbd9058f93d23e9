#pragma once

#include <QAbstractSlider>

#include <vector>

#include "core/engine/vram.h"
#include "ui/theme/theme.h"

namespace headroom::ui {

// A card's memory, the whole width of it. From the leading edge: other programs, KV, weights, working memory, free; hatched from the handle to
// the trailing edge: what is kept free. The value is that, in MiB: it grows as the handle goes towards the leading edge. Keys: Left and Right
// move the handle that way by 256 MiB, Up and Page Up keep more free (256 MiB, 1 GiB), Down and Page Down less; Home leads to the
// leading edge (the whole card is kept free), End to the trailing one. A click beside the handle brings it 1 GiB nearer.
class VramTrack : public QAbstractSlider {
    Q_OBJECT

public:
    explicit VramTrack(const Theme& theme, QWidget* parent = nullptr);

    // Figures; the handle too, unless a hand is on it. It can be moved where the device is elastic.
    void set_device(const engine::VramDevice& device);
    [[nodiscard]] std::uint64_t reserve_bytes() const;
    [[nodiscard]] QPointF handle() const;  // its centre

    [[nodiscard]] QSize sizeHint() const override;
    [[nodiscard]] QSize minimumSizeHint() const override;

signals:
    void reserve_chosen(std::uint64_t bytes);  // by a hand

protected:
    bool event(QEvent* event) override;
    void paintEvent(QPaintEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void leaveEvent(QEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void wheelEvent(QWheelEvent* event) override;

private:
    struct Part {
        double begin = 0, end = 0;   // pixels from the leading edge
        ColorRole role = ColorRole::page;
        QString name, long_name;
        std::uint64_t bytes = 0;
    };

    [[nodiscard]] QRectF groove() const;
    [[nodiscard]] double x_of(std::uint64_t bytes) const;  // from the leading edge of the widget
    [[nodiscard]] double from_leading(double x) const;     // a position on the screen; and back
    [[nodiscard]] int value_at(double x) const;
    [[nodiscard]] bool on_handle(double x) const;
    [[nodiscard]] std::vector<Part> parts() const;
    [[nodiscard]] QString text_at(double x) const;
    void paint_labels(QPainter& painter) const;
    void paint_handle(QPainter& painter) const;
    void show_expectation();
    void describe();

    const Theme& theme_;
    engine::VramDevice device_;
    double grip_ = 0;          // of the handle, where it was taken hold of
    bool hovered_ = false;
};

}  // namespace headroom::ui
