#pragma once

#include <QVBoxLayout>
#include <QWidget>

#include "ui/theme/theme.h"

namespace headroom::ui {

// Widgets below each other, as wide as a comfortable line of text at most, in the middle of the room there is.
class CenteredColumn : public QWidget {
    Q_OBJECT

public:
    explicit CenteredColumn(const Theme& theme, QWidget* parent = nullptr);

    void add(QWidget* widget) { column_->addWidget(widget); }

    // The free room on each side for a page of this width.
    [[nodiscard]] static int side(const Theme& theme, int width);

protected:
    void resizeEvent(QResizeEvent* event) override;

private:
    const Theme& theme_;
    QVBoxLayout* column_;
};

}  // namespace headroom::ui
