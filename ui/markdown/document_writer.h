#pragma once

#include <QTextCursor>

#include "ui/markdown/blocks.h"
#include "ui/theme/theme.h"

namespace headroom::ui::markdown {

// The property of a QTextBlockFormat that holds the depth of its quote marks (painted by TextView).
inline constexpr int kQuoteProperty = QTextFormat::UserProperty + 1;

// Writes blocks into a QTextDocument through cursor and formats: no HTML is made or read anywhere on the way.
class DocumentWriter {
public:
    explicit DocumentWriter(const Theme& theme) : theme_(theme) {}

    // Appends a block of any kind but code and table at the cursor, in a text block of its own. `previous`: what stands above it.
    void write(QTextCursor& cursor, const Block& block, const Block* previous) const;
    // Appends a table.
    void write_table(QTextCursor& cursor, const Block& block) const;

private:
    void write_spans(QTextCursor& cursor, const QString& text, const QTextCharFormat& base) const;

    const Theme& theme_;
};

}  // namespace headroom::ui::markdown
