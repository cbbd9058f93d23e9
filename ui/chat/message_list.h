#pragma once

#include <QScrollArea>
#include <QTimer>
#include <QVBoxLayout>

#include <set>
#include <vector>

#include "ui/chat/chat_service.h"
#include "ui/theme/theme.h"

namespace headroom::ui {

class IconButton;
class MessageView;

// The shown path of the open conversation. Long ones show their newest messages first and fetch earlier ones as the reader scrolls up.
// While an answer grows, the view follows its end, unless the reader has scrolled away from it: then nothing moves.
class MessageList : public QScrollArea {
    Q_OBJECT

public:
    MessageList(const Theme& theme, ChatService& chats, QWidget* parent = nullptr);

    void edit_last();        // opens the user's last message for editing
    [[nodiscard]] bool follows() const { return follows_; }
    [[nodiscard]] int shown_messages() const { return static_cast<int>(views_.size()); }
    [[nodiscard]] int updates() const { return updates_; }  // of messages drawn anew while streaming: what tests count

protected:
    void resizeEvent(QResizeEvent* event) override;

private:
    void show_path(bool keep_position);
    void show_earlier();
    void settle();
    void message_changed(qint64 message);
    void update_pending();
    void update_message(MessageView& view);
    void rebuild();
    void scroll_to_end();
    void on_scrolled(int value);
    void on_range_changed(int minimum, int maximum);
    MessageView* make_view(qint64 id);

    const Theme& theme_;
    ChatService& chats_;
    QWidget* column_;
    QVBoxLayout* layout_;
    IconButton* to_end_;
    std::vector<qint64> path_;
    std::vector<MessageView*> views_;  // of the last messages of path_
    std::set<qint64> pending_;         // changed since the last update
    QTimer update_timer_;
    bool follows_ = true;
    bool adjusting_ = false;           // the scroll bar moves because of us
    int from_end_ = -1;                // distance to keep while earlier messages are put above
    int updates_ = 0;
};

}  // namespace headroom::ui
