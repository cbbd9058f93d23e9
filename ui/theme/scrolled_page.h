#pragma once

#include "ui/theme/centered_column.h"

class QScrollArea;

namespace headroom::ui {

// Fills a page with a column that scrolls where it is longer than the page. name: object names are NAME_scroll, and NAME_column for what
// moves.
QScrollArea* fill_scrolled(QWidget* page, const Theme& theme, CenteredColumn* centered, const QString& name);

}  // namespace headroom::ui
