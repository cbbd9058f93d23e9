#pragma once

#include <QObject>
#include <QSqlQuery>

#include <vector>

#include "ui/store/database.h"
#include "ui/store/records.h"

namespace headroom::ui {

// Conversations and their messages in the database. Lives in the window's thread: every call is one short transaction (a write
// takes well under a millisecond; tst_chat_store measures it). A call that fails reports through failed() and returns nothing.
class ChatStore : public QObject {
    Q_OBJECT

public:
    explicit ChatStore(std::filesystem::path folder, QObject* parent = nullptr);

    // Opens the database; returns a notice for the user, or an empty text. Answers that a kill left half made become `stopped`,
    // conversations deleted in an earlier session are removed for good.
    [[nodiscard]] QString open();

    [[nodiscard]] std::vector<ConversationInfo> conversations();  // newest first
    // Those whose title or messages hold every word of `words` (as the beginning of a word, upper and lower case alike).
    [[nodiscard]] std::vector<ConversationInfo> search(const QString& words);

    qint64 add_conversation(const QString& title, const ConversationSettings& settings);  // 0: failed
    void rename(qint64 conversation, const QString& title);
    void set_deleted(qint64 conversation, bool deleted);  // a deleted one can be brought back until the program ends
    void touch(qint64 conversation);                      // sets its time to now
    [[nodiscard]] ConversationSettings settings(qint64 conversation);
    void set_settings(qint64 conversation, const ConversationSettings& settings);

    [[nodiscard]] std::vector<Message> messages(qint64 conversation);
    [[nodiscard]] qint64 leaf(qint64 conversation);
    void set_leaf(qint64 conversation, qint64 leaf);
    qint64 add_message(const Message& message);     // its id is ignored; returns the new one, 0: failed
    void update_message(const Message& message);    // text, state, error, figures

    [[nodiscard]] const Database& database() const { return database_; }

signals:
    void failed(const QString& notice);  // in words for the user
    void replaced();                     // the file was damaged and a new one begun: everything shown is out of date

private:
    QSqlQuery prepare(const QString& statement);
    bool exec(QSqlQuery& query);
    std::vector<ConversationInfo> read_infos(QSqlQuery& query);

    Database database_;
    bool failing_ = false;  // said once, until something works again
};

}  // namespace headroom::ui
