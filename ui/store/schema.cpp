#include "ui/store/schema.h"

#include <QSqlQuery>
#include <QStringList>

#include <array>

namespace headroom::ui {
namespace {

// One entry per version, each a list of statements that lead there from the version before. Never changed once released: a new
// version is a new entry.
const std::array<QStringList, 1> kMigrations = {
    QStringList{
        QStringLiteral("CREATE TABLE conversation ("
                       " id INTEGER PRIMARY KEY, title TEXT NOT NULL, created_ms INTEGER NOT NULL, updated_ms INTEGER NOT NULL,"
                       " leaf INTEGER NOT NULL DEFAULT 0, deleted INTEGER NOT NULL DEFAULT 0,"
                       " system_prompt TEXT NOT NULL DEFAULT '', sampling TEXT NOT NULL DEFAULT '{}')"),
        QStringLiteral("CREATE INDEX conversation_by_time ON conversation (deleted, updated_ms)"),
        QStringLiteral("CREATE TABLE message ("
                       " id INTEGER PRIMARY KEY AUTOINCREMENT,"
                       " conversation INTEGER NOT NULL REFERENCES conversation (id) ON DELETE CASCADE,"
                       " parent INTEGER NOT NULL, role INTEGER NOT NULL, state INTEGER NOT NULL,"
                       " text TEXT NOT NULL, error TEXT NOT NULL DEFAULT '', model TEXT NOT NULL DEFAULT '',"
                       " created_ms INTEGER NOT NULL, prompt_tokens INTEGER NOT NULL DEFAULT 0,"
                       " completion_tokens INTEGER NOT NULL DEFAULT 0, tokens_per_second REAL NOT NULL DEFAULT 0,"
                       " thinking_ms INTEGER NOT NULL DEFAULT 0)"),
        QStringLiteral("CREATE INDEX message_by_conversation ON message (conversation)"),
        // The words of messages for searching, kept by the triggers below.
        QStringLiteral("CREATE VIRTUAL TABLE message_words USING fts5 (text, content='message', content_rowid='id',"
                       " tokenize='unicode61 remove_diacritics 2')"),
        QStringLiteral("CREATE TRIGGER message_added AFTER INSERT ON message BEGIN"
                       " INSERT INTO message_words (rowid, text) VALUES (new.id, new.text); END"),
        QStringLiteral("CREATE TRIGGER message_removed AFTER DELETE ON message BEGIN"
                       " INSERT INTO message_words (message_words, rowid, text) VALUES ('delete', old.id, old.text); END"),
        QStringLiteral("CREATE TRIGGER message_changed AFTER UPDATE OF text ON message BEGIN"
                       " INSERT INTO message_words (message_words, rowid, text) VALUES ('delete', old.id, old.text);"
                       " INSERT INTO message_words (rowid, text) VALUES (new.id, new.text); END"),
    },
};

}  // namespace

int schema_version() { return static_cast<int>(kMigrations.size()); }

QSqlError migrate_schema(QSqlDatabase& database, int from_version) {
    if (from_version >= schema_version()) return {};
    if (!database.transaction()) return database.lastError();
    QSqlQuery query(database);
    for (int version = from_version; version < schema_version(); ++version) {
        for (const QString& statement : kMigrations[static_cast<std::size_t>(version)]) {
            if (!query.exec(statement)) {
                const QSqlError error = query.lastError();
                database.rollback();
                return error;
            }
        }
    }
    if (!query.exec(QStringLiteral("PRAGMA user_version = %1").arg(schema_version())) || !database.commit()) {
        const QSqlError error = query.lastError().isValid() ? query.lastError() : database.lastError();
        database.rollback();
        return error;
    }
    return {};
}

}  // namespace headroom::ui
