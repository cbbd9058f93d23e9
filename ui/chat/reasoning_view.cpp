#include "ui/chat/reasoning_view.h"

#include <QVBoxLayout>

#include "ui/markdown/text_view.h"

namespace headroom::ui {

ReasoningView::ReasoningView(const Theme& theme, QWidget* parent)
    : QWidget(parent), theme_(theme), toggle_(new IconButton(theme, QStringLiteral("chevron-right"), tr("Thinking"), this)),
      text_(new TextView(this)) {
    setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Minimum);
    toggle_->setObjectName(QStringLiteral("reasoning_toggle"));
    toggle_->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
    toggle_->setCheckable(true);
    text_->setObjectName(QStringLiteral("reasoning_text"));
    text_->hide();
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(theme.px(4));
    column->addWidget(toggle_, 0, Qt::AlignLeading);
    auto* box = new QHBoxLayout;
    box->setContentsMargins(theme.px(28), 0, 0, theme.px(8));
    box->addWidget(text_);
    column->addLayout(box);
    connect(toggle_, &QToolButton::toggled, this, &ReasoningView::set_unfolded);
}

void ReasoningView::set_reasoning(const QString& text, bool thinking, qint64 milliseconds) {
    const QString time = tr("%1 s").arg(static_cast<double>(milliseconds) / 1000, 0, 'f', 1);
    toggle_->set_text(thinking ? tr("Thinking… %1").arg(time) : tr("Thought for %1").arg(time));
    toggle_->setToolTip(tr("Show or hide what the model thought before it answered"));
    if (reasoning_ == text) return;
    reasoning_ = text;
    if (toggle_->isChecked()) update_text();
}

void ReasoningView::set_unfolded(bool unfolded) {
    toggle_->setChecked(unfolded);
    toggle_->set_icon(unfolded ? QStringLiteral("chevron-down")
                               : isRightToLeft() ? QStringLiteral("chevron-left") : QStringLiteral("chevron-right"));
    if (unfolded) update_text();
    text_->setVisible(unfolded);
}

void ReasoningView::update_text() {
    QTextCursor cursor(text_->document());
    QTextCharFormat format;
    format.setForeground(theme_.color(ColorRole::muted));
    cursor.beginEditBlock();
    if (const QString old = text_->toPlainText(); !old.isEmpty() && reasoning_.startsWith(old)) {
        cursor.movePosition(QTextCursor::End);
        cursor.insertText(reasoning_.sliced(old.size()), format);
    } else {
        cursor.select(QTextCursor::Document);
        cursor.insertText(reasoning_, format);
    }
    cursor.endEditBlock();
    text_->fit_height();
}

}  // namespace headroom::ui
