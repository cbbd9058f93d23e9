#include "ui/conversations/conversation_model.h"

#include <QDateTime>
#include <QLocale>

#include <algorithm>

namespace headroom::ui {
namespace {

QString heading_of(QDate day, QDate today) {
    const qint64 days = day.daysTo(today);
    if (days <= 0) return ConversationModel::tr("Today");
    if (days == 1) return ConversationModel::tr("Yesterday");
    if (days < 7) return ConversationModel::tr("Last 7 days");
    if (days < 30) return ConversationModel::tr("Last 30 days");
    return QLocale().toString(day, QStringLiteral("MMMM yyyy"));
}

}  // namespace

void ConversationModel::set_conversations(const std::vector<ConversationInfo>& infos, QDate today) {
    std::vector<Row> rows;
    rows.reserve(infos.size() + 16);
    QString heading;
    for (const ConversationInfo& info : infos) {
        const QString now = heading_of(QDateTime::fromMSecsSinceEpoch(info.updated_ms).date(), today);
        if (now != heading) rows.push_back({0, heading = now});
        rows.push_back({info.id, info.title});
    }
    if (rows == rows_) return;
    beginResetModel();
    rows_ = std::move(rows);
    endResetModel();
}

QModelIndex ConversationModel::index_of(qint64 conversation) const {
    const auto found = std::ranges::find(rows_, conversation, &Row::id);
    return conversation == 0 || found == rows_.end() ? QModelIndex() : index(static_cast<int>(found - rows_.begin()));
}

qint64 ConversationModel::id_at(const QModelIndex& index) const {
    return index.isValid() ? rows_[static_cast<std::size_t>(index.row())].id : 0;
}

int ConversationModel::rowCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : static_cast<int>(rows_.size()); }

QVariant ConversationModel::data(const QModelIndex& index, int role) const {
    if (!index.isValid()) return {};
    const Row& row = rows_[static_cast<std::size_t>(index.row())];
    switch (role) {
        case Qt::DisplayRole:
        case Qt::EditRole:
        case Qt::AccessibleTextRole:
        case Qt::ToolTipRole: return row.id == 0 && role == Qt::ToolTipRole ? QVariant() : row.text;
        case kIdRole: return row.id;
        case kHeadingRole: return row.id == 0;
        default: return {};
    }
}

Qt::ItemFlags ConversationModel::flags(const QModelIndex& index) const {
    if (id_at(index) == 0) return Qt::ItemIsEnabled;
    return Qt::ItemIsEnabled | Qt::ItemIsSelectable | Qt::ItemIsEditable;
}

bool ConversationModel::setData(const QModelIndex& index, const QVariant& value, int role) {
    const qint64 id = id_at(index);
    const QString title = value.toString().simplified();
    if (role != Qt::EditRole || id == 0 || title.isEmpty()) return false;
    emit renamed(id, title);
    return true;
}

}  // namespace headroom::ui
