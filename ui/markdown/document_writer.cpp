#include "ui/markdown/document_writer.h"

#include <QApplication>
#include <QTextDocument>
#include <QTextTable>

#include <algorithm>

#include "ui/markdown/inline.h"

namespace headroom::ui::markdown {
namespace {

constexpr int kIndent = 24;  // per depth of lists and quotes, scaled
constexpr int kParagraphGap = 12;
constexpr int kItemGap = 4;

// The vertical space above a block.
int gap(const Block& block, const Block& previous) {
    if (block.kind == Block::Kind::heading) return 20;
    if (block.indent > 0 && previous.indent > 0 && previous.quote == block.quote) return kItemGap;
    return kParagraphGap;
}

}  // namespace

void DocumentWriter::write(QTextCursor& cursor, const Block& block, const Block* previous) const {
    QTextBlockFormat format;
    format.setLineHeight(125, QTextBlockFormat::ProportionalHeight);
    const int indent = theme_.px(kIndent);
    const int quote_margin = theme_.px(16) * block.quote;
    const bool mirrored = block.text.isEmpty() ? QGuiApplication::isRightToLeft() : block.text.isRightToLeft();
    format.setLayoutDirection(mirrored ? Qt::RightToLeft : Qt::LeftToRight);
    if (mirrored) {
        format.setRightMargin(quote_margin + indent * block.indent);
    } else {
        format.setLeftMargin(quote_margin + indent * block.indent);
    }
    if (block.quote > 0) format.setProperty(kQuoteProperty, block.quote);
    if (previous) format.setTopMargin(theme_.px(gap(block, *previous)));

    QTextCharFormat text;
    text.setForeground(theme_.color(block.quote > 0 ? ColorRole::muted : ColorRole::text));
    if (block.kind == Block::Kind::heading) {
        static constexpr double sizes[] = {1.5, 1.3, 1.15, 1.0, 1.0, 1.0};
        text.setFontPointSize(QApplication::font().pointSizeF() * sizes[std::clamp(block.level, 1, 6) - 1]);
        text.setFontWeight(QFont::DemiBold);
        format.setHeadingLevel(block.level);
    }
    if (block.kind == Block::Kind::rule) {
        format.setProperty(QTextFormat::BlockTrailingHorizontalRulerWidth, QTextLength(QTextLength::PercentageLength, 100));
        format.setBackground(theme_.color(ColorRole::border));
    }
    if (!block.marker.isEmpty()) {
        format.setTextIndent(-indent);
        format.setTabPositions({QTextOption::Tab(indent, QTextOption::LeftTab)});
    }
    if (previous) {
        cursor.insertBlock(format, text);
    } else {
        cursor.setBlockFormat(format);
        cursor.setBlockCharFormat(text);
    }
    if (!block.marker.isEmpty()) {
        QTextCharFormat marker = text;
        marker.setForeground(theme_.color(ColorRole::muted));
        // In text from right to left a tab stop is measured from the wrong side: two spaces stand for it.
        cursor.insertText(block.marker + (mirrored ? QStringLiteral("\u00a0\u00a0") : QStringLiteral("\t")), marker);
    }
    write_spans(cursor, block.text, text);
}

void DocumentWriter::write_spans(QTextCursor& cursor, const QString& text, const QTextCharFormat& base) const {
    for (const Span& span : parse_inline(text)) {
        QTextCharFormat format = base;
        if (span.bold) format.setFontWeight(QFont::Bold);
        if (span.italic) format.setFontItalic(true);
        if (span.strike) format.setFontStrikeOut(true);
        if (span.code) {
            const QFont code = theme_.code_font();
            format.setFontFamilies(code.families());
            format.setFontFixedPitch(true);
            format.setBackground(theme_.color(ColorRole::surface));
        }
        if (!span.link.isEmpty()) {
            format.setAnchor(true);
            format.setAnchorHref(span.link);
            format.setToolTip(span.link);
            format.setForeground(theme_.color(ColorRole::accent));
            format.setFontUnderline(true);
        }
        QString shown = span.text;
        shown.replace(u'\n', QChar::LineSeparator);
        cursor.insertText(shown, format);
    }
}

void DocumentWriter::write_table(QTextCursor& cursor, const Block& block) const {
    const Table contents = parse_table(block.text);
    if (contents.rows.empty()) return;
    QTextTableFormat format;
    format.setBorder(1);
    format.setBorderStyle(QTextFrameFormat::BorderStyle_Solid);
    format.setBorderBrush(theme_.color(ColorRole::border));
    format.setBorderCollapse(true);
    format.setCellPadding(theme_.px(6));
    format.setCellSpacing(0);
    format.setHeaderRowCount(1);
    QTextTable* table = cursor.insertTable(static_cast<int>(contents.rows.size()), static_cast<int>(contents.alignment.size()), format);
    for (int row = 0; row < table->rows(); ++row) {
        for (int column = 0; column < table->columns(); ++column) {
            QTextTableCell cell = table->cellAt(row, column);
            QTextCharFormat text;
            text.setForeground(theme_.color(ColorRole::text));
            if (row == 0) {
                text.setFontWeight(QFont::DemiBold);
                QTextCharFormat background = cell.format();
                background.setBackground(theme_.color(ColorRole::code));
                cell.setFormat(background);
            }
            QTextCursor inside = cell.firstCursorPosition();
            QTextBlockFormat line;
            line.setAlignment(contents.alignment[static_cast<std::size_t>(column)] | Qt::AlignAbsolute);
            if (contents.alignment[static_cast<std::size_t>(column)] == Qt::AlignLeft) line.setAlignment(Qt::AlignLeft);  // leading edge
            inside.setBlockFormat(line);
            write_spans(inside, contents.rows[static_cast<std::size_t>(row)].value(column), text);
        }
    }
}

}  // namespace headroom::ui::markdown
