#include <QElapsedTimer>
#include <QTest>

#include "ui/markdown/blocks.h"
#include "ui/markdown/inline.h"

using namespace headroom::ui::markdown;

namespace {

// Blocks and spans as short text, so that a test shows what it expects.
QString describe(const std::vector<Block>& blocks) {
    QStringList lines;
    for (const Block& b : blocks) {
        QString line;
        switch (b.kind) {
            case Block::Kind::paragraph: line = QStringLiteral("p"); break;
            case Block::Kind::heading: line = QStringLiteral("h%1").arg(b.level); break;
            case Block::Kind::code: line = QStringLiteral("code(%1)").arg(b.language); break;
            case Block::Kind::table: line = QStringLiteral("table"); break;
            case Block::Kind::rule: line = QStringLiteral("rule"); break;
        }
        if (b.quote) line += QStringLiteral(" >%1").arg(b.quote);
        if (b.indent) line += QStringLiteral(" +%1").arg(b.indent);
        if (!b.marker.isEmpty()) line += u' ' + b.marker;
        lines << line + QStringLiteral(": ") + QString(b.text).replace(u'\n', u'/');
    }
    return lines.join(u'\n');
}

QString describe(const std::vector<Span>& spans) {
    QString text;
    for (const Span& s : spans) {
        QString t = s.text;
        if (s.code) t = QStringLiteral("{code %1}").arg(t);
        if (s.bold) t = QStringLiteral("{b %1}").arg(t);
        if (s.italic) t = QStringLiteral("{i %1}").arg(t);
        if (s.strike) t = QStringLiteral("{s %1}").arg(t);
        if (!s.link.isEmpty()) t = QStringLiteral("{a %1 %2}").arg(s.link, t);
        text += t;
    }
    return text;
}

}  // namespace

class TestMarkdown : public QObject {
    Q_OBJECT

private slots:
    void blocks_data() {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("expected");
        QTest::newRow("paragraphs") << "one\ntwo\n\nthree\n" << "p: one/two\np: three";
        QTest::newRow("headings") << "# A\ntext\n###### F ##\n#no\n####### no" << "h1: A\np: text\nh6: F\np: #no/####### no";
        QTest::newRow("code") << "a\n```cpp\nint x;\n\n  y\n```\nb" << "p: a\ncode(cpp): int x;//  y\np: b";
        QTest::newRow("open code") << "```py\nx = 1" << "code(py): x = 1";
        QTest::newRow("code with backticks inside") << "````\n```\n````" << "code(): ```";
        QTest::newRow("tildes") << "~~~\nx\n~~~" << "code(): x";
        QTest::newRow("list") << "- a\n- b\n  more\n\n  para\n* c" << "p +1 \u2022: a\np +1 \u2022: b/more\np +1: para\np +1 \u2022: c";
        QTest::newRow("numbers") << "3. a\n4) b" << "p +1 3.: a\np +1 4.: b";
        QTest::newRow("nested") << "- a\n  - b\n    - c\n- d" << "p +1 \u2022: a\np +2 \u2022: b\np +3 \u2022: c\np +1 \u2022: d";
        QTest::newRow("nested numbers") << "1. a\n   - b\n2. c" << "p +1 1.: a\np +2 \u2022: b\np +1 2.: c";
        QTest::newRow("boxes") << "- [ ] a\n- [x] b" << "p +1 \u2610: a\np +1 \u2611: b";
        QTest::newRow("code in an item") << "1. a\n   ```\n   x\n     y\n   ```\n2. b" << "p +1 1.: a\ncode() +1: x/  y\np +1 2.: b";
        QTest::newRow("after a list") << "- a\n\nb" << "p +1 \u2022: a\np: b";
        QTest::newRow("a year is no list") << "It was in\n1986. That year" << "p: It was in/1986. That year";
        QTest::newRow("quote") << "> a\n> b\n>\n>> c\nd" << "p >1: a/b\np >2: c\np: d";
        QTest::newRow("code in a quote") << "> ```\n> x\n> ```\n> y" << "code() >1: x\np >1: y";
        QTest::newRow("rule") << "a\n\n---\n* * *\nb" << "p: a\nrule: \nrule: \np: b";
        QTest::newRow("table") << "head\n| a | b |\n|---|:-:|\n| 1 | 2 |\n\nafter"
                               << "p: head\ntable: | a | b |/|---|:-:|/| 1 | 2 |\np: after";
        QTest::newRow("no table") << "a | b\nc" << "p: a | b/c";
        QTest::newRow("html is text") << "<script>\nalert(1)\n</script>" << "p: <script>/alert(1)/</script>";
        QTest::newRow("windows lines") << "a\r\n\r\nb" << "p: a\np: b";
    }
    void blocks() {
        QFETCH(QString, text);
        QTEST(describe(split_blocks(text)), "expected");
    }

    // A text that grows changes only its last blocks: what streaming relies on.
    void growing_changes_only_the_end() {
        const QString text = QStringLiteral("# T\n\npara **b**\nline\n\n- a\n- b\n\n| x | y |\n|---|---|\n| 1 | 2 |\n\n```c\nint a;\nint b;\n```\n\nend\n\n> q\n");
        std::vector<Block> last;
        for (qsizetype n = 1; n <= text.size(); ++n) {
            const std::vector<Block> now = split_blocks(text.first(n));
            for (std::size_t i = 0; i + 2 < last.size(); ++i) QVERIFY2(now[i] == last[i], qPrintable(text.first(n)));
            last = now;
        }
        QCOMPARE(last.size(), 8U);
    }

