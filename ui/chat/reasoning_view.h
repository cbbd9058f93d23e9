#pragma once

#include <QWidget>

#include "ui/theme/icon_button.h"

namespace headroom::ui {

class TextView;

// What a model thought before it answered: folded to one line with its time until it is unfolded.
class ReasoningView : public QWidget {
    Q_OBJECT

public:
    explicit ReasoningView(const Theme& theme, QWidget* parent = nullptr);

    void set_reasoning(const QString& text, bool thinking, qint64 milliseconds);
    void set_unfolded(bool unfolded);

private:
    void update_text();

    const Theme& theme_;
    QString reasoning_;
    IconButton* toggle_;
    TextView* text_;
};

}  // namespace headroom::ui
