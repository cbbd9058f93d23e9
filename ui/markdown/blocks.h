#pragma once

#include <QString>
#include <QStringList>

#include <vector>

namespace headroom::ui::markdown {

// One leaf of a markdown text in reading order: nesting is flattened into `quote` and `indent`, which is all that drawing needs.
struct Block {
    enum class Kind { paragraph, heading, code, table, rule } kind = Kind::paragraph;
    int level = 0;        // of a heading, 1 to 6
    int quote = 0;        // depth of > marks
    int indent = 0;       // depth of lists
    QString marker;       // of the list item that begins here: a bullet, "3.", a box; empty: none
    QString language;     // of code, as written behind the fence
    QString text;         // without quote marks, list markers, fences; for tables the lines as they are
    bool operator==(const Block&) const = default;
};

// Takes a text apart, in time linear in its length. Follows CommonMark and GitHub's tables where answers of models use them; a newline in
// a paragraph is kept. Appending to a text changes only the last blocks of the result. Everything that is not understood, raw HTML
// too, is text.
[[nodiscard]] std::vector<Block> split_blocks(const QString& text);

struct Table {
    std::vector<Qt::Alignment> alignment;  // per column
    std::vector<QStringList> rows;         // the first one is the head; each has as many cells as `alignment`
};
// The contents of a block of kind `table`.
[[nodiscard]] Table parse_table(const QString& text);

}  // namespace headroom::ui::markdown
