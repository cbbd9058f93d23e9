#include "ui/markdown/blocks.h"

#include <QStringView>

#include <algorithm>

namespace headroom::ui::markdown {
namespace {

// Bounds for hostile texts: deeper nesting is shown flat, longer paragraphs are cut (laying out one costs more than linear time), larger
// tables are shown as code.
constexpr int kMaxDepth = 8;
constexpr qsizetype kMaxParagraph = 8'000;
constexpr qsizetype kLongWord = 1'000;
constexpr int kMaxTableRows = 300;
constexpr qsizetype kMaxTableColumns = 24;

int leading_spaces(QStringView line) {
    int columns = 0;
    for (const QChar c : line) {
        if (c == u' ') {
            ++columns;
        } else if (c == u'\t') {
            columns += 4 - columns % 4;
        } else {
            break;
        }
    }
    return columns;
}

QStringView drop_spaces(QStringView line, int columns) {
    int seen = 0;
    qsizetype at = 0;
    while (at < line.size() && seen < columns && (line[at] == u' ' || line[at] == u'\t')) {
        seen += line[at] == u'\t' ? 4 - seen % 4 : 1;
        ++at;
    }
    return line.sliced(at);
}

struct Fence {
    QChar mark;
    qsizetype length = 0;  // 0: none
    QStringView rest;      // behind the marks, trimmed
};

Fence fence_of(QStringView line) {
    if (line.isEmpty() || (line[0] != u'`' && line[0] != u'~')) return {};
    qsizetype length = 0;
    while (length < line.size() && line[length] == line[0]) ++length;
    const QStringView rest = line.sliced(length).trimmed();
    if (length < 3 || (line[0] == u'`' && rest.contains(u'`'))) return {};
    return {line[0], length, rest};
}

bool is_rule(QStringView line) {
    if (line.isEmpty() || (line[0] != u'-' && line[0] != u'*' && line[0] != u'_')) return false;
    int marks = 0;
    for (const QChar c : line) {
        if (c == line[0]) {
            ++marks;
        } else if (!c.isSpace()) {
            return false;
        }
    }
    return marks >= 3;
}

int heading_level(QStringView line) {
    qsizetype level = 0;
    while (level < line.size() && line[level] == u'#') ++level;
    const bool heading = level >= 1 && level <= 6 && (level == line.size() || line[level] == u' ');
    return heading ? static_cast<int>(level) : 0;
}

struct ListMarker {
    QString text;        // shown; empty: no list item
    qsizetype size = 0;  // characters of the line it takes, the space behind it included
};

ListMarker list_marker(QStringView line) {
    if (line.size() >= 1 && (line[0] == u'-' || line[0] == u'*' || line[0] == u'+') && (line.size() == 1 || line[1] == u' ')) {
        const QStringView rest = line.sliced(std::min<qsizetype>(line.size(), 2));
        if (rest.startsWith(u"[ ] ")) return {QStringLiteral("\u2610"), 6};
        if (rest.startsWith(u"[x] ") || rest.startsWith(u"[X] ")) return {QStringLiteral("\u2611"), 6};
        return {QStringLiteral("\u2022"), std::min<qsizetype>(line.size(), 2)};
    }
    qsizetype digits = 0;
    while (digits < line.size() && digits < 9 && line[digits] >= u'0' && line[digits] <= u'9') ++digits;
    if (digits == 0 || digits == line.size() || (line[digits] != u'.' && line[digits] != u')')) return {};
    if (digits + 1 < line.size() && line[digits + 1] != u' ') return {};
    return {line.first(digits).toString() + QLatin1Char('.'), std::min(line.size(), digits + 2)};
}

QStringList table_cells(QStringView line) {
    line = line.trimmed();
    if (line.startsWith(u'|')) line = line.sliced(1);
    if (line.endsWith(u'|') && !line.endsWith(u"\\|")) line.chop(1);
    QStringList cells;
    QString cell;
    for (qsizetype i = 0; i < line.size(); ++i) {
        if (line[i] == u'\\' && i + 1 < line.size() && line[i + 1] == u'|') {
            cell += line[++i];
        } else if (line[i] == u'|') {
            cells << cell.trimmed();
            cell.clear();
        } else {
            cell += line[i];
        }
    }
    return cells << cell.trimmed();
}

// "|---|:-:|" under a head with as many cells.
bool is_table_separator(QStringView line, QStringView head) {
    if (!line.contains(u'-') || !line.contains(u'|')) return false;
    for (const QChar c : line) {
        if (c != u'-' && c != u'|' && c != u':' && c != u' ' && c != u'\t') return false;
    }
    const qsizetype columns = table_cells(line).size();
    return columns <= kMaxTableColumns && table_cells(head).size() == columns;
}

class Splitter {
public:
    std::vector<Block> split(QStringView text) {
        while (!text.isEmpty()) {
            const qsizetype end = text.indexOf(u'\n');
            QStringView line = end < 0 ? text : text.first(end);
            text = end < 0 ? QStringView() : text.sliced(end + 1);
            if (line.endsWith(u'\r')) line.chop(1);
            add_line(line);
        }
        for (Block& block : blocks_) {
            if (block.kind == Block::Kind::table && block.text.count(u'\n') > kMaxTableRows) block.kind = Block::Kind::code;
        }
        return std::move(blocks_);
    }

private:
    void add_line(QStringView line) {
        if (fence_.length > 0 && add_code_line(line)) return;
        int quote = 0;
        while (quote < kMaxDepth && leading_spaces(line) < 4 && line.trimmed().startsWith(u'>')) {
            line = line.sliced(line.indexOf(u'>') + 1);
            if (line.startsWith(u' ')) line = line.sliced(1);
            ++quote;
        }
        if (quote != quote_) {
            quote_ = quote;
            close_paragraph();
            items_.clear();
        }
        QStringView rest = line.trimmed();
        if (rest.isEmpty()) {
            close_paragraph();
            return;
        }
        int column = leading_spaces(line);
        const bool continues = open_ && rest.size() > 0;
        leave_items(column, continues);
        QString marker;
        if (!is_rule(rest)) {
            while (items_.size() < kMaxDepth) {
                const ListMarker item = list_marker(rest);
                // A number in the middle of a paragraph begins a list only if it is 1: "in\n1986. That year" is none.
                if (item.size == 0 || (open_ && items_.empty() && item.text.endsWith(u'.') && item.text != u"1.")) break;
                close_paragraph();
                while (!items_.empty() && column < items_.back()) items_.pop_back();
                column += static_cast<int>(item.size);
                items_.push_back(column);
                marker = item.text;
                rest = rest.sliced(item.size);
                const int spaces = leading_spaces(rest);
                rest = rest.trimmed();
                if (!list_marker(rest).size) break;
                column += spaces;
            }
        }
        add_content(rest, marker, column);
    }

