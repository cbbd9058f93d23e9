#include "ui/chat/user_message_view.h"

#include <QHBoxLayout>
#include <QKeyEvent>
#include <QPushButton>
#include <QVBoxLayout>

#include "ui/chat/branch_switch.h"
#include "ui/markdown/text_view.h"
#include "ui/theme/copy_button.h"

namespace headroom::ui {

UserMessageView::UserMessageView(const Theme& theme, QWidget* parent)
    : MessageView(parent), theme_(theme), bubble_(new QFrame(this)), shown_(new TextView(bubble_)), editor_(new QWidget(this)),
      input_(new QPlainTextEdit(editor_)), actions_(new QWidget(this)), branches_(new BranchSwitch(theme, actions_)),
      edit_(new IconButton(theme, QStringLiteral("edit"), tr("Edit and send again"), actions_)) {
    setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Minimum);
    bubble_->setObjectName(QStringLiteral("user_bubble"));
    shown_->setObjectName(QStringLiteral("user_text"));
    shown_->setAccessibleName(tr("You wrote"));
    auto* inside = new QVBoxLayout(bubble_);
    inside->setContentsMargins(theme.px(16), theme.px(10), theme.px(16), theme.px(10));
    inside->addWidget(shown_);

    input_->setObjectName(QStringLiteral("edit_input"));
    input_->setAccessibleName(tr("Your message"));
    input_->setTabChangesFocus(true);
    input_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    input_->installEventFilter(this);
    auto* send = new QPushButton(tr("Send"), editor_);
    send->setObjectName(QStringLiteral("edit_send"));
    send->setProperty("primary", true);
    auto* cancel = new QPushButton(tr("Cancel"), editor_);
    cancel->setObjectName(QStringLiteral("edit_cancel"));
    auto* buttons = new QHBoxLayout;
    buttons->setSpacing(theme.px(8));
    buttons->addStretch(1);
    buttons->addWidget(cancel);
    buttons->addWidget(send);
    auto* column_of_editor = new QVBoxLayout(editor_);
    column_of_editor->setContentsMargins(0, 0, 0, 0);
    column_of_editor->setSpacing(theme.px(8));
    column_of_editor->addWidget(input_);
    column_of_editor->addLayout(buttons);
    editor_->hide();

    edit_->setObjectName(QStringLiteral("edit_message"));
    auto* copy = new CopyButton(theme, tr("Copy message"), actions_);
    copy->setObjectName(QStringLiteral("copy_message"));
    copy->set_source([this] { return text_; });
    auto* row = new QHBoxLayout(actions_);
    row->setContentsMargins(0, 0, 0, 0);
    row->setSpacing(0);
    row->addStretch(1);
    row->addWidget(branches_);
    row->addWidget(edit_);
    row->addWidget(copy);

    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, theme.px(8), 0, theme.px(8));
    column->setSpacing(theme.px(4));
    column->addWidget(bubble_, 0, Qt::AlignTrailing);
    column->addWidget(editor_);
    column->addWidget(actions_);

    connect(branches_, &BranchSwitch::selected, this, &MessageView::branch_selected);
    connect(edit_, &QToolButton::clicked, this, &UserMessageView::begin_edit);
    connect(cancel, &QPushButton::clicked, this, &UserMessageView::end_edit);
    connect(send, &QPushButton::clicked, this, &UserMessageView::send_edit);
}

void UserMessageView::show_message(const Message& message, const ChatService::Progress&, const std::vector<qint64>& siblings, bool busy) {
    if (text_ != message.text) {
        text_ = message.text;
        shown_->setPlainText(text_);
        fit_bubble();
    }
    branches_->set_branches(siblings, id_, !busy);
    edit_->setEnabled(!busy);
}

void UserMessageView::fit_bubble() {
    const int padding = theme_.px(32);
    const int limit = std::max(theme_.px(120), width() * 85 / 100);
    bubble_->setFixedWidth(shown_->natural_width(limit - padding) + padding);
    shown_->fit_height();
}

void UserMessageView::resizeEvent(QResizeEvent* event) {
    MessageView::resizeEvent(event);
    if (event->oldSize().width() != event->size().width()) fit_bubble();
}

void UserMessageView::begin_edit() {
    input_->setPlainText(text_);
    const int lines = std::clamp(shown_->height() / std::max(1, fontMetrics().lineSpacing()) + 1, 2, 12);
    input_->setFixedHeight(lines * fontMetrics().lineSpacing() + theme_.px(24));
    bubble_->hide();
    actions_->hide();
    editor_->show();
    input_->moveCursor(QTextCursor::End);
    input_->setFocus();
}

void UserMessageView::end_edit() {
    editor_->hide();
    bubble_->show();
    actions_->show();
}

void UserMessageView::send_edit() {
    const QString text = input_->toPlainText();
    end_edit();
    if (!text.trimmed().isEmpty()) emit edited(id_, text);
}

bool UserMessageView::eventFilter(QObject* object, QEvent* event) {
    if (object == input_ && event->type() == QEvent::ShortcutOverride && static_cast<QKeyEvent*>(event)->key() == Qt::Key_Escape) {
        event->accept();  // ends the editing, not what the window's own Escape would end
        return true;
    }
    if (object == input_ && event->type() == QEvent::KeyPress) {
        const auto* key = static_cast<QKeyEvent*>(event);
        const bool enter = key->key() == Qt::Key_Return || key->key() == Qt::Key_Enter;
        if (enter && !(key->modifiers() & Qt::ShiftModifier)) {
            send_edit();
            return true;
        }
        if (key->key() == Qt::Key_Escape) {
            end_edit();
            edit_->setFocus();
            return true;
        }
    }
    return MessageView::eventFilter(object, event);
}

}  // namespace headroom::ui
