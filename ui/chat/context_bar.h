#pragma once

#include <QWidget>

#include "ui/theme/theme.h"

namespace headroom::ui {

// "Context ▓▓▓░░ 3,120 of 32,768": how much of the model's context the conversation takes.
class ContextBar : public QWidget {
    Q_OBJECT

public:
    explicit ContextBar(const Theme& theme, QWidget* parent = nullptr);

    void set_use(int used, int size);  // size 0: no model, nothing is shown
    [[nodiscard]] QString text() const;
    [[nodiscard]] QSize sizeHint() const override;

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    const Theme& theme_;
    int used_ = 0;
    int size_ = 0;
};

}  // namespace headroom::ui
