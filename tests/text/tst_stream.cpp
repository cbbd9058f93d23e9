#include <QTest>

#include "core/text/stream.h"
#include "core/base/utf8.h"

using namespace headroom::text;

namespace {

const std::string kBad = "\xEF\xBF\xBD";  // U+FFFD

// All ways to cut a text of n bytes into pieces are 2^(n-1): for short texts, all of them.
std::vector<std::vector<std::string>> all_cuts(const std::string& text) {
    std::vector<std::vector<std::string>> result;
    const unsigned ways = text.empty() ? 1u : 1u << (text.size() - 1);
    for (unsigned cuts = 0; cuts < ways; ++cuts) {
        std::vector<std::string> pieces(1);
        for (std::size_t i = 0; i < text.size(); ++i) {
            pieces.back().push_back(text[i]);
            if (i + 1 < text.size() && ((cuts >> i) & 1u)) pieces.emplace_back();
        }
        result.push_back(std::move(pieces));
    }
    return result;
}

std::string decode(const std::vector<std::string>& pieces) {
    Utf8Stream stream;
    std::string out;
    for (const auto& piece : pieces) {
        const std::string text = stream.push(piece);
        if (headroom::utf8_valid_prefix(text) != text.size()) return "<not UTF-8>";
        out += text;
    }
    return out + stream.finish();
}

struct Stopped {
    std::string text;
    bool stopped = false;
    bool operator==(const Stopped&) const = default;
};

Stopped run(const std::vector<std::string>& stops, const std::vector<std::string>& pieces) {
    StopMatcher matcher(stops);
    Stopped result;
    for (const auto& piece : pieces) {
        const auto out = matcher.push(piece);
        result.text += out.text;
        if (out.stopped) {
            result.stopped = true;
            return result;
        }
    }
    result.text += matcher.finish();
    return result;
}

// What the class promises, the slow way: the stop that ends first, the longest of those.
Stopped expected(const std::vector<std::string>& stops, const std::string& text) {
    for (std::size_t end = 1; end <= text.size(); ++end) {
        std::size_t longest = 0;
        for (const auto& stop : stops)
            if (!stop.empty() && text.substr(0, end).ends_with(stop)) longest = std::max(longest, stop.size());
        if (longest > 0) return {text.substr(0, end - longest), true};
    }
    return {text, false};
}

}  // namespace

class TestStream : public QObject {
    Q_OBJECT

private slots:
    void utf8_data() {
        QTest::addColumn<QByteArray>("bytes");
        QTest::addColumn<QByteArray>("text");
        const auto row = [](const char* name, const std::string& bytes, const std::string& text) {
            QTest::newRow(name) << QByteArray::fromStdString(bytes) << QByteArray::fromStdString(text);
        };
        row("empty", "", "");
        row("ascii and NUL", std::string("a\0b", 3), std::string("a\0b", 3));
        row("2, 3 and 4 bytes", "\u00fc\u4f60\U0001f999", "\u00fc\u4f60\U0001f999");
        row("borders", "\u007f\u0080\u07ff\u0800\ud7ff\ue000", "\u007f\u0080\u07ff\u0800\ud7ff\ue000");
        row("last", "\U00010000\U0010ffff", "\U00010000\U0010ffff");
        row("noncharacter", "\xEF\xB7\x90", "\xEF\xB7\x90");
        row("lone continuation", "a\x80z", "a" + kBad + "z");
        row("overlong 2", "\xC0\x80", kBad + kBad);
        row("overlong 3", "\xE0\x80\x80", kBad + kBad + kBad);
        row("overlong 4", "\xF0\x8F\xBF\xBF", kBad + kBad + kBad + kBad);
        row("surrogate", "\xED\xA0\x80", kBad + kBad + kBad);
        row("too large", "\xF4\x90\x80\x80", kBad + kBad + kBad + kBad);
        row("FF", "\xFF\xFE", kBad + kBad);
        // The maximal subparts of the Unicode standard, table 3-11.
        row("subparts", "\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63", "a" + kBad + kBad + kBad + "b" + kBad + "c");
        row("ends inside 2", "a\xC3", "a" + kBad);
        row("ends inside 3", "a\xE4\xBD", "a" + kBad);
        row("ends inside 4", "a\xF0\x9F\xA6", "a" + kBad);
    }
    void utf8() {
        QFETCH(QByteArray, bytes);
        QFETCH(QByteArray, text);
        for (const auto& pieces : all_cuts(bytes.toStdString())) QCOMPARE(QByteArray::fromStdString(decode(pieces)), text);
    }

