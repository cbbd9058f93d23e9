#pragma once

#include <QAbstractButton>

#include "ui/theme/theme.h"

namespace headroom::ui {

// On or off: a knob that stands on the trailing side when it is on.
class Switch : public QAbstractButton {
    Q_OBJECT

public:
    Switch(const Theme& theme, const QString& text, QWidget* parent = nullptr);  // text: for screen readers and the tooltip
    [[nodiscard]] QSize sizeHint() const override;

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    const Theme& theme_;
};

}  // namespace headroom::ui
