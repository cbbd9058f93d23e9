#include "ui/conversations/conversation_delegate.h"

#include <QApplication>
#include <QPainter>

#include <algorithm>

#include "ui/conversations/conversation_model.h"

namespace headroom::ui {

void ConversationDelegate::paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const {
    const bool heading = index.data(ConversationModel::kHeadingRole).toBool();
    const QRect text_rect = option.rect.adjusted(theme_.px(12), heading ? theme_.px(8) : 0, -theme_.px(12), 0);
    QFont font = QApplication::font();
    painter->save();
    painter->setRenderHint(QPainter::Antialiasing);
    if (!heading) {
        const bool selected = option.state & QStyle::State_Selected;
        const bool hovered = option.state & QStyle::State_MouseOver;
        const QRectF back = QRectF(option.rect).adjusted(0.5, 1.5, -0.5, -1.5);
        painter->setPen(Qt::NoPen);
        if (selected || hovered) {
            painter->setBrush(theme_.color(selected ? ColorRole::accent_soft : ColorRole::hover));
            painter->drawRoundedRect(back, theme_.px(8), theme_.px(8));
        }
        if (option.state & QStyle::State_HasFocus && option.state & QStyle::State_KeyboardFocusChange) {
            painter->setBrush(Qt::NoBrush);
            painter->setPen(QPen(theme_.color(ColorRole::accent), 2));
            painter->drawRoundedRect(back.adjusted(1, 1, -1, -1), theme_.px(8), theme_.px(8));
        }
    } else {
        font.setPointSizeF(font.pointSizeF() * 0.9);
        font.setWeight(QFont::DemiBold);
    }
    painter->setFont(font);
    painter->setPen(theme_.color(heading ? ColorRole::muted : ColorRole::text));
    const QString text = index.data(Qt::DisplayRole).toString();
    const QString shown = QFontMetrics(font).elidedText(text, Qt::ElideRight, text_rect.width());
    painter->drawText(text_rect, static_cast<int>(Qt::AlignVCenter | QStyle::visualAlignment(option.direction, Qt::AlignLeft)), shown);
    painter->restore();
}

QSize ConversationDelegate::sizeHint(const QStyleOptionViewItem&, const QModelIndex&) const {
    return {theme_.px(120), std::max(theme_.px(36), QFontMetrics(QApplication::font()).height() + theme_.px(12))};
}

}  // namespace headroom::ui
