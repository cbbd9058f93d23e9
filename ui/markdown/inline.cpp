#include "ui/markdown/inline.h"

#include <QUrl>

#include <algorithm>
#include <array>

namespace headroom::ui::markdown {
namespace {

constexpr qsizetype kMaxUrl = 2'000;
constexpr std::size_t kLookBack = 32;   // open delimiters that a closing one is compared with
constexpr qsizetype kMaxBackticks = 16;

bool is_punctuation(QChar c) { return c.isPunct() || c.isSymbol(); }

bool starts_web_link(QStringView url) {
    if (url.startsWith(u'<')) url = url.sliced(1);
    return url.startsWith(u"http://", Qt::CaseInsensitive) || url.startsWith(u"https://", Qt::CaseInsensitive) ||
           url.startsWith(u"mailto:", Qt::CaseInsensitive);
}

bool is_web_link(QStringView url) {
    return !url.startsWith(u'<') && starts_web_link(url) && QUrl(url.toString(), QUrl::StrictMode).isValid();
}

// A piece of text, or a run of * _ ~ whose meaning is found at the end.
struct Node {
    QString text;
    bool code = false;
    QString link;
    QChar mark;          // of a delimiter run; null: none
    bool can_open = false;
    bool can_close = false;
};

class Parser {
public:
    explicit Parser(QStringView text) : text_(text) {}

    std::vector<Span> parse() {
        while (at_ < text_.size()) step();
        flush();
        match_delimiters();
        return spans();
    }

private:
    struct Bracket {
        std::size_t node;   // where its contents begin
        bool image;
    };

    void step() {
        const QChar c = text_[at_];
        if (c == u'\\' && at_ + 1 < text_.size() && is_punctuation(text_[at_ + 1])) {
            plain_ += text_[at_ + 1];
            at_ += 2;
        } else if (c == u'`') {
            add_code();
        } else if (c == u'*' || c == u'_' || c == u'~') {
            add_delimiters();
        } else if (c == u'[' || (c == u'!' && at_ + 1 < text_.size() && text_[at_ + 1] == u'[')) {
            flush();
            const bool image = c == u'!';
            nodes_.push_back({image ? QStringLiteral("![") : QStringLiteral("["), false, {}, {}, false, false});
            brackets_.push_back({nodes_.size(), image});
            at_ += image ? 2 : 1;
        } else if (c == u']') {
            close_bracket();
        } else if (c == u'<') {
            add_angle_link();
        } else if ((c == u'h' || c == u'H') && starts_bare_link()) {
            add_bare_link();
        } else {
            plain_ += c;
            ++at_;
        }
    }

    void flush() {
        if (plain_.isEmpty()) return;
        nodes_.push_back({plain_, false, {}, {}, false, false});
        plain_.clear();
    }

    qsizetype run_length(qsizetype from, QChar c) const {
        qsizetype end = from;
        while (end < text_.size() && text_[end] == c) ++end;
        return end - from;
    }

    void add_code() {
        const qsizetype length = run_length(at_, u'`');
        const qsizetype begin = at_ + length;
        if (length <= kMaxBackticks && !no_closing_[static_cast<std::size_t>(length)]) {
            for (qsizetype i = begin; i < text_.size();) {
                if (text_[i] != u'`') {
                    ++i;
                    continue;
                }
                const qsizetype closing = run_length(i, u'`');
                if (closing == length) {
                    QStringView code = text_.sliced(begin, i - begin);
                    if (code.size() > 2 && code.startsWith(u' ') && code.endsWith(u' ')) code = code.sliced(1, code.size() - 2);
                    flush();
                    nodes_.push_back({code.toString(), true, {}, {}, false, false});
                    at_ = i + length;
                    return;
                }
                i += closing;
            }
            no_closing_[static_cast<std::size_t>(length)] = true;
        }
        plain_ += text_.sliced(at_, length);
        at_ = begin;
    }

    void add_delimiters() {
        const QChar mark = text_[at_];
        const qsizetype length = run_length(at_, mark);
        const QChar before = at_ > 0 ? text_[at_ - 1] : QChar(u' ');
        const QChar after = at_ + length < text_.size() ? text_[at_ + length] : QChar(u' ');
        // CommonMark's left- and right-flanking runs.
        const bool left = !after.isSpace() && (!is_punctuation(after) || before.isSpace() || is_punctuation(before));
        const bool right = !before.isSpace() && (!is_punctuation(before) || after.isSpace() || is_punctuation(after));
        const bool word = mark == u'_';  // inside a word it is a letter: snake_case
        const bool can_open = left && (!word || !right || is_punctuation(before));
        const bool can_close = right && (!word || !left || is_punctuation(after));
        if ((!can_open && !can_close) || length > 3 || (mark == u'~' && length != 2)) {
            plain_ += text_.sliced(at_, length);
        } else {
            flush();
            nodes_.push_back({text_.sliced(at_, length).toString(), false, {}, mark, can_open, can_close});
        }
        at_ += length;
    }

    void close_bracket() {
        flush();
        const bool target = at_ + 1 < text_.size() && text_[at_ + 1] == u'(';
        if (!brackets_.empty()) {
            const Bracket bracket = brackets_.back();
            brackets_.pop_back();
            if (target && make_link(bracket)) return;
        }
        plain_ += u']';
        ++at_;
    }

