#include "ui/markdown/text_view.h"

#include <QAbstractTextDocumentLayout>
#include <QContextMenuEvent>
#include <QDesktopServices>
#include <QHelpEvent>
#include <QMenu>
#include <QPainter>
#include <QScrollBar>
#include <QTextBlock>
#include <QToolTip>
#include <QWheelEvent>

#include <cmath>
#include <memory>

#include "ui/markdown/document_writer.h"

namespace headroom::ui {

TextView::TextView(QWidget* parent) : QTextBrowser(parent) {
    setFrameShape(QFrame::NoFrame);
    setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Fixed);
    setOpenLinks(false);
    setUndoRedoEnabled(false);
    setTabChangesFocus(true);
    setFocusPolicy(Qt::ClickFocus);
    setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard | Qt::LinksAccessibleByMouse |
                            Qt::LinksAccessibleByKeyboard);
    document()->setDocumentMargin(0);
    viewport()->setAutoFillBackground(false);
    setViewportMargins(0, 0, 0, 0);
    connect(this, &QTextBrowser::anchorClicked, this, [this](const QUrl& url) {
        emit link_clicked(url);
        QDesktopServices::openUrl(url);
    });
}

int TextView::natural_width(int limit) const {
    const std::unique_ptr<QTextDocument> copy(document()->clone());
    copy->setDefaultFont(font());
    copy->setTextWidth(limit);
    return std::min(limit, static_cast<int>(std::ceil(copy->idealWidth())) + 1);
}

void TextView::fit_height() {
    if (!has_width_) return;
    document()->setTextWidth(viewport()->width());
    const int height = static_cast<int>(std::ceil(document()->size().height()));
    if (height == height_) return;
    height_ = height;
    setFixedHeight(height);
}

QSize TextView::sizeHint() const { return {400, height_}; }

// The answer of a model must not make this program read files or ask the network.
QVariant TextView::loadResource(int, const QUrl&) { return {}; }

void TextView::resizeEvent(QResizeEvent* event) {
    QTextBrowser::resizeEvent(event);
    if (has_width_ && event->oldSize().width() == event->size().width()) return;
    has_width_ = true;
    fit_height();
}

void TextView::paintEvent(QPaintEvent* event) {
    QTextBrowser::paintEvent(event);
    // The bars beside quotes.
    QPainter painter(viewport());
    const QColor color = palette().color(QPalette::Mid);
    for (QTextBlock block = document()->begin(); block.isValid(); block = block.next()) {
        const int depth = block.blockFormat().intProperty(markdown::kQuoteProperty);
        if (depth == 0) continue;
        QRectF rect = document()->documentLayout()->blockBoundingRect(block);
        if (block.previous().isValid() && block.previous().blockFormat().intProperty(markdown::kQuoteProperty) > 0) {
            rect.setTop(rect.top() - block.blockFormat().topMargin());
        }
        const bool mirrored = block.textDirection() == Qt::RightToLeft;
        const double margin = mirrored ? block.blockFormat().rightMargin() : block.blockFormat().leftMargin();
        const double step = margin / std::max(1, depth);
        for (int i = 0; i < depth; ++i) {
            const double from_start = std::min(step, 16.0) * i;
            const double x = mirrored ? viewport()->width() - from_start - 3 : from_start;
            painter.fillRect(QRectF(x, rect.top(), 3, rect.height()), color);
        }
    }
}

void TextView::wheelEvent(QWheelEvent* event) { event->ignore(); }  // the list around it scrolls

bool TextView::event(QEvent* event) {
    if (event->type() == QEvent::ToolTip) {
        const auto* help = static_cast<QHelpEvent*>(event);
        const QString link = anchorAt(viewport()->mapFromGlobal(help->globalPos()));
        if (link.isEmpty()) {
            QToolTip::hideText();
        } else {
            QToolTip::showText(help->globalPos(), link.toHtmlEscaped(), this);
        }
        return true;
    }
    return QTextBrowser::event(event);
}

void TextView::contextMenuEvent(QContextMenuEvent* event) {
    const std::unique_ptr<QMenu> menu(createStandardContextMenu(event->pos()));
    menu->exec(event->globalPos());
}

}  // namespace headroom::ui
