#pragma once

#include <QStackedWidget>
#include <QWidget>

#include "ui/chat/chat_service.h"
#include "ui/theme/theme.h"

class QMenu;

namespace headroom::ui {

class Composer;
class ContextBar;
class EmptyState;
class IconButton;
class MessageList;
class ModelStrip;
class SamplingPanel;

// The chat: the model's name on top, the messages, the field to write in, and the sampling panel at the side.
class ChatPage : public QWidget {
    Q_OBJECT

public:
    ChatPage(const Theme& theme, EngineController& engine, ChatService& chats, QWidget* parent = nullptr);

    void focus_input();
    void set_hint(const QString& text);  // as EmptyState::set_hint
    void edit_last();
    void regenerate_last();
    void copy_last();
    void stop();
    void toggle_sampling();
    [[nodiscard]] IconButton* sidebar_button() const { return sidebar_button_; }

signals:
    void open_model();
    void open_named(const QString& name);    // from the model menu: as -m of the command line
    void rename_requested();
    void remove_requested();
    void fill_model_menu(QMenu* menu);       // before it is shown: the window adds what there is

private:
    QWidget* make_header();
    void update_header();
    static QString where_it_runs(const engine::ModelInfo& info);
    void update_messages();
    void copy_conversation();

    const Theme& theme_;
    EngineController& engine_;
    ChatService& chats_;
    IconButton* sidebar_button_;
    IconButton* model_button_;
    IconButton* sampling_button_;
    IconButton* more_button_;
    QStackedWidget* middle_;
    EmptyState* empty_;
    MessageList* messages_;
    ModelStrip* strip_;
    Composer* composer_;
    ContextBar* context_;
    SamplingPanel* sampling_;
};

}  // namespace headroom::ui
