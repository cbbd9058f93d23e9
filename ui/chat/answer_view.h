#pragma once

#include <QFrame>
#include <QLabel>
#include <QPushButton>
#include <QVBoxLayout>

#include "ui/chat/message_view.h"

namespace headroom::ui {

class BranchSwitch;
class CopyButton;
class IconButton;
class MarkdownView;
class ReasoningView;

// What the model answered: reasoning (folded), markdown, or in its place an error with what to do.
class AnswerView : public MessageView {
    Q_OBJECT

public:
    explicit AnswerView(const Theme& theme, QWidget* parent = nullptr);

    void show_message(const Message& message, const ChatService::Progress& progress, const std::vector<qint64>& siblings,
                      bool busy) override;
    // For colours and sizes that have changed.
    void rebuild();

private:
    [[nodiscard]] QString status_text(const Message& message, const ChatService::Progress& progress) const;
    [[nodiscard]] QString figures_text(const Message& message) const;

    QString answer_;
    ReasoningView* reasoning_ = nullptr;  // made when it is needed
    QVBoxLayout* column_;
    MarkdownView* text_;
    QLabel* status_;
    QFrame* error_;
    QLabel* error_text_;
    QPushButton* retry_;
    QWidget* actions_;
    BranchSwitch* branches_;
    CopyButton* copy_;
    IconButton* regenerate_;
    QLabel* figures_;
    const Theme& theme_;
};

}  // namespace headroom::ui
