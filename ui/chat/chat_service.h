#pragma once

#include <QElapsedTimer>
#include <QObject>
#include <QTimer>

#include <deque>
#include <optional>

#include "ui/controller/engine_controller.h"
#include "ui/store/chat_store.h"
#include "ui/store/conversation_tree.h"

namespace headroom::ui {

// The conversations as the window works with them: the one that is open, the answers that are being made (also for conversations
// that are not open), and their saving. Lives in the window's thread.
class ChatService : public QObject {
    Q_OBJECT

public:
    // How far an answer is that is not complete.
    struct Progress {
        enum class Phase { none, waiting_for_model, waiting_for_turn, reading, thinking, writing } phase = Phase::none;
        int prompt_done = 0;
        int prompt_total = 0;
        double tokens_per_second = 0;
    };

    ChatService(ChatStore& store, EngineController& engine, QObject* parent = nullptr);
    // Saves answers that are being made as they are.
    ~ChatService() override;

    [[nodiscard]] qint64 current() const { return current_; }  // 0: a new conversation without messages
    [[nodiscard]] const ConversationTree& tree() const { return tree_; }
    [[nodiscard]] const ConversationSettings& settings() const { return settings_; }
    [[nodiscard]] Progress progress(qint64 message) const;
    // The open conversation has an answer that is queued or being made.
    [[nodiscard]] bool busy() const;
    [[nodiscard]] bool answering(qint64 conversation) const;
    // Tokens of the context that the shown path takes, as far as the last answer told; 0: unknown.
    [[nodiscard]] int context_used() const;

    void open(qint64 conversation);  // 0: a new one
    void set_settings(const ConversationSettings& settings);
    void send(const QString& text);
    void edit(qint64 user_message, const QString& text);  // a new branch beside it
    void regenerate(qint64 answer);                       // a new branch beside it
    void select_branch(qint64 message);
    void stop();                                          // the open conversation's answer
    void rename(qint64 conversation, const QString& title);
    void remove(qint64 conversation);                     // can be undone until the program ends
    void restore(qint64 conversation);

signals:
    void opened();                        // another conversation is shown
    void path_changed();                  // messages were added, or another branch is shown
    void message_changed(qint64 message); // of the open conversation: text, state or progress
    void busy_changed();
    void list_changed();                  // titles, order or number of conversations
    void settings_changed();

private:
    struct Job {
        Message message;  // the answer, live
        AnswerRequest request;
        Progress progress;
        bool running = false;
        bool unsaved = false;
        QElapsedTimer thinking;
    };

    void add_answer(qint64 parent);
    void start_next();
    void on_text(qint64 answer, const QString& text, const engine::GenerateStats& stats);
    void on_prompt(qint64 answer, int done, int total);
    void on_finished(qint64 answer, const AnswerOutcome& outcome);
    void finish(std::deque<Job>::iterator job);
    void save_running();
    void publish(const Job& job);
    std::deque<Job>::iterator find_job(qint64 answer);

    ChatStore& store_;
    EngineController& engine_;
    qint64 current_ = 0;
    ConversationTree tree_;
    ConversationSettings settings_;
    std::deque<Job> jobs_;  // the first one may be running
    QTimer save_timer_;
};

}  // namespace headroom::ui
