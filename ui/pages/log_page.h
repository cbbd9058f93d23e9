#pragma once

#include <QPlainTextEdit>
#include <QWidget>

#include "ui/pages/log_buffer.h"
#include "ui/theme/theme.h"

namespace headroom::ui {

// What the program has to say about its work.
class LogPage : public QWidget {
    Q_OBJECT

public:
    LogPage(const Theme& theme, LogBuffer& log, QWidget* parent = nullptr);

private:
    QPlainTextEdit* text_;
};

}  // namespace headroom::ui
