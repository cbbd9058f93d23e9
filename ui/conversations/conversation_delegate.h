#pragma once

#include <QStyledItemDelegate>

#include "ui/theme/theme.h"

namespace headroom::ui {

// Paints the rows of ConversationModel: all of one height, so that a thousand scroll as quickly as ten.
class ConversationDelegate : public QStyledItemDelegate {
    Q_OBJECT

public:
    explicit ConversationDelegate(const Theme& theme, QObject* parent = nullptr) : QStyledItemDelegate(parent), theme_(theme) {}

    void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override;
    [[nodiscard]] QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override;

private:
    const Theme& theme_;
};

}  // namespace headroom::ui
