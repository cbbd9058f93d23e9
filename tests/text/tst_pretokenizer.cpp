#include <QTest>

#include "core/text/pretokenizer.h"

using namespace headroom::text;

namespace {

std::string pieces(std::string_view kind, std::string_view text) {
    const auto* found = find_pre_tokenizer(kind);
    if (found == nullptr) return "<unknown>";
    const auto pre_tokenizer = PreTokenizer::compile(*found);
    if (!pre_tokenizer) return pre_tokenizer.error().message;
    std::vector<std::string_view> list;
    pre_tokenizer->split(text, list);
    std::string joined;
    for (const auto piece : list) joined.append(joined.empty() ? "" : "|").append(piece);
    return joined;
}

}  // namespace

class TestPreTokenizer : public QObject {
    Q_OBJECT

private slots:
    // Expected: the same patterns in another engine for regular expressions (the Python module `regex`).
    void split_data() {
        QTest::addColumn<QByteArray>("expected");
        const auto row = [](const char* name, const char* text) { QTest::newRow(name) << QByteArray(text); };
        row("gpt-2",
            "I|'|VE| we|'|Ll| they|'re| | x|\302\240|y|\341\240\216|z| 12345| \302\275\302\262|\015\012\015\012 | tab|\011"
            "|\011|end|...| (|\316\261\316\262|)|\316\251x| \340\244\250\340\244\256\340\244\270|\340\245\215|\340\244\244"
            "|\340\245\207| \344\275\240\345\245\275|\343\200\202|\344\270\226\347\225\214| XMLHttp|/|\012|/| \342\200\203"
            "| '|S| a|_|b|\012 \012  ");
        row("llama-bpe",
            "I|'VE| we|'Ll| they|'re| | x|\302\240y|\341\240\216z| |123|45| |\302\275\302\262|\015\012\015\012| | tab|\011"
            "|\011end|...| (|\316\261\316\262|)\316\251x| \340\244\250\340\244\256\340\244\270|\340\245\215\340\244\244|\340"
            "\245\207| \344\275\240\345\245\275|\343\200\202\344\270\226\347\225\214| XMLHttp|/\012|/| \342\200\203| '|S|"
            " a|_b|\012 \012|  ");
        row("qwen2",
            "I|'VE| we|'Ll| they|'re| | x|\302\240y|\341\240\216z| |1|2|3|4|5| |\302\275|\302\262|\015\012\015\012| | tab"
            "|\011|\011end|...| (|\316\261\316\262|)\316\251x| \340\244\250\340\244\256\340\244\270|\340\245\215\340\244\244"
            "|\340\245\207| \344\275\240\345\245\275|\343\200\202\344\270\226\347\225\214| XMLHttp|/\012|/| \342\200\203|"
            " '|S| a|_b|\012 \012|  ");
        row("deepseek-coder",
            "I|'|VE| we|'|Ll| they|'|re| | x|\302\240y|\341\240\216|z| |1|2|3|4|5| |\302\275|\302\262|\015|\012|\015|\012"
            "| | tab|\011|\011end|...| (|\316\261\316\262|)|\316\251x| |\340\244\250\340\244\256\340\244\270|\340\245\215"
            "|\340\244\244|\340\245\207| |\344\275\240\345\245\275|\343\200\202|\344\270\226\347\225\214| XMLHttp|/|\012|"
            "/| |\342\200\203| '|S| a|_|b|\012| |\012|  ");
        row("tekken",
            "I|'VE| we|'Ll| they|'re| | x|\302\240y|\341\240\216z| |1|2|3|4|5| |\302\275|\302\262|\015\012\015\012| | tab"
            "|\011|\011end|...| (|\316\261\316\262|)\316\251x| \340\244\250\340\244\256\340\244\270\340\245\215\340\244\244"
            "\340\245\207| \344\275\240\345\245\275|\343\200\202\344\270\226\347\225\214| XMLHttp|/\012/| \342\200\203| '"
            "|S| a|_b|\012 \012|  ");
        row("smollm",
            "I|'|VE| we|'|Ll| they|'re| | x|\302\240|y|\341\240\216|z| |1|2|3|4|5| |\302\275|\302\262|\015\012\015\012 | "
            "tab|\011|\011|end|...| (|\316\261\316\262|)|\316\251x| \340\244\250\340\244\256\340\244\270|\340\245\215|\340"
            "\244\244|\340\245\207| \344\275\240\345\245\275|\343\200\202|\344\270\226\347\225\214| XMLHttp|/|\012|/| \342"
            "\200\203| '|S| a|_|b|\012 \012  ");
    }
    void split() {
        QFETCH(QByteArray, expected);
        const std::string text =
            "I'VE we'Ll they're  x\302\240y\341\240\216z 12345 \302\275\302\262\015\012\015\012  tab\011\011end... (\316\261"
            "\316\262)\316\251x \340\244\250\340\244\256\340\244\270\340\245\215\340\244\244\340\245\207 \344\275\240\345"
            "\245\275\343\200\202\344\270\226\347\225\214 XMLHttp/\012/ \342\200\203 'S a_b\012 \012  ";
        QCOMPARE(QByteArray::fromStdString(pieces(QTest::currentDataTag(), text)), expected);
    }

