#pragma once

#include <QFrame>
#include <QTimer>

#include "ui/chat/chat_service.h"
#include "ui/conversations/conversation_model.h"
#include "ui/theme/theme.h"

class QLineEdit;
class QListView;
class QVBoxLayout;

namespace headroom::ui {

class IconButton;

// The side of the window: new chat, search, the list of conversations, and below them the buttons of the other pages.
class Sidebar : public QFrame {
    Q_OBJECT

public:
    Sidebar(const Theme& theme, ChatStore& store, ChatService& chats, QWidget* parent = nullptr);

    // A button for a page, below those there are.
    IconButton* add_page_button(const QString& icon, const QString& title, const QString& shortcut);
    void focus_search();
    void rename(qint64 conversation);  // edits the title in place
    void refresh();

signals:
    void new_chat();
    void conversation_chosen(qint64 conversation);
    void remove_requested(qint64 conversation);

protected:
    bool eventFilter(QObject* object, QEvent* event) override;

private:
    void select_current();
    void show_menu(const QPoint& position);

    const Theme& theme_;
    ChatStore& store_;
    ChatService& chats_;
    ConversationModel model_;
    QLineEdit* search_;
    QListView* list_;
    QVBoxLayout* pages_;
    QTimer search_timer_;
};

}  // namespace headroom::ui