    void tables() {
        const Table table = parse_table(QStringLiteral("| a | b\\|c |\n|:--|--:|\n| 1 |\n|2|3|4|"));
        QCOMPARE(table.alignment, (std::vector<Qt::Alignment>{Qt::AlignLeft, Qt::AlignRight}));
        QCOMPARE(table.rows.size(), 3U);
        QCOMPARE(table.rows[0], QStringList({"a", "b|c"}));
        QCOMPARE(table.rows[1], QStringList({"1", ""}));
        QCOMPARE(table.rows[2], QStringList({"2", "3"}));
    }

    void spans_data() {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("expected");
        QTest::newRow("emphasis") << "a *b* **c** ***d*** _e_ __f__ ~~g~~" << "a {i b} {b c} {i {b d}} {i e} {b f} {s g}";
        QTest::newRow("nested") << "**a *b* c**" << "{b a }{i {b b}}{b  c}";
        QTest::newRow("open") << "a **b" << "a **b";
        QTest::newRow("snake case") << "a_b_c 2*3*4" << "a_b_c 2{i 3}4";
        QTest::newRow("stars with spaces") << "2 * 3 * 4" << "2 * 3 * 4";
        QTest::newRow("code") << "`a*b*` ``c`d`` `open" << "{code a*b*} {code c`d} `open";
        QTest::newRow("escapes") << "\\*a\\* \\\\ \\q" << "*a* \\ \\q";
        QTest::newRow("link") << "see [the *docs*](https://a.b/c \"T\")." << "see {a https://a.b/c the }{a https://a.b/c {i docs}}.";
        QTest::newRow("bare link") << "(https://a.b/c_d?x=1)." << "({a https://a.b/c_d?x=1 https://a.b/c_d?x=1}).";
        QTest::newRow("angle link") << "<https://a.b> <b>" << "{a https://a.b https://a.b} <b>";
        QTest::newRow("image") << "![alt](https://a.b/i.png)" << "{a https://a.b/i.png alt}";
        QTest::newRow("script link") << "[x](javascript:alert(1)) [y](file:///etc/passwd)" << "[x](javascript:alert(1)) [y](file:///etc/passwd)";
        QTest::newRow("data image") << "![x](data:image/png;base64,AAAA)" << "![x](data:image/png;base64,AAAA)";
        QTest::newRow("brackets") << "a[0] [b]" << "a[0] [b]";
        QTest::newRow("html") << "<img src=x onerror=y>&amp;" << "<img src=x onerror=y>&amp;";
    }
    void spans() {
        QFETCH(QString, text);
        QTEST(describe(parse_inline(text)), "expected");
    }

    // Texts made to be slow: each stays about linear.
    void hostile_data() {
        QTest::addColumn<QString>("text");
        constexpr int n = 200'000;
        QTest::newRow("stars") << QString(n, u'*');
        QTest::newRow("star words") << QStringLiteral("*a ").repeated(n / 3);
        QTest::newRow("star pairs") << QStringLiteral("*a_b ").repeated(n / 5);
        QTest::newRow("brackets") << QString(n, u'[');
        QTest::newRow("images") << QStringLiteral("![").repeated(n / 2);
        QTest::newRow("links") << QStringLiteral("[a](").repeated(n / 4);
        QTest::newRow("backticks") << [] {
            QString s;
            for (int i = 1; s.size() < n; ++i) s += QString(i % 40, u'`') + u' ';
            return s;
        }();
        QTest::newRow("quotes") << QString(n, u'>');
        QTest::newRow("quote lines") << QStringLiteral(">>>>>>>>>>>>>>>>>>>\n").repeated(n / 20);
        QTest::newRow("dashes") << QStringLiteral("- ").repeated(n / 2);
        QTest::newRow("list lines") << QStringLiteral("- a\n").repeated(n / 4);
        QTest::newRow("pipes") << QString(n, u'|') + QStringLiteral("\n|-|-|\n");
        QTest::newRow("fences") << QStringLiteral("```\n").repeated(n / 4);
        QTest::newRow("one word") << QString(n, u'a');
        QTest::newRow("lines") << QString(n, u'\n');
        QTest::newRow("angles") << QString(n, u'<');
        QTest::newRow("http") << QStringLiteral("http://").repeated(n / 7);
    }
    void hostile() {
        QFETCH(QString, text);
        QElapsedTimer time;
        time.start();
        for (const Block& block : split_blocks(text)) {
            if (block.kind == Block::Kind::paragraph) QVERIFY(block.text.size() <= 8'000);
            if (block.kind != Block::Kind::code) (void)parse_inline(block.text);
        }
        QVERIFY2(time.elapsed() < 2'000, qPrintable(QStringLiteral("%1 ms").arg(time.elapsed())));
    }
};

QTEST_GUILESS_MAIN(TestMarkdown)
#include "tst_markdown.moc"
