#include "ui/main_window/notice_bar.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>

#include "ui/theme/icon_button.h"

namespace headroom::ui {

NoticeBar::NoticeBar(const Theme& theme, QWidget* parent) : QWidget(parent), theme_(theme), column_(new QVBoxLayout(this)) {
    column_->setContentsMargins(theme.px(8), theme.px(8), theme.px(8), 0);
    column_->setSpacing(theme.px(8));
    hide();
}

void NoticeBar::show_notice(const QString& text, const QString& key, const QString& action, std::function<void()> act) {
    for (QFrame* old : findChildren<QFrame*>(QStringLiteral("notice"))) {
        if (!key.isEmpty() && old->property("key").toString() == key) delete old;
    }
    auto* line = new QFrame(this);
    line->setObjectName(QStringLiteral("notice"));
    line->setProperty("key", key);
    auto* label = new QLabel(text, line);
    label->setObjectName(QStringLiteral("notice_text"));
    label->setTextFormat(Qt::PlainText);
    label->setWordWrap(true);
    label->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
    const auto close = [this, line] {
        line->setParent(nullptr);
        line->deleteLater();
        setVisible(findChild<QFrame*>(QStringLiteral("notice")) != nullptr);
    };
    auto* row = new QHBoxLayout(line);
    row->setContentsMargins(theme_.px(16), theme_.px(4), theme_.px(8), theme_.px(4));
    row->setSpacing(theme_.px(8));
    row->addWidget(label, 1);
    if (!action.isEmpty()) {
        auto* button = new QPushButton(action, line);
        button->setObjectName(QStringLiteral("notice_action"));
        button->setProperty("link", true);
        connect(button, &QPushButton::clicked, this, [close, act = std::move(act)] {
            act();
            close();
        });
        row->addWidget(button);
    }
    auto* close_button = new IconButton(theme_, QStringLiteral("close"), tr("Close"), line);
    close_button->setObjectName(QStringLiteral("notice_close"));
    connect(close_button, &QToolButton::clicked, this, close);
    row->addWidget(close_button);
    column_->addWidget(line);
    show();
}

}  // namespace headroom::ui