    // "](url "title")" behind a bracket's contents.
    bool make_link(const Bracket& bracket) {
        const QStringView rest = text_.sliced(at_ + 2, std::min(kMaxUrl, text_.size() - at_ - 2));
        if (!starts_web_link(rest.trimmed())) return false;
        int depth = 1;
        qsizetype end = 0;
        for (; end < rest.size(); ++end) {
            if (rest[end] == u'(') ++depth;
            if (rest[end] == u')' && --depth == 0) break;
            if (rest[end] == u'\n') return false;
        }
        if (end == rest.size()) return false;
        QStringView url = rest.first(end).trimmed();
        if (const qsizetype space = url.indexOf(u' '); space >= 0) url = url.first(space);  // a title follows: not shown
        if (url.startsWith(u'<') && url.endsWith(u'>') && url.size() > 1) url = url.sliced(1, url.size() - 2);
        if (!is_web_link(url)) return false;
        nodes_[bracket.node - 1].text.clear();
        if (nodes_.size() == bracket.node) nodes_.push_back({url.toString(), false, {}, {}, false, false});
        for (std::size_t i = bracket.node; i < nodes_.size(); ++i) nodes_[i].link = url.toString();
        if (!bracket.image) brackets_.clear();  // links do not nest
        at_ += 2 + end + 1;
        return true;
    }

    void add_angle_link() {
        const QStringView rest = text_.sliced(at_ + 1, std::min(kMaxUrl, text_.size() - at_ - 1));
        qsizetype end = 0;
        while (end < rest.size() && rest[end] != u'>' && rest[end] != u'<' && !rest[end].isSpace()) ++end;
        if (end < rest.size() && rest[end] == u'>' && is_web_link(rest.first(end))) {
            add_link(rest.first(end));
            at_ += end + 2;
        } else {
            plain_ += u'<';
            ++at_;
        }
    }

    bool starts_bare_link() const {
        if (at_ > 0 && text_[at_ - 1].isLetterOrNumber()) return false;
        const QStringView rest = text_.sliced(at_);
        return rest.startsWith(u"http://", Qt::CaseInsensitive) || rest.startsWith(u"https://", Qt::CaseInsensitive);
    }

    void add_bare_link() {
        const QStringView rest = text_.sliced(at_, std::min(kMaxUrl, text_.size() - at_));
        qsizetype end = 0;
        int open = 0;
        for (; end < rest.size(); ++end) {
            const QChar c = rest[end];
            if (c.isSpace() || QStringView(u"<>\"`*|[]").contains(c)) break;
            if (c == u'(') ++open;
            if (c == u')' && --open < 0) break;
        }
        while (end > 0 && QStringView(u".,;:!?'").contains(rest[end - 1])) --end;
        if (is_web_link(rest.first(end))) {
            add_link(rest.first(end));
        } else {
            plain_ += rest.first(end);
        }
        at_ += std::max<qsizetype>(end, 1);
    }

    void add_link(QStringView url) {
        flush();
        nodes_.push_back({url.toString(), false, url.toString(), {}, false, false});
    }

    // Pairs the runs of * _ ~. Emphasis is counted up where it begins and down where it ends, so that nesting costs nothing.
    void match_delimiters() {
        bold_.assign(nodes_.size() + 1, 0);
        italic_ = strike_ = bold_;
        std::vector<std::size_t> open;
        for (std::size_t i = 0; i < nodes_.size(); ++i) {
            if (nodes_[i].mark.isNull()) continue;
            if (nodes_[i].can_close) close_delimiters(i, open);
            if (nodes_[i].can_open && !nodes_[i].text.isEmpty()) open.push_back(i);
        }
    }

    void close_delimiters(std::size_t closer, std::vector<std::size_t>& open) {
        while (!nodes_[closer].text.isEmpty()) {
            std::size_t at = open.size();
            const std::size_t lowest = open.size() > kLookBack ? open.size() - kLookBack : 0;
            while (at > lowest && nodes_[open[at - 1]].mark != nodes_[closer].mark) --at;
            if (at == lowest) return;
            const std::size_t opener = open[at - 1];
            open.resize(at);  // what was opened in between stays text
            const qsizetype used = std::min<qsizetype>({2, nodes_[opener].text.size(), nodes_[closer].text.size()});
            if (nodes_[closer].mark == u'~' && used != 2) return;
            auto& counts = nodes_[closer].mark == u'~' ? strike_ : used == 2 ? bold_ : italic_;
            ++counts[opener];
            --counts[closer];
            nodes_[opener].text.chop(used);
            nodes_[closer].text.chop(used);
            if (nodes_[opener].text.isEmpty()) open.pop_back();
        }
    }

    std::vector<Span> spans() {
        std::vector<Span> result;
        int bold = 0;
        int italic = 0;
        int strike = 0;
        for (std::size_t i = 0; i < nodes_.size(); ++i) {
            bold += bold_[i];
            italic += italic_[i];
            strike += strike_[i];
            Node& node = nodes_[i];
            if (node.text.isEmpty()) continue;
            Span span{node.text, bold > 0, italic > 0, strike > 0, node.code, node.link};
            Span* last = result.empty() ? nullptr : &result.back();
            if (last && last->bold == span.bold && last->italic == span.italic && last->strike == span.strike &&
                last->code == span.code && last->link == span.link) {
                last->text += span.text;
            } else {
                result.push_back(std::move(span));
            }
        }
        return result;
    }

    QStringView text_;
    qsizetype at_ = 0;
    QString plain_;
    std::vector<Node> nodes_;
    std::vector<Bracket> brackets_;
    std::array<bool, kMaxBackticks + 1> no_closing_{};  // no run of that length follows
    std::vector<int> bold_, italic_, strike_;
};

}  // namespace

std::vector<Span> parse_inline(QStringView text) { return Parser(text).parse(); }

}  // namespace headroom::ui::markdown