    // Ends the list items that a line at `column` does not belong to.
    void leave_items(int column, bool continues_paragraph) {
        while (!items_.empty() && column < items_.back()) {
            // A line that merely goes on with the item's paragraph may stand further left, unless it begins something itself.
            if (continues_paragraph && items_.size() == 1 && column == 0) {
                after_item_ = true;
                return;
            }
            items_.pop_back();
        }
    }

    void add_content(QStringView rest, const QString& marker, int column) {
        const bool lazy = std::exchange(after_item_, false);
        if (const Fence fence = fence_of(rest); fence.length > 0) {
            if (lazy && marker.isEmpty()) items_.clear();
            Block& block = begin(Block::Kind::code, marker);
            block.language = fence.rest.toString().section(QLatin1Char(' '), 0, 0);
            fence_ = fence;
            fence_indent_ = column;
            return;
        }
        if (const int level = heading_level(rest); level > 0) {
            if (lazy && marker.isEmpty()) items_.clear();
            Block& block = begin(Block::Kind::heading, marker);
            block.level = level;
            QStringView title = rest.sliced(level).trimmed();
            while (title.endsWith(u'#')) title.chop(1);
            block.text = title.trimmed().toString();
            return;
        }
        if (marker.isEmpty() && is_rule(rest)) {
            items_.clear();
            begin(Block::Kind::rule, {});
            return;
        }
        if (open_ && blocks_.back().kind == Block::Kind::table && marker.isEmpty() && rest.contains(u'|')) {
            blocks_.back().text += u'\n' + rest.toString();
            return;
        }
        if (open_ && marker.isEmpty() && blocks_.back().kind == Block::Kind::paragraph) {
            Block& block = blocks_.back();
            const qsizetype last_line = block.text.lastIndexOf(u'\n') + 1;
            if (is_table_separator(rest, QStringView(block.text).sliced(last_line))) {
                begin_table(rest, last_line);
                return;
            }
            if (block.text.size() + 1 + rest.size() > kMaxParagraph) {
                begin(Block::Kind::paragraph, {});
                open_ = true;
            } else {
                block.text += u'\n';
            }
            add_text(rest);
            return;
        }
        begin(Block::Kind::paragraph, marker);
        open_ = true;
        add_text(rest);
    }

