#pragma once

#include <QFrame>
#include <QVBoxLayout>

#include <functional>

#include "ui/theme/theme.h"

namespace headroom::ui {

// Lines at the top of the window that say what happened; each stays until it is closed.
class NoticeBar : public QWidget {
    Q_OBJECT

public:
    explicit NoticeBar(const Theme& theme, QWidget* parent = nullptr);

    // action: the words of a button that does `act` and closes the line; empty: none. A line with the same `key` is replaced.
    void show_notice(const QString& text, const QString& key = {}, const QString& action = {}, std::function<void()> act = {});

private:
    const Theme& theme_;
    QVBoxLayout* column_;
};

}  // namespace headroom::ui
