#pragma once

#include <QFrame>
#include <QLabel>
#include <QPlainTextEdit>

#include "ui/theme/theme.h"

namespace headroom::ui {

// A block of code: its language, a copy button, and the text in a fixed-width font. Very long ones scroll inside.
class CodeBlock : public QFrame {
    Q_OBJECT

public:
    CodeBlock(const Theme& theme, const QString& language, QWidget* parent = nullptr);

    // Text that only grew costs what was added.
    void set_code(const QString& code);
    [[nodiscard]] const QString& code() const { return code_; }
    [[nodiscard]] QString language() const { return language_; }

protected:
    bool eventFilter(QObject* object, QEvent* event) override;
    void showEvent(QShowEvent* event) override;

private:
    void fit_height();

    QString language_;
    QString code_;   // as it is copied
    QString shown_;  // with over-long lines broken
    QPlainTextEdit* text_;
};

}  // namespace headroom::ui
