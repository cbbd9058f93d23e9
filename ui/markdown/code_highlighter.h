#pragma once

#include <QSyntaxHighlighter>

#include "ui/theme/theme.h"

namespace headroom::ui {

// Colours for comments, strings, numbers and the words that most programming languages share. Works line by line, so that growing text
// costs only its new lines; lines longer than a few thousand characters stay plain.
class CodeHighlighter : public QSyntaxHighlighter {
    Q_OBJECT

public:
    // language: as written behind the fence ("cpp", "Python"); one that is not known is coloured like C.
    CodeHighlighter(QTextDocument* document, const Theme& theme, const QString& language);

protected:
    void highlightBlock(const QString& text) override;

private:
    bool hash_comments_ = false;   // # begins a comment
    bool slash_comments_ = true;   // // and /* */
    bool dash_comments_ = false;   // --
    bool keywords_ = true;
    QTextCharFormat comment_, string_, number_, keyword_;
};

}  // namespace headroom::ui
