#pragma once

#include <QWidget>

#include "ui/chat/chat_service.h"
#include "ui/theme/theme.h"

namespace headroom::ui {

// One message in the list. The base of UserMessageView and AnswerView.
class MessageView : public QWidget {
    Q_OBJECT

public:
    using QWidget::QWidget;

    // Takes the message's present state over. siblings: its branches; busy: an answer of this conversation is being made.
    virtual void show_message(const Message& message, const ChatService::Progress& progress, const std::vector<qint64>& siblings,
                              bool busy) = 0;
    [[nodiscard]] qint64 id() const { return id_; }
    void set_id(qint64 id) { id_ = id; }

signals:
    void branch_selected(qint64 message);
    void edited(qint64 message, const QString& text);
    void regenerate(qint64 message);

protected:
    qint64 id_ = 0;
};

}  // namespace headroom::ui