    bool add_code_line(QStringView line) {
        QStringView inner = line;
        for (int i = 0; i < quote_; ++i) {
            const QStringView trimmed = inner.trimmed();
            if (!trimmed.startsWith(u'>')) {  // the quote ends, and the code with it
                fence_ = {};
                return false;
            }
            inner = inner.sliced(inner.indexOf(u'>') + 1);
            if (inner.startsWith(u' ')) inner = inner.sliced(1);
        }
        const Fence close = fence_of(inner.trimmed());
        if (close.length >= fence_.length && close.mark == fence_.mark && close.rest.isEmpty()) {
            fence_ = {};
            return true;
        }
        QString& text = blocks_.back().text;
        if (first_code_line_) {
            first_code_line_ = false;
        } else {
            text += u'\n';
        }
        text += drop_spaces(inner, fence_indent_);
        return true;
    }

    // The paragraph's last line turns out to be the head of a table.
    void begin_table(QStringView separator, qsizetype head_begin) {
        const QString head = blocks_.back().text.sliced(head_begin);
        if (head_begin == 0) {
            blocks_.back().kind = Block::Kind::table;
            blocks_.back().text = head;
        } else {
            blocks_.back().text.truncate(head_begin - 1);
            begin(Block::Kind::table, {}).text = head;
            open_ = true;
        }
        blocks_.back().text += u'\n' + separator.toString();
    }

    // Adds a line to the open paragraph, and cuts it where it becomes too long.
    void add_text(QStringView line) {
        while (blocks_.back().text.size() + line.size() > kMaxParagraph) {
            qsizetype room = std::max<qsizetype>(1, kMaxParagraph - blocks_.back().text.size());
            room = std::min(room, line.size());
            const qsizetype space = line.first(room).lastIndexOf(u' ');
            room = space > room / 2 ? space + 1 : std::min(room, kLongWord);
            if (room < line.size() && line[room].isLowSurrogate()) ++room;
            blocks_.back().text += line.first(room);
            line = line.sliced(room);
            begin(Block::Kind::paragraph, {});
            open_ = true;
        }
        blocks_.back().text += line;
    }

    Block& begin(Block::Kind kind, const QString& marker) {
        open_ = false;
        first_code_line_ = true;
        Block block;
        block.kind = kind;
        block.quote = quote_;
        block.indent = static_cast<int>(items_.size());
        block.marker = marker;
        blocks_.push_back(std::move(block));
        return blocks_.back();
    }

    void close_paragraph() { open_ = false; }

    std::vector<Block> blocks_;
    std::vector<int> items_;  // columns where the contents of the open list items begin
    int quote_ = 0;
    bool open_ = false;       // the last block is a paragraph or table that the next line may continue
    bool after_item_ = false;
    Fence fence_;             // of the open code block; its `rest` is not used
    int fence_indent_ = 0;
    bool first_code_line_ = true;
};

}  // namespace

std::vector<Block> split_blocks(const QString& text) { return Splitter().split(text); }

Table parse_table(const QString& text) {
    Table table;
    const QStringList lines = text.split(u'\n');
    if (lines.size() < 2) return table;
    for (const QString& cell : table_cells(lines[1])) {
        const bool left = cell.startsWith(u':');
        const bool right = cell.endsWith(u':');
        table.alignment.push_back(left && right ? Qt::AlignHCenter : right ? Qt::AlignRight : Qt::AlignLeft);
    }
    for (qsizetype i = 0; i < lines.size(); ++i) {
        if (i == 1) continue;
        QStringList cells = table_cells(lines[i]);
        cells.resize(static_cast<qsizetype>(table.alignment.size()));
        table.rows.push_back(std::move(cells));
    }
    return table;
}

}  // namespace headroom::ui::markdown
