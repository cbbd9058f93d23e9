#include "ui/store/chat_store.h"

#include <QDateTime>
#include <QRegularExpression>

#include <utility>

#include "ui/store/settings_json.h"

namespace headroom::ui {
namespace {

qint64 now_ms() { return QDateTime::currentMSecsSinceEpoch(); }

// A null QString would be stored as NULL.
QString not_null(const QString& text) { return text.isNull() ? QStringLiteral("") : text; }

// The words of a search as an FTS5 expression: each quoted (so that nothing in it is an operator) and open at its end.
QString match_expression(const QStringList& words) {
    QStringList parts;
    for (QString word : words) parts << QLatin1Char('"') + word.replace(QLatin1Char('"'), QLatin1String("\"\"")) + QLatin1String("\"*");
    return parts.join(QLatin1Char(' '));
}

}  // namespace

ChatStore::ChatStore(std::filesystem::path folder, QObject* parent) : QObject(parent), database_(std::move(folder)) {}

QString ChatStore::open() {
    const QString notice = database_.open();
    QSqlQuery query = prepare(QStringLiteral("UPDATE message SET state = ? WHERE state = ?"));
    query.addBindValue(static_cast<int>(MessageState::stopped));
    query.addBindValue(static_cast<int>(MessageState::streaming));
    exec(query);
    query = prepare(QStringLiteral("DELETE FROM conversation WHERE deleted = 1"));
    exec(query);
    return notice;
}

QSqlQuery ChatStore::prepare(const QString& statement) {
    QSqlQuery query(database_.connection());
    query.prepare(statement);  // a statement that cannot be prepared fails in exec()
    return query;
}

bool ChatStore::exec(QSqlQuery& query) {
    if (query.exec()) {
        failing_ = false;
        return true;
    }
    const QSqlError error = query.lastError();
    query = QSqlQuery();  // lets go of the connection
    if (Database::is_damage(error)) {
        const QString notice = database_.replace_damaged();
        emit failed(notice);
        emit replaced();
    } else if (!std::exchange(failing_, true)) {
        emit failed(tr("Conversations cannot be saved: %1.").arg(error.databaseText()));
    }
    return false;
}

std::vector<ConversationInfo> ChatStore::read_infos(QSqlQuery& query) {
    std::vector<ConversationInfo> infos;
    if (!exec(query)) return infos;
    while (query.next()) infos.push_back({query.value(0).toLongLong(), query.value(1).toString(), query.value(2).toLongLong()});
    return infos;
}

std::vector<ConversationInfo> ChatStore::conversations() {
    QSqlQuery query = prepare(QStringLiteral(
        "SELECT id, title, updated_ms FROM conversation WHERE deleted = 0 ORDER BY updated_ms DESC, id DESC"));
    return read_infos(query);
}

std::vector<ConversationInfo> ChatStore::search(const QString& text) {
    // Split as the index splits: at everything that is neither letter nor digit.
    static const QRegularExpression separators(QStringLiteral("[^\\p{L}\\p{N}\\p{M}]+"));
    const QStringList words = text.split(separators, Qt::SkipEmptyParts);
    if (words.isEmpty()) return conversations();
    QString title_condition;
    for (qsizetype i = 0; i < words.size(); ++i) title_condition += QStringLiteral(" AND title LIKE ?");
    QSqlQuery query = prepare(QStringLiteral(
        "SELECT id, title, updated_ms FROM conversation WHERE deleted = 0 AND (id IN (SELECT m.conversation FROM message m"
        " WHERE m.id IN (SELECT rowid FROM message_words WHERE message_words MATCH ?)) OR (1 %1))"
        " ORDER BY updated_ms DESC, id DESC").arg(title_condition));
    query.addBindValue(match_expression(words));
    for (const QString& word : words) query.addBindValue(QStringLiteral("%%1%").arg(word));  // words hold no % and no _
    return read_infos(query);
}

qint64 ChatStore::add_conversation(const QString& title, const ConversationSettings& settings) {
    QSqlQuery query = prepare(QStringLiteral(
        "INSERT INTO conversation (title, created_ms, updated_ms, system_prompt, sampling) VALUES (?, ?, ?, ?, ?)"));
    query.addBindValue(title);
    query.addBindValue(now_ms());
    query.addBindValue(now_ms());
    query.addBindValue(not_null(settings.system_prompt));
    query.addBindValue(QString::fromUtf8(sampling_to_json(settings)));
    return exec(query) ? query.lastInsertId().toLongLong() : 0;
}

void ChatStore::rename(qint64 conversation, const QString& title) {
    QSqlQuery query = prepare(QStringLiteral("UPDATE conversation SET title = ? WHERE id = ?"));
    query.addBindValue(title);
    query.addBindValue(conversation);
    exec(query);
}

void ChatStore::set_deleted(qint64 conversation, bool deleted) {
    QSqlQuery query = prepare(QStringLiteral("UPDATE conversation SET deleted = ? WHERE id = ?"));
    query.addBindValue(deleted ? 1 : 0);
    query.addBindValue(conversation);
    exec(query);
}

void ChatStore::touch(qint64 conversation) {
    QSqlQuery query = prepare(QStringLiteral("UPDATE conversation SET updated_ms = ? WHERE id = ?"));
    query.addBindValue(now_ms());
    query.addBindValue(conversation);
    exec(query);
}

ConversationSettings ChatStore::settings(qint64 conversation) {
    ConversationSettings settings;
    QSqlQuery query = prepare(QStringLiteral("SELECT system_prompt, sampling FROM conversation WHERE id = ?"));
    query.addBindValue(conversation);
    if (exec(query) && query.next()) {
        settings.system_prompt = query.value(0).toString();
        sampling_from_json(query.value(1).toString().toUtf8(), settings);
    }
    return settings;
}

void ChatStore::set_settings(qint64 conversation, const ConversationSettings& settings) {
    QSqlQuery query = prepare(QStringLiteral("UPDATE conversation SET system_prompt = ?, sampling = ? WHERE id = ?"));
    query.addBindValue(not_null(settings.system_prompt));
    query.addBindValue(QString::fromUtf8(sampling_to_json(settings)));
    query.addBindValue(conversation);
    exec(query);
}

std::vector<Message> ChatStore::messages(qint64 conversation) {
    QSqlQuery query = prepare(QStringLiteral(
        "SELECT id, parent, role, state, text, error, model, created_ms, prompt_tokens, completion_tokens, tokens_per_second,"
        " thinking_ms FROM message WHERE conversation = ? ORDER BY id"));
    query.addBindValue(conversation);
    std::vector<Message> messages;
    if (!exec(query)) return messages;
    while (query.next()) {
        Message m;
        m.conversation = conversation;
        m.id = query.value(0).toLongLong();
        m.parent = query.value(1).toLongLong();
        m.role = query.value(2).toInt() == static_cast<int>(Role::user) ? Role::user : Role::assistant;
        m.state = static_cast<MessageState>(qBound(0, query.value(3).toInt(), static_cast<int>(MessageState::failed)));
        m.text = query.value(4).toString();
        m.error = query.value(5).toString();
        m.model = query.value(6).toString();
        m.created_ms = query.value(7).toLongLong();
        m.prompt_tokens = query.value(8).toInt();
        m.completion_tokens = query.value(9).toInt();
        m.tokens_per_second = query.value(10).toDouble();
        m.thinking_ms = query.value(11).toLongLong();
        messages.push_back(std::move(m));
    }
    return messages;
}

qint64 ChatStore::leaf(qint64 conversation) {
    QSqlQuery query = prepare(QStringLiteral("SELECT leaf FROM conversation WHERE id = ?"));
    query.addBindValue(conversation);
    return exec(query) && query.next() ? query.value(0).toLongLong() : 0;
}

void ChatStore::set_leaf(qint64 conversation, qint64 leaf) {
    QSqlQuery query = prepare(QStringLiteral("UPDATE conversation SET leaf = ? WHERE id = ?"));
    query.addBindValue(leaf);
    query.addBindValue(conversation);
    exec(query);
}

qint64 ChatStore::add_message(const Message& m) {
    QSqlQuery query = prepare(QStringLiteral(
        "INSERT INTO message (conversation, parent, role, state, text, model, created_ms) VALUES (?, ?, ?, ?, ?, ?, ?)"));
    query.addBindValue(m.conversation);
    query.addBindValue(m.parent);
    query.addBindValue(static_cast<int>(m.role));
    query.addBindValue(static_cast<int>(m.state));
    query.addBindValue(not_null(m.text));
    query.addBindValue(not_null(m.model));
    query.addBindValue(m.created_ms ? m.created_ms : now_ms());
    return exec(query) ? query.lastInsertId().toLongLong() : 0;
}

void ChatStore::update_message(const Message& m) {
    QSqlQuery query = prepare(QStringLiteral(
        "UPDATE message SET text = ?, state = ?, error = ?, model = ?, prompt_tokens = ?, completion_tokens = ?,"
        " tokens_per_second = ?, thinking_ms = ? WHERE id = ?"));
    query.addBindValue(not_null(m.text));
    query.addBindValue(static_cast<int>(m.state));
    query.addBindValue(not_null(m.error));
    query.addBindValue(not_null(m.model));
    query.addBindValue(m.prompt_tokens);
    query.addBindValue(m.completion_tokens);
    query.addBindValue(m.tokens_per_second);
    query.addBindValue(m.thinking_ms);
    query.addBindValue(m.id);
    exec(query);
}

}  // namespace headroom::ui
