#include "ui/markdown/markdown_view.h"

#include <QTextBlock>

#include <algorithm>

#include "ui/markdown/code_block.h"
#include "ui/markdown/document_writer.h"
#include "ui/markdown/text_view.h"

namespace headroom::ui {

using markdown::Block;

MarkdownView::MarkdownView(const Theme& theme, QWidget* parent) : QWidget(parent), theme_(theme), layout_(new QVBoxLayout(this)) {
    layout_->setContentsMargins(0, 0, 0, 0);
    layout_->setSpacing(theme.px(12));
    setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Minimum);
}

void MarkdownView::set_text(const QString& text) {
    if (text == text_) return;
    text_ = text;
    std::vector<Block> blocks = markdown::split_blocks(text);
    const auto same = std::ranges::mismatch(blocks_, blocks);
    const auto first = static_cast<std::size_t>(same.in1 - blocks_.begin());
    // Code that only grew goes on in its view.
    if (first < blocks.size() && first < blocks_.size() && !segments_.empty()) {
        Segment& last = segments_.back();
        const Block& block = blocks[first];
        if (last.kind == Segment::Kind::code && last.first == first && block.kind == Block::Kind::code &&
            block.language == blocks_[first].language && block.indent == blocks_[first].indent) {
            last.code->set_code(block.text);
            ++rendered_;
            for (std::size_t i = first + 1; i < blocks.size(); ++i) append(i, blocks);
            fit_from(first);
            blocks_ = std::move(blocks);
            return;
        }
    }
    render_from(first, blocks);
    blocks_ = std::move(blocks);
}

void MarkdownView::rebuild() {
    drop_from(0);
    render_from(0, blocks_);
}

void MarkdownView::render_from(std::size_t first, const std::vector<Block>& blocks) {
    drop_from(first);
    for (std::size_t i = first; i < blocks.size(); ++i) append(i, blocks);
    fit_from(first);
}

// The views that hold blocks from `first` on take their new heights, each once.
void MarkdownView::fit_from(std::size_t first) {
    for (auto segment = segments_.rbegin(); segment != segments_.rend(); ++segment) {
        if (segment->view) segment->view->fit_height();
        if (segment->first <= first) return;
    }
}

void MarkdownView::drop_from(std::size_t first) {
    while (!segments_.empty() && segments_.back().first >= first) {
        segments_.back().widget->hide();
        layout_->removeWidget(segments_.back().widget);
        segments_.back().widget->deleteLater();
        segments_.pop_back();
    }
    if (segments_.empty()) return;
    Segment& last = segments_.back();
    if (last.kind != Segment::Kind::text || first - last.first >= last.starts.size()) return;
    QTextCursor cursor(last.view->document());
    cursor.setPosition(last.starts[first - last.first]);
    cursor.movePosition(QTextCursor::PreviousCharacter);  // the paragraph separator goes too
    cursor.movePosition(QTextCursor::End, QTextCursor::KeepAnchor);
    cursor.removeSelectedText();
    last.starts.resize(first - last.first);
}

void MarkdownView::append(std::size_t index, const std::vector<Block>& blocks) {
    const Block& block = blocks[index];
    const markdown::DocumentWriter writer(theme_);
    ++rendered_;
    const auto place = [&](QWidget* widget) {
        // Code and tables inside list items stand under the item's text.
        widget->setContentsMargins(0, 0, 0, 0);
        auto* row = new QWidget(this);
        auto* box = new QHBoxLayout(row);
        box->setContentsMargins(0, 0, 0, 0);
        if (const int indent = theme_.px(24) * block.indent + theme_.px(16) * block.quote; indent > 0) box->addSpacing(indent);
        box->addWidget(widget);
        row->setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Minimum);
        layout_->addWidget(row);
        return row;
    };
    if (block.kind == Block::Kind::code) {
        auto* code = new CodeBlock(theme_, block.language, this);
        code->set_code(block.text);
        segments_.push_back({Segment::Kind::code, index, {}, place(code), nullptr, code});
        return;
    }
    if (block.kind == Block::Kind::table) {
        auto* view = new TextView(this);
        view->setObjectName(QStringLiteral("answer_table"));
        QTextCursor cursor(view->document());
        writer.write_table(cursor, block);
        segments_.push_back({Segment::Kind::table, index, {}, place(view), view, nullptr});
        return;
    }
    if (segments_.empty() || segments_.back().kind != Segment::Kind::text) {
        auto* view = new TextView(this);
        view->setObjectName(QStringLiteral("answer_text"));
        layout_->addWidget(view);
        segments_.push_back({Segment::Kind::text, index, {}, view, view, nullptr});
    }
    Segment& segment = segments_.back();
    QTextCursor cursor(segment.view->document());
    cursor.movePosition(QTextCursor::End);
    cursor.beginEditBlock();
    writer.write(cursor, block, segment.starts.empty() ? nullptr : &blocks[index - 1]);
    cursor.endEditBlock();
    segment.starts.push_back(segment.view->document()->lastBlock().position());
}

}  // namespace headroom::ui
