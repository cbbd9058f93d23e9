#pragma once

#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSpinBox>
#include <QWidget>

#include "ui/controller/server_controller.h"
#include "ui/theme/theme.h"

class QFormLayout;

namespace headroom::ui {

class MarkdownView;
class RequestList;
class Switch;

// The local server: its switch, address, key and origins, what it is doing, and how other programs reach it.
class ServerPage : public QWidget {
    Q_OBJECT

public:
    ServerPage(const Theme& theme, ServerController& server, QWidget* parent = nullptr);

protected:
    void showEvent(QShowEvent* event) override;
    void hideEvent(QHideEvent* event) override;

private:
    QWidget* make_head();
    QWidget* make_form();
    void add_row(QFormLayout& form, const QString& label, QWidget* field, const QString& help);
    QLabel* add_heading(const QString& text);
    void update();

    const Theme& theme_;
    ServerController& server_;
    Switch* switch_;
    QLabel* state_;
    QLabel* address_;
    QWidget* copy_address_;
    QSpinBox* port_;
    QLabel* key_state_;
    QLineEdit* key_;      // shown once
    QWidget* copy_key_;
    QPushButton* new_key_;
    QPushButton* remove_key_;
    QLineEdit* origins_;
    RequestList* in_progress_;
    RequestList* recent_;
    MarkdownView* examples_;
};

}  // namespace headroom::ui
