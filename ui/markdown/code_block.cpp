#include "ui/markdown/code_block.h"

#include <QHBoxLayout>
#include <QScrollBar>
#include <QVBoxLayout>
#include <QWheelEvent>

#include "ui/markdown/code_highlighter.h"
#include "ui/theme/copy_button.h"

namespace headroom::ui {
namespace {

// Longer ones get a scroll bar of their own, 32 lines tall: a text edit lays out only what it shows.
constexpr int kTallestLines = 400;
constexpr int kScrolledLines = 32;
// Laying out one line costs more than linear time in its length.
constexpr qsizetype kLongestLine = 2'000;

QString break_long_lines(const QString& code) {
    QString result;
    result.reserve(code.size());
    qsizetype column = 0;
    for (const QChar c : code) {
        if (c == u'\n') column = 0;
        if (column == kLongestLine) {
            result += u'\n';
            column = 0;
        }
        result += c;
        if (c != u'\n') ++column;
    }
    return result;
}

}  // namespace

CodeBlock::CodeBlock(const Theme& theme, const QString& language, QWidget* parent)
    : QFrame(parent), language_(language), text_(new QPlainTextEdit(this)) {
    setObjectName(QStringLiteral("code_block"));
    setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Fixed);
    setLayoutDirection(Qt::LeftToRight);  // code is written from the left everywhere
    auto* name = new QLabel(language.left(40).toHtmlEscaped(), this);
    name->setTextFormat(Qt::PlainText);
    name->setProperty("muted", true);
    auto* copy = new CopyButton(theme, tr("Copy code"), this);
    copy->setObjectName(QStringLiteral("copy_code"));
    copy->set_source([this] { return code_; });

    text_->setObjectName(QStringLiteral("code_text"));
    text_->setReadOnly(true);
    text_->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
    text_->setTabChangesFocus(true);
    text_->setFocusPolicy(Qt::ClickFocus);
    text_->setUndoRedoEnabled(false);
    text_->setLineWrapMode(QPlainTextEdit::NoWrap);
    text_->setFrameShape(QFrame::NoFrame);
    text_->setFont(theme.code_font());
    text_->setTabStopDistance(4 * QFontMetricsF(theme.code_font()).horizontalAdvance(u' '));
    text_->document()->setDocumentMargin(0);
    text_->setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    text_->viewport()->setAutoFillBackground(false);
    text_->setAccessibleName(language.isEmpty() ? tr("Code") : tr("Code in %1").arg(language));
    text_->viewport()->installEventFilter(this);
    new CodeHighlighter(text_->document(), theme, language);

    auto* head = new QHBoxLayout;
    head->setContentsMargins(theme.px(16), theme.px(4), theme.px(4), 0);
    head->addWidget(name, 1);
    head->addWidget(copy);
    auto* body = new QHBoxLayout;
    body->setContentsMargins(theme.px(16), 0, theme.px(8), theme.px(8));
    body->addWidget(text_);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(theme.px(4));
    column->addLayout(head);
    column->addLayout(body);
}

void CodeBlock::set_code(const QString& code) {
    if (code == code_) return;
    code_ = code;
    const QString shown = break_long_lines(code);
    if (!shown_.isEmpty() && shown.startsWith(shown_)) {
        QTextCursor cursor(text_->document());
        cursor.movePosition(QTextCursor::End);
        cursor.insertText(shown.sliced(shown_.size()));
    } else {
        text_->setPlainText(shown);
    }
    shown_ = shown;
    fit_height();
}

void CodeBlock::fit_height() {
    const int lines = text_->blockCount();
    const bool scrolls = lines > kTallestLines;
    text_->setVerticalScrollBarPolicy(scrolls ? Qt::ScrollBarAsNeeded : Qt::ScrollBarAlwaysOff);
    const int line_height = QFontMetrics(text_->font()).lineSpacing();
    const int bar = text_->horizontalScrollBar()->isVisibleTo(text_) || text_->horizontalScrollBar()->maximum() > 0
                        ? text_->horizontalScrollBar()->sizeHint().height() : 0;
    const int height = (scrolls ? kScrolledLines : std::max(1, lines)) * line_height + bar + 4;
    if (text_->height() != height) text_->setFixedHeight(height);
}

void CodeBlock::showEvent(QShowEvent* event) {
    QFrame::showEvent(event);
    fit_height();
}

bool CodeBlock::eventFilter(QObject* object, QEvent* event) {
    if (event->type() == QEvent::Resize) {
        QMetaObject::invokeMethod(this, &CodeBlock::fit_height, Qt::QueuedConnection);  // the scroll bar's range follows the resize
    } else if (event->type() == QEvent::Wheel && text_->blockCount() <= kTallestLines) {
        const QPoint delta = static_cast<QWheelEvent*>(event)->angleDelta();
        if (qAbs(delta.y()) >= qAbs(delta.x())) {  // up and down belong to the list around it
            event->ignore();
            return true;
        }
    }
    return QFrame::eventFilter(object, event);
}

}  // namespace headroom::ui
