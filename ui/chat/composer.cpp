#include "ui/chat/composer.h"

#include <QAbstractTextDocumentLayout>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QMimeData>
#include <QStyle>
#include <QTextBlock>

#include <algorithm>

#include "ui/theme/icon_button.h"

namespace headroom::ui {
namespace {

constexpr int kTallestLines = 8;

// Plain text only, and no files: those dropped here are for the window (a model to open).
class Input : public QPlainTextEdit {
public:
    using QPlainTextEdit::QPlainTextEdit;

protected:
    bool canInsertFromMimeData(const QMimeData* source) const override { return source->hasText() && !source->hasUrls(); }
    void insertFromMimeData(const QMimeData* source) override { insertPlainText(source->text()); }
};

}  // namespace

Composer::Composer(const Theme& theme, QWidget* parent)
    : QWidget(parent), theme_(theme), frame_(new QFrame(this)), input_(new Input(frame_)),
      button_(new IconButton(theme, QStringLiteral("send"), tr("Send"), frame_)) {
    frame_->setObjectName(QStringLiteral("input_frame"));
    input_->setObjectName(QStringLiteral("message_input"));
    input_->setAccessibleName(tr("Message"));
    input_->setPlaceholderText(tr("Message…"));
    input_->setTabChangesFocus(true);
    input_->setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    input_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    input_->document()->setDocumentMargin(0);
    input_->installEventFilter(this);
    button_->setObjectName(QStringLiteral("send_button"));
    auto* row = new QHBoxLayout(frame_);
    row->setContentsMargins(theme.px(16), theme.px(8), theme.px(8), theme.px(8));
    row->setSpacing(theme.px(8));
    row->addWidget(input_, 1, Qt::AlignVCenter);
    row->addWidget(button_, 0, Qt::AlignBottom);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->addWidget(frame_);
    setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Fixed);

    connect(input_, &QPlainTextEdit::textChanged, this, [this] {
        fit_height();
        update_button();
    });
    connect(button_, &QToolButton::clicked, this, &Composer::press_button);
    connect(&theme_, &Theme::changed, this, [this] {
        fit_height();
        update_button();
    });
    fit_height();
    update_button();
}

void Composer::set_answering(bool answering) {
    answering_ = answering;
    update_button();
}

void Composer::set_text(const QString& text) {
    input_->setPlainText(text);
    input_->moveCursor(QTextCursor::End);
    input_->setFocus();
}

void Composer::update_button() {
    button_->set_icon(answering_ ? QStringLiteral("stop") : QStringLiteral("send"), ColorRole::on_accent);
    button_->set_text(answering_ ? tr("Stop") : tr("Send"), answering_ ? tr("Esc") : tr("Enter"));
    button_->setEnabled(answering_ || !input_->toPlainText().trimmed().isEmpty());
}

void Composer::press_button() {
    if (answering_) {
        emit stop();
        return;
    }
    const QString text = input_->toPlainText();
    if (text.trimmed().isEmpty()) return;
    input_->clear();
    emit send(text);
}

void Composer::fit_height() {
    const int line = QFontMetrics(input_->font()).lineSpacing();
    int lines = 0;
    for (QTextBlock block = input_->document()->begin(); block.isValid() && lines <= kTallestLines; block = block.next()) {
        input_->document()->documentLayout()->blockBoundingRect(block);  // lays it out
        lines += std::max(1, block.layout()->lineCount());
    }
    input_->setVerticalScrollBarPolicy(lines > kTallestLines ? Qt::ScrollBarAsNeeded : Qt::ScrollBarAlwaysOff);
    input_->setFixedHeight(std::clamp(lines, 1, kTallestLines) * line + 2);
}

void Composer::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    fit_height();
}

bool Composer::eventFilter(QObject* object, QEvent* event) {
    if (object == input_) {
        if (event->type() == QEvent::FocusIn || event->type() == QEvent::FocusOut) {
            frame_->setProperty("active", event->type() == QEvent::FocusIn);
            frame_->style()->unpolish(frame_);
            frame_->style()->polish(frame_);
        } else if (event->type() == QEvent::KeyPress && key_pressed(*static_cast<QKeyEvent*>(event))) {
            return true;
        }
    }
    return QWidget::eventFilter(object, event);
}

bool Composer::key_pressed(const QKeyEvent& key) {
    const bool enter = key.key() == Qt::Key_Return || key.key() == Qt::Key_Enter;
    if (enter && !(key.modifiers() & Qt::ShiftModifier)) {
        if (!answering_) press_button();  // Enter never stops an answer by accident
        return true;
    }
    if (key.key() == Qt::Key_Up && input_->document()->isEmpty()) {
        emit edit_last();
        return true;
    }
    return false;
}

}  // namespace headroom::ui
