#pragma once

#include <QSqlDatabase>
#include <QSqlError>

namespace headroom::ui {

// The version that this program writes.
int schema_version();

// Brings a database of any older version (0: empty) to schema_version(), in one transaction. The error is invalid if it worked.
QSqlError migrate_schema(QSqlDatabase& database, int from_version);

}  // namespace headroom::ui
