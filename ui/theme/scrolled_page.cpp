#include "ui/theme/scrolled_page.h"

#include <QScrollArea>

namespace headroom::ui {

QScrollArea* fill_scrolled(QWidget* page, const Theme& theme, CenteredColumn* centered, const QString& name) {
    auto* inside = new QWidget(page);
    inside->setObjectName(name + QStringLiteral("_column"));
    auto* inside_column = new QVBoxLayout(inside);
    inside_column->setContentsMargins(0, theme.px(16), 0, theme.px(24));
    inside_column->addWidget(centered);
    inside_column->addStretch(1);
    auto* scroll = new QScrollArea(page);
    scroll->setObjectName(name + QStringLiteral("_scroll"));
    scroll->setFrameShape(QFrame::NoFrame);
    scroll->setWidgetResizable(true);
    scroll->setWidget(inside);
    auto* column = new QVBoxLayout(page);
    column->setContentsMargins(0, 0, 0, 0);
    column->addWidget(scroll);
    return scroll;
}

}  // namespace headroom::ui
