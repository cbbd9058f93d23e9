#pragma once

#include <QWidget>

#include "core/engine/devices.h"
#include "ui/theme/theme.h"

namespace headroom::ui {

// The whole width is a card's memory. From the leading edge: other programs (grey), this program (blue), free (outline).
class MemoryBar : public QWidget {
    Q_OBJECT

public:
    explicit MemoryBar(const Theme& theme, QWidget* parent = nullptr);

    void set_memory(const engine::DeviceMemory& memory);
    // The same in words, with the colours as small squares, as rich text.
    [[nodiscard]] QString legend() const;
    // Shares of the width, from 0 to 1.
    [[nodiscard]] double others() const;
    [[nodiscard]] double own() const;

    [[nodiscard]] QSize sizeHint() const override;

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    const Theme& theme_;
    engine::DeviceMemory memory_;
};

}  // namespace headroom::ui
