#pragma once

#include <QLabel>
#include <QWidget>

#include <vector>

#include "ui/theme/icon_button.h"

namespace headroom::ui {

// ‹ 2/3 ›: goes through the branches at a message. Hidden where there is only one.
class BranchSwitch : public QWidget {
    Q_OBJECT

public:
    explicit BranchSwitch(const Theme& theme, QWidget* parent = nullptr);

    void set_branches(const std::vector<qint64>& siblings, qint64 shown, bool enabled);

signals:
    void selected(qint64 message);

private:
    void update_icons();

    std::vector<qint64> siblings_;
    std::size_t shown_ = 0;
    IconButton* previous_;
    IconButton* next_;
    QLabel* position_;
};

}  // namespace headroom::ui
