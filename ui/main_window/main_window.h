#pragma once

#include <QMainWindow>

#include <functional>
#include <vector>

#include "ui/chat/chat_service.h"
#include "ui/controller/engine_controller.h"
#include "ui/pages/log_buffer.h"
#include "ui/store/settings.h"
#include "ui/theme/theme.h"

class QMenu;
class QStackedWidget;
class QVBoxLayout;

namespace headroom::ui {

class ChatPage;
class IconButton;
class NoticeBar;
class Sidebar;

// What the window works with; all of it outlives the window.
struct WindowParts {
    Theme& theme;
    Settings& settings;
    ChatStore& store;
    EngineController& engine;
    ChatService& chats;
    LogBuffer& log;
};

// The frame: sidebar, pages, notices, and a place at the bottom that all pages share.
class MainWindow : public QMainWindow {
    Q_OBJECT

public:
    explicit MainWindow(const WindowParts& parts);

    // A page beside the chat, with a button in the sidebar. id: its object name and the name for show_page().
    void add_page(const QString& id, const QString& icon, const QString& title, QWidget* page, const QKeySequence& shortcut = {});
    void show_page(const QString& id);  // "chat", or what add_page() was given
    // Stands below every page.
    void set_footer(QWidget* footer);
    // A sentence on an empty chat; empty: none.
    void set_hint(const QString& text);

    void show_notice(const QString& text, const QString& key = {});
    // Opens a model: a path or a name as -m of the command line. Remembered for the next start once it is loaded.
    void open_model(const QString& name, int context = 0, int threads = 0);
    // To the front, from another start of the program.
    void bring_to_front();
    // Asks for a GGUF file; replaced by tests.
    std::function<QString(QWidget* parent, const QString& folder)> ask_for_file;

protected:
    void changeEvent(QEvent* event) override;
    void closeEvent(QCloseEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void dragEnterEvent(QDragEnterEvent* event) override;
    void dropEvent(QDropEvent* event) override;

private:
    void add_shortcuts();
    void add_shortcut(const QKeySequence& keys, std::function<void()> act);
    void open_model_dialog();
    void fill_model_menu(QMenu* menu);
    void new_chat();
    void remove_conversation(qint64 conversation);
    void set_sidebar_shown(bool shown);
    void escape();
    void scale_text(int percent);

    WindowParts parts_;
    Sidebar* sidebar_;
    NoticeBar* notices_;
    QStackedWidget* pages_;
    QVBoxLayout* column_;
    ChatPage* chat_;
    struct Page {
        QString id;
        QWidget* widget;
        IconButton* button;
    };
    std::vector<Page> added_;
    bool sidebar_wanted_ = true;
};

}  // namespace headroom::ui
