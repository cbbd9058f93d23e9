#include "ui/store/database.h"

#include <QDateTime>
#include <QSqlQuery>
#include <QUuid>

#include "core/base/bytes.h"
#include "core/base/paths.h"
#include "ui/store/schema.h"

namespace headroom::ui {
namespace {

// SQLite's own codes, in the low byte of an extended code.
constexpr int kSqliteCorrupt = 11;
constexpr int kSqliteNotADatabase = 26;

// Checking the whole file takes about 1 ms for each MiB; larger ones are checked as far as they are read.
constexpr std::uint64_t kCheckedWhole = 64 * MiB;

QString to_qstring(const std::filesystem::path& path) { return QString::fromStdString(to_utf8(path)); }

QSqlError damage(const QString& text) {
    return {QString(), text, QSqlError::ConnectionError, QString::number(kSqliteCorrupt)};
}

}  // namespace

Database::Database(std::filesystem::path folder) : folder_(std::move(folder)), name_(QUuid::createUuid().toString()) {}

Database::~Database() { close(); }

bool Database::is_damage(const QSqlError& error) {
    bool number = false;
    const int code = error.nativeErrorCode().toInt(&number) & 0xff;
    return number && (code == kSqliteCorrupt || code == kSqliteNotADatabase);
}

QString Database::open() {
    std::error_code code;
    std::filesystem::create_directories(folder_, code);
    if (code) return use_memory(QString::fromStdString(code.message()));
    QSqlError error = open_file(to_qstring(file()));
    if (!error.isValid()) return {};
    if (is_damage(error)) return replace_damaged();
    close();
    return use_memory(error.text());
}

void Database::close() {
    if (!QSqlDatabase::contains(name_)) return;
    connection().close();
    QSqlDatabase::removeDatabase(name_);
}

QString Database::replace_damaged() {
    close();
    const QString aside = set_aside();
    if (aside.isEmpty()) return use_memory(tr("the file is damaged and could not be renamed"));
    if (const QSqlError error = open_file(to_qstring(file())); error.isValid()) return use_memory(error.text());
    return tr("The file with your conversations was damaged. It was kept as %1, and a new one was begun.").arg(aside);
}

QSqlError Database::open_file(const QString& path) {
    QSqlDatabase database = QSqlDatabase::addDatabase(QStringLiteral("QSQLITE"), name_);
    database.setDatabaseName(path);
    database.setConnectOptions(QStringLiteral("QSQLITE_BUSY_TIMEOUT=1000"));
    if (!database.open()) return database.lastError();
    QSqlQuery query(database);
    // WAL with synchronous=NORMAL: a commit is one write without waiting for the disk; a killed program loses nothing, a power cut
    // at most the last second.
    for (const char* pragma : {"PRAGMA journal_mode = WAL", "PRAGMA synchronous = NORMAL", "PRAGMA foreign_keys = ON"}) {
        if (!query.exec(QLatin1String(pragma))) return query.lastError();
    }
    if (!query.exec(QStringLiteral("PRAGMA user_version")) || !query.next()) return query.lastError();
    const int version = query.value(0).toInt();
    query.finish();
    if (version > schema_version()) {
        return {QString(), tr("it was written by a newer version of Headroom"), QSqlError::ConnectionError};
    }
    std::error_code code;
    if (const auto size = std::filesystem::file_size(from_utf8(path.toStdString()), code); !code && size <= kCheckedWhole) {
        if (!query.exec(QStringLiteral("PRAGMA quick_check(1)")) || !query.next()) return query.lastError();
        if (query.value(0).toString() != QLatin1String("ok")) return damage(query.value(0).toString());
        query.finish();
    }
    return migrate_schema(database, version);
}

QString Database::set_aside() {
    const QString time = QDateTime::currentDateTime().toString(QStringLiteral("yyyyMMdd-HHmmss"));
    for (int attempt = 0; attempt < 100; ++attempt) {
        const QString suffix = attempt == 0 ? QString() : QStringLiteral("-%1").arg(attempt);
        const QString name = QStringLiteral("chats.damaged-%1%2.sqlite").arg(time, suffix);
        const auto target = folder_ / from_utf8(name.toStdString());
        std::error_code code;
        if (std::filesystem::exists(target, code)) continue;
        std::filesystem::rename(file(), target, code);
        if (code) return {};
        for (const char* part : {"-wal", "-shm"}) {  // they belong to the damaged file: with them it can be repaired by hand
            auto from = file();
            auto to = target;
            std::filesystem::rename(from += part, to += part, code);
        }
        return name;
    }
    return {};
}

QString Database::use_memory(const QString& reason) {
    close();
    const QSqlError error = open_file(QStringLiteral(":memory:"));
    return tr("%1 cannot be used: %2. Conversations of this session are not kept.")
        .arg(to_qstring(file()), error.isValid() ? error.text() : reason);
}

}  // namespace headroom::ui
