#include "ui/markdown/code_highlighter.h"

#include <QSet>

namespace headroom::ui {
namespace {

constexpr qsizetype kLongestLine = 2'000;
enum State { kPlain = 0, kInComment = 1 };

const QSet<QString>& keywords() {
    static const QSet<QString> words = [] {
        const QString list = QStringLiteral(
            "abstract and as assert async auto await begin bool break byte case catch char class const constexpr continue def default del "
            "delete do double elif else elsif end enum except export extends extern False final finally float fn for from func function "
            "global if impl implements import in include inline instanceof int interface internal is lambda let local long loop match mod "
            "module mut mutable namespace native new nil None not null nullptr of operator or override package pass private protected "
            "protocol pub public raise readonly ref register return select self short signed sizeof static struct super switch "
            "template then this throw throws trait True true false try type typedef typename typeof undefined union unsafe unsigned use "
            "using var virtual void volatile when where while with yield "
            "SELECT FROM WHERE INSERT INTO UPDATE DELETE CREATE TABLE JOIN LEFT RIGHT INNER OUTER ON GROUP ORDER BY LIMIT VALUES SET AND OR "
            "NOT NULL PRIMARY KEY AS IN");
        const QStringList split = list.split(u' ');
        return QSet<QString>(split.begin(), split.end());
    }();
    return words;
}

QTextCharFormat colored(QRgb light, QRgb dark, bool is_dark) {
    QTextCharFormat format;
    format.setForeground(QColor::fromRgb(is_dark ? dark : light));
    return format;
}

}  // namespace

CodeHighlighter::CodeHighlighter(QTextDocument* document, const Theme& theme, const QString& language)
    : QSyntaxHighlighter(document),
      comment_(colored(0x5f6b7a, 0x8f9aaa, theme.dark())),
      string_(colored(0x0a6b3d, 0x8fd6a4, theme.dark())),
      number_(colored(0x9a4a00, 0xe8b27a, theme.dark())),
      keyword_(colored(0x1f4fc4, 0x8cb2ff, theme.dark())) {
    const QString name = language.toLower();
    static const QSet<QString> hashes{QStringLiteral("python"), QStringLiteral("py"), QStringLiteral("bash"), QStringLiteral("sh"),
                                      QStringLiteral("shell"), QStringLiteral("zsh"), QStringLiteral("yaml"), QStringLiteral("yml"),
                                      QStringLiteral("toml"), QStringLiteral("ruby"), QStringLiteral("rb"), QStringLiteral("perl"),
                                      QStringLiteral("r"), QStringLiteral("cmake"), QStringLiteral("make"), QStringLiteral("dockerfile"),
                                      QStringLiteral("powershell"), QStringLiteral("ini"), QStringLiteral("elixir"), QStringLiteral("julia")};
    static const QSet<QString> plain{QStringLiteral("text"), QStringLiteral("txt"), QStringLiteral("plain"), QStringLiteral("markdown"),
                                     QStringLiteral("md"), QStringLiteral("csv"), QStringLiteral("log"), QStringLiteral("")};
    if (hashes.contains(name)) {
        hash_comments_ = true;
        slash_comments_ = false;
    } else if (name == QLatin1String("sql") || name == QLatin1String("lua") || name == QLatin1String("haskell")) {
        dash_comments_ = true;
        slash_comments_ = name == QLatin1String("sql");
    } else if (name == QLatin1String("html") || name == QLatin1String("xml") || name == QLatin1String("json")) {
        slash_comments_ = false;
    }
    keywords_ = !plain.contains(name);
}

void CodeHighlighter::highlightBlock(const QString& text) {
    setCurrentBlockState(kPlain);
    if (!keywords_ || text.size() > kLongestLine) return;
    qsizetype at = 0;
    const auto mark = [this](qsizetype from, qsizetype to, const QTextCharFormat& format) {
        setFormat(static_cast<int>(from), static_cast<int>(to - from), format);
    };
    const auto comment_to_end_mark = [&](qsizetype from) {
        const qsizetype end = text.indexOf(QLatin1String("*/"), at);
        at = end < 0 ? text.size() : end + 2;
        if (end < 0) setCurrentBlockState(kInComment);
        mark(from, at, comment_);
    };
    if (previousBlockState() == kInComment && slash_comments_) comment_to_end_mark(0);
    while (at < text.size()) {
        const QChar c = text[at];
        const QStringView rest = QStringView(text).sliced(at);
        const bool comment = (hash_comments_ && c == u'#') || (slash_comments_ && rest.startsWith(u"//")) ||
                             (dash_comments_ && rest.startsWith(u"--"));
        const qsizetype from = at;
        if (comment) {
            mark(from, text.size(), comment_);
            return;
        }
        if (slash_comments_ && rest.startsWith(u"/*")) {
            at += 2;
            comment_to_end_mark(from);
        } else if (c == u'"' || c == u'\'' || c == u'`') {
            ++at;
            while (at < text.size() && text[at] != c) at += text[at] == u'\\' ? 2 : 1;
            at = std::min(at + 1, text.size());
            mark(from, at, string_);
        } else if (c.isDigit()) {
            while (at < text.size() && (text[at].isLetterOrNumber() || text[at] == u'.')) ++at;
            mark(from, at, number_);
        } else if (c.isLetter() || c == u'_') {
            while (at < text.size() && (text[at].isLetterOrNumber() || text[at] == u'_')) ++at;
            if (keywords().contains(text.sliced(from, at - from))) mark(from, at, keyword_);
        } else {
            ++at;
        }
    }
}

}  // namespace headroom::ui
