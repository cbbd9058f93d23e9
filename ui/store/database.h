#pragma once

#include <QCoreApplication>
#include <QSqlDatabase>
#include <QSqlError>
#include <QString>

#include <filesystem>

namespace headroom::ui {

// The SQLite file of the conversations: opening, migration, and what happens when the file cannot be used. Used from one thread.
class Database {
    Q_DECLARE_TR_FUNCTIONS(Database)

public:
    // folder: where chats.sqlite lies; created if it is not there.
    explicit Database(std::filesystem::path folder);
    ~Database();
    Database(const Database&) = delete;
    Database& operator=(const Database&) = delete;

    // Opens or creates the file. Returns an empty text, or a notice for the user:
    // - a damaged file is renamed to chats.damaged-<time>.sqlite and a new one begun; nothing is deleted;
    // - a file of a newer version, or one that cannot be opened, is left alone, and the conversations live in memory only.
    QString open();
    void close();
    // For damage found while running: sets the file aside and begins a new one. Returns the notice.
    QString replace_damaged();

    [[nodiscard]] QSqlDatabase connection() const { return QSqlDatabase::database(name_, false); }
    [[nodiscard]] std::filesystem::path file() const { return folder_ / "chats.sqlite"; }
    [[nodiscard]] static bool is_damage(const QSqlError& error);

private:
    QSqlError open_file(const QString& file);
    QString set_aside();
    QString use_memory(const QString& reason);

    std::filesystem::path folder_;
    QString name_;  // of the connection
};

}  // namespace headroom::ui
