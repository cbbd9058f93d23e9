#pragma once

#include <QFrame>
#include <QPlainTextEdit>

#include "ui/chat/message_view.h"

namespace headroom::ui {

class BranchSwitch;
class CopyButton;
class IconButton;
class TextView;

// What the user wrote: a bubble on the trailing side, as plain text; it can be edited and sent again.
class UserMessageView : public MessageView {
    Q_OBJECT

public:
    explicit UserMessageView(const Theme& theme, QWidget* parent = nullptr);

    void show_message(const Message& message, const ChatService::Progress& progress, const std::vector<qint64>& siblings,
                      bool busy) override;
    void begin_edit();

protected:
    void resizeEvent(QResizeEvent* event) override;
    bool eventFilter(QObject* object, QEvent* event) override;

private:
    void fit_bubble();
    void end_edit();
    void send_edit();

    const Theme& theme_;
    QString text_;
    QFrame* bubble_;
    TextView* shown_;
    QWidget* editor_;
    QPlainTextEdit* input_;
    QWidget* actions_;
    BranchSwitch* branches_;
    IconButton* edit_;
};

}  // namespace headroom::ui