    void kin() {
        QVERIFY(find_pre_tokenizer("no-such") == nullptr);
        QVERIFY(find_pre_tokenizer("") == nullptr);
        const auto same = [](const char* one, const char* other) {
            return find_pre_tokenizer(one) && find_pre_tokenizer(other) &&
                   find_pre_tokenizer(one)->patterns == find_pre_tokenizer(other)->patterns;
        };
        QVERIFY(same("llama-bpe", "llama3"));
        QVERIFY(same("qwen2", "deepseek-r1-qwen"));
        for (const char* name : {"refact", "command-r", "smollm"}) QVERIFY(same("starcoder", name));
        QVERIFY(!same("qwen2", "llama-bpe"));
        QVERIFY(find_pre_tokenizer("llama-bpe")->add_bos && find_pre_tokenizer("llama-bpe")->whole_words_first);
        QVERIFY(!find_pre_tokenizer("qwen2")->add_bos && !find_pre_tokenizer("qwen2")->whole_words_first);
    }

    void every_pattern_compiles_data() {
        QTest::addColumn<QString>("name");
        for (const char* name : {"default", "gpt-2", "llama-bpe", "qwen2", "qwen35", "tekken", "gpt-4o", "starcoder", "falcon",
                                 "deepseek-llm", "deepseek-coder", "deepseek-v3"})
            QTest::newRow(name) << name;
    }
    // … and takes long runs, which must not cost their length squared.
    void every_pattern_compiles() {
        QFETCH(QString, name);
        const auto pre_tokenizer = PreTokenizer::compile(*find_pre_tokenizer(name.toStdString()));
        QVERIFY2(pre_tokenizer.has_value(), pre_tokenizer ? "" : pre_tokenizer.error().message.c_str());
        const std::size_t n = 100'000;
        for (const std::string unit : {" ", "a", "A", "1", "!", "\n", "\t ", "\u4e00", "'", "\u0301", "a1", " \r\n"}) {
            std::string text = "x";
            for (std::size_t i = 0; i < n / unit.size(); ++i) text += unit;
            text += "\u4e00";
            std::vector<std::string_view> list;
            pre_tokenizer->split(text, list);
            std::size_t bytes = 0;
            for (const auto piece : list) {
                QVERIFY(!piece.empty() && piece.data() == text.data() + bytes);
                bytes += piece.size();
            }
            QCOMPARE(bytes, text.size());
        }
    }

    void bytes_that_are_no_text() {
        QCOMPARE(pieces("qwen2", "ab\xFF\xFE cd"), std::string("ab|\xFF\xFE| cd"));
        QCOMPARE(pieces("qwen2", "\xC3"), std::string("\xC3"));
        QCOMPARE(pieces("qwen2", std::string("a\0b", 3)), std::string("a|\0b", 4));
        QCOMPARE(pieces("qwen2", ""), std::string());
    }
};

QTEST_GUILESS_MAIN(TestPreTokenizer)
#include "tst_pretokenizer.moc"
