#pragma once

#include <QVBoxLayout>
#include <QWidget>

#include <vector>

#include "ui/markdown/blocks.h"
#include "ui/theme/theme.h"

namespace headroom::ui {

class CodeBlock;
class TextView;

// A markdown text that may grow: consecutive text blocks share a TextView, code and tables have views of their own. Setting a text
// renders only what differs from the one before: for a text that grew, its last block.
class MarkdownView : public QWidget {
    Q_OBJECT

public:
    explicit MarkdownView(const Theme& theme, QWidget* parent = nullptr);

    void set_text(const QString& text);
    // Renders everything anew (the theme has changed).
    void rebuild();
    [[nodiscard]] int rendered_blocks() const { return rendered_; }  // since it was made: what tests count

private:
    struct Segment {
        enum class Kind { text, code, table } kind;
        std::size_t first;            // index of its first block
        std::vector<int> starts;      // of text: where each block begins in the document
        QWidget* widget;
        TextView* view = nullptr;     // of text and tables
        CodeBlock* code = nullptr;
    };
    void render_from(std::size_t first, const std::vector<markdown::Block>& blocks);
    void append(std::size_t index, const std::vector<markdown::Block>& blocks);
    void drop_from(std::size_t first);
    void fit_from(std::size_t first);

    const Theme& theme_;
    QString text_;
    std::vector<markdown::Block> blocks_;
    std::vector<Segment> segments_;
    QVBoxLayout* layout_;
    int rendered_ = 0;
};

}  // namespace headroom::ui
