#include "ui/pages/page_title.h"

#include <QApplication>

namespace headroom::ui {

PageTitle::PageTitle(const Theme& theme, const QString& text, QWidget* parent) : QLabel(text, parent) {
    set_size();
    connect(&theme, &Theme::changed, this, &PageTitle::set_size);
}

void PageTitle::set_size() {
    QFont larger = QApplication::font();
    larger.setPointSizeF(larger.pointSizeF() * 1.5);
    larger.setWeight(QFont::DemiBold);
    setFont(larger);
}

}  // namespace headroom::ui
