#include <QAbstractTextDocumentLayout>
#include <QClipboard>
#include <QElapsedTimer>
#include <QSignalSpy>
#include <QTest>
#include <QToolButton>
#include <QVBoxLayout>

#include "ui/markdown/code_block.h"
#include "ui/markdown/markdown_view.h"
#include "ui/markdown/text_view.h"

using namespace headroom::ui;

class TestMarkdownView : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() { theme_ = std::make_unique<Theme>(Theme::Mode::light, 100); }

    void text_code_and_tables_have_their_views() {
        MarkdownView view(*theme_);
        view.resize(600, 100);
        view.show();
        view.set_text(QStringLiteral("# Title\n\nSome **bold** text\n\n```cpp\nint x;\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nend"));
        QCOMPARE(view.findChildren<TextView*>(QStringLiteral("answer_text")).size(), 2);
        QCOMPARE(view.findChildren<TextView*>(QStringLiteral("answer_table")).size(), 1);
        QCOMPARE(view.findChildren<CodeBlock*>().size(), 1);
        QCOMPARE(view.findChild<TextView*>(QStringLiteral("answer_text"))->toPlainText(), QStringLiteral("Title\nSome bold text"));
        auto* code = view.findChild<CodeBlock*>();
        QCOMPARE(code->code(), QStringLiteral("int x;"));
        QCOMPARE(code->language(), QStringLiteral("cpp"));
        QTest::mouseClick(code->findChild<QToolButton*>(QStringLiteral("copy_code")), Qt::LeftButton);
        QCOMPARE(QGuiApplication::clipboard()->text(), QStringLiteral("int x;"));
    }

    // The text that streaming leads to is the same as the text set at once, at every length.
    void growing_equals_setting() {
        const QString text = QStringLiteral("Intro\n\n- a **b**\n- c\n\n```c\nint a;\n```\n\nText `code` and\n\n> quote\n\n| x | y |\n|---|---|\n| 1 | 2 |\n\n1. one\n2. two\n");
        MarkdownView grown(*theme_);
        grown.resize(500, 100);
        for (qsizetype n = 1; n <= text.size(); n += 3) {
            grown.set_text(text.first(n));
            MarkdownView fresh(*theme_);
            fresh.resize(500, 100);
            fresh.set_text(text.first(n));
            QCOMPARE(contents(grown), contents(fresh));
        }
    }

    // Only the end is rendered again while an answer grows.
    void growing_renders_only_the_last_block() {
        QString text;
        for (int i = 0; i < 200; ++i) text += QStringLiteral("Paragraph number %1 with some words in it.\n\n").arg(i);
        MarkdownView view(*theme_);
        view.resize(600, 100);
        view.set_text(text);
        const int before = view.rendered_blocks();
        for (int i = 0; i < 10; ++i) view.set_text(text += QStringLiteral("word "));
        QVERIFY2(view.rendered_blocks() - before <= 11, qPrintable(QString::number(view.rendered_blocks() - before)));
    }

    void huge_code_is_quick() {
        QString code = QStringLiteral("```cpp\n");
        for (int i = 0; i < 50'000; ++i) code += QStringLiteral("int value_%1 = compute(%1, \"text\"); // comment\n").arg(i);
        MarkdownView view(*theme_);
        view.resize(700, 100);
        view.show();
        QElapsedTimer time;
        time.start();
        view.set_text(code);
        view.grab();
        QVERIFY2(time.elapsed() < 5'000, qPrintable(QString::number(time.elapsed())));  // 0.5 s in a release build
        QVERIFY(view.findChild<CodeBlock*>()->height() < 1'000);  // it scrolls inside
        qInfo("50,000 lines of code: %lld ms", time.elapsed());
    }

    void long_lines_are_quick() {
        MarkdownView view(*theme_);
        view.resize(700, 100);
        view.show();
        QElapsedTimer time;
        time.start();
        const QString line(500'000, u'x');
        view.set_text(QStringLiteral("```\n") + line + QStringLiteral("\n```\n\n") + line);
        view.grab();
        qInfo("lines of 500,000 characters: %lld ms", time.elapsed());
        QVERIFY2(time.elapsed() < 8'000, qPrintable(QString::number(time.elapsed())));
        QCOMPARE(view.findChild<CodeBlock*>()->code(), line);  // copied as it was written
    }

    // An answer cannot make the program fetch anything, and HTML is text.
    void hostile_markup_is_text() {
        MarkdownView view(*theme_);
        view.resize(600, 100);
        view.show();
        const QString html = QStringLiteral("<img src=\"file:///etc/passwd\"> <a href=\"javascript:x\">a</a> <table><tr><td>b</td></tr></table>");
        view.set_text(html + QStringLiteral("\n\n![i](https://example.org/i.png)"));
        view.grab();
        auto* text = view.findChild<TextView*>();
        QVERIFY(text->toPlainText().startsWith(html));
        QVERIFY(!text->toHtml().contains(QStringLiteral("<img")));
        QVERIFY(!text->toHtml().contains(QStringLiteral("<table")));
    }

    void links_show_their_address_and_open_on_click_only() {
        MarkdownView view(*theme_);
        view.resize(600, 100);
        view.show();
        QVERIFY(QTest::qWaitForWindowExposed(&view));
        view.set_text(QStringLiteral("[docs](https://example.org/docs)"));
        auto* text = view.findChild<TextView*>();
        QVERIFY(!text->openLinks());
        QTRY_VERIFY(text->minimumSizeHint().height() > 10);
        QCOMPARE(text->anchorAt(QPoint(4, text->height() / 2)), QStringLiteral("https://example.org/docs"));
    }

private:
    static QString contents(const MarkdownView& view) {
        QStringList parts;
        for (int i = 0; i < view.layout()->count(); ++i) {
            QWidget* widget = view.layout()->itemAt(i)->widget();
            if (auto* text = qobject_cast<TextView*>(widget)) parts << QStringLiteral("text: ") + text->toHtml();
            for (auto* table : widget->findChildren<TextView*>()) parts << QStringLiteral("table: ") + table->toPlainText();
            for (auto* code : widget->findChildren<CodeBlock*>()) parts << QStringLiteral("code: ") + code->code();
        }
        return parts.join(u'\n');
    }

    std::unique_ptr<Theme> theme_;
};

QTEST_MAIN(TestMarkdownView)
#include "tst_markdown_view.moc"
