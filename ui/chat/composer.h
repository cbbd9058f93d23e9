#pragma once

#include <QFrame>
#include <QPlainTextEdit>

#include "ui/theme/theme.h"

namespace headroom::ui {

class IconButton;

// Where the user writes: grows with its text, Enter sends, Shift+Enter begins a new line, Escape stops an answer.
class Composer : public QWidget {
    Q_OBJECT

public:
    explicit Composer(const Theme& theme, QWidget* parent = nullptr);

    void set_answering(bool answering);  // the button stops instead of sending
    void set_text(const QString& text);
    void focus_input() { input_->setFocus(); }

signals:
    void send(const QString& text);
    void stop();
    void edit_last();  // Up in an empty field

protected:
    bool eventFilter(QObject* object, QEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;

private:
    void press_button();
    void fit_height();
    void update_button();
    bool key_pressed(const QKeyEvent& key);

    const Theme& theme_;
    QFrame* frame_;
    QPlainTextEdit* input_;
    IconButton* button_;
    bool answering_ = false;
};

}  // namespace headroom::ui
