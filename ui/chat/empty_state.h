#pragma once

#include <QWidget>

#include "ui/theme/theme.h"

class QLabel;
class QVBoxLayout;

namespace headroom::ui {

// What a new chat shows: examples to ask, and the way to another model.
class EmptyState : public QWidget {
    Q_OBJECT

public:
    explicit EmptyState(const Theme& theme, QWidget* parent = nullptr);

    // builtin: examples for the small built-in model, which knows Headroom, words and small sums; else general ones.
    void set_model(bool builtin);
    // A sentence about the window that is new to the user, last on the page; empty: none.
    void set_hint(const QString& text);

signals:
    void example_chosen(const QString& text);
    void open_model();

private:
    const Theme& theme_;
    QVBoxLayout* examples_;
    QLabel* note_;
    QLabel* hint_;
    bool builtin_ = false;
    bool filled_ = false;
};

}  // namespace headroom::ui
