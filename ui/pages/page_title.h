#pragma once

#include <QLabel>

#include "ui/theme/theme.h"

namespace headroom::ui {

// The heading of a page.
class PageTitle : public QLabel {
    Q_OBJECT

public:
    PageTitle(const Theme& theme, const QString& text, QWidget* parent = nullptr);

private:
    void set_size();
};

}  // namespace headroom::ui