    void utf8_is_held_back_and_no_longer() {
        Utf8Stream stream;
        QCOMPARE(stream.push("a\xF0\x9F"), std::string("a"));
        QCOMPARE(stream.push("\xA6"), std::string());
        QCOMPARE(stream.push("\x99" "b"), std::string("\U0001f999b"));
        QCOMPARE(stream.push("\xF0\x9F"), std::string());
        QCOMPARE(stream.push("c"), kBad + "c");
        QCOMPARE(stream.finish(), std::string());
        QCOMPARE(stream.push("\xE4"), std::string());
        QCOMPARE(stream.finish(), kBad);
        QCOMPARE(stream.finish(), std::string());  // only once
    }

    void stops_data() {
        QTest::addColumn<QStringList>("stops");
        QTest::addColumn<QString>("text");
        QTest::newRow("none") << QStringList{} << "abc";
        QTest::newRow("empty ones") << QStringList{"", ""} << "abc";
        QTest::newRow("not met") << QStringList{"xyz"} << "abcxyabc";
        QTest::newRow("met") << QStringList{"xyz"} << "abcxyzabc";
        QTest::newRow("at the start") << QStringList{"ab"} << "abc";
        QTest::newRow("at the end") << QStringList{"bc"} << "abc";
        QTest::newRow("one byte") << QStringList{"c"} << "abcd";
        QTest::newRow("a beginning at the end") << QStringList{"cde"} << "abcd";
        QTest::newRow("false start inside itself") << QStringList{"aab"} << "aaaab!";
        QTest::newRow("period") << QStringList{"ababac"} << "abababacab";
        QTest::newRow("one inside the other") << QStringList{"abcd", "bc"} << "xabcdx";
        QTest::newRow("same end") << QStringList{"c", "bc", "abc"} << "xabcx";
        QTest::newRow("a longer one fails late") << QStringList{"abcde", "cx"} << "abcdabcx";
        QTest::newRow("overlapping beginnings") << QStringList{"abab!", "ba?"} << "xababa?y";
        QTest::newRow("line ends") << QStringList{"\n\n", "\nUser:"} << "hi\nUs\nUser:x";
        QTest::newRow("many bytes") << QStringList{"\u00fc\u4f60"} << "x\u00fc\u00fc\u4f60y";
    }
    void stops() {
        QFETCH(QStringList, stops);
        QFETCH(QString, text);
        std::vector<std::string> list;
        for (const auto& stop : stops) list.push_back(stop.toStdString());
        const std::string whole = text.toStdString();
        const Stopped want = expected(list, whole);
        for (const auto& pieces : all_cuts(whole)) {
            const Stopped got = run(list, pieces);
            QCOMPARE(got.text, want.text);
            QCOMPARE(got.stopped, want.stopped);
        }
    }

    // Every text of up to 7 letters from {a, b}, every stop of up to 3: nothing lost, nothing shown of a stop.
    void stops_exhaustively() {
        const auto words = [](std::size_t longest) {
            std::vector<std::string> all;
            for (std::size_t length = 1; length <= longest; ++length)
                for (unsigned bits = 0; bits < (1u << length); ++bits) {
                    std::string word;
                    for (std::size_t i = 0; i < length; ++i) word.push_back((bits >> i) & 1u ? 'b' : 'a');
                    all.push_back(word);
                }
            return all;
        };
        const auto stops = words(3);
        for (const auto& text : words(7)) {
            std::vector<std::string> letters;
            for (const char c : text) letters.emplace_back(1, c);
            for (const auto& one : stops)
                for (const auto& other : stops) {
                    const Stopped want = expected({one, other}, text);
                    QVERIFY(run({one, other}, {text}) == want);
                    QVERIFY(run({one, other}, letters) == want);
                }
        }
    }

    void only_what_may_become_a_stop_is_held_back() {
        StopMatcher matcher({"\n\nUser:", "</s>"});
        QCOMPARE(matcher.push("Hello\n").text, std::string("Hello"));
        QCOMPARE(matcher.push("\n").text, std::string());
        QCOMPARE(matcher.push("\n").text, std::string("\n"));  // "\n\n" may still become the stop
        QCOMPARE(matcher.push("Us").text, std::string());
        QCOMPARE(matcher.push("ual<").text, std::string("\n\nUsual"));
        QCOMPARE(matcher.finish(), std::string("<"));
        QCOMPARE(matcher.finish(), std::string());
        QVERIFY(!matcher.push("/s>").stopped);  // finish() has forgotten the beginning
    }
};

QTEST_GUILESS_MAIN(TestStream)
#include "tst_stream.moc"
