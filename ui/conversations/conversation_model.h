#pragma once

#include <QAbstractListModel>
#include <QDate>

#include <vector>

#include "ui/store/records.h"

namespace headroom::ui {

// Conversations under headings of time ("Today", "Yesterday", …); headings are rows that cannot be chosen.
class ConversationModel : public QAbstractListModel {
    Q_OBJECT

public:
    enum Roles { kIdRole = Qt::UserRole, kHeadingRole };

    using QAbstractListModel::QAbstractListModel;

    // newest first. today: for the headings.
    void set_conversations(const std::vector<ConversationInfo>& infos, QDate today = QDate::currentDate());
    [[nodiscard]] QModelIndex index_of(qint64 conversation) const;
    [[nodiscard]] qint64 id_at(const QModelIndex& index) const;

    [[nodiscard]] int rowCount(const QModelIndex& parent = {}) const override;
    [[nodiscard]] QVariant data(const QModelIndex& index, int role) const override;
    [[nodiscard]] Qt::ItemFlags flags(const QModelIndex& index) const override;
    bool setData(const QModelIndex& index, const QVariant& value, int role) override;

signals:
    void renamed(qint64 conversation, const QString& title);  // edited in place

private:
    struct Row {
        qint64 id;      // 0: a heading
        QString text;
        bool operator==(const Row&) const = default;
    };
    std::vector<Row> rows_;
};

}  // namespace headroom::ui
