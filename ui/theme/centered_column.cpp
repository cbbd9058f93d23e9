#include "ui/theme/centered_column.h"

#include <algorithm>

namespace headroom::ui {

CenteredColumn::CenteredColumn(const Theme& theme, QWidget* parent) : QWidget(parent), theme_(theme), column_(new QVBoxLayout(this)) {
    column_->setSpacing(theme.px(8));
    column_->setContentsMargins(0, 0, 0, 0);
    setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Minimum);
}

int CenteredColumn::side(const Theme& theme, int width) { return std::max(theme.px(24), (width - theme.px(760)) / 2); }

void CenteredColumn::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    const int margin = side(theme_, width());
    column_->setContentsMargins(margin, 0, margin, 0);
}

}  // namespace headroom::ui
