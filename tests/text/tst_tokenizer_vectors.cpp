// Tokenizers against ids that other implementations gave for the same texts.

#include <QTest>

#include <fstream>
#include <sstream>

#include <nlohmann/json.hpp>

#include "core/base/paths.h"
#include "core/text/tokenizer.h"
#include "tests/support/shared_data.h"

using namespace headroom;

namespace {

std::unique_ptr<const text::Tokenizer> load(const std::string& part) {
    const auto file = gguf::File::open(test::shared_data(part));
    if (!file) {
        qWarning("%s", file.error().message.c_str());
        return nullptr;
    }
    auto tokenizer = text::Tokenizer::load(*file);
    if (!tokenizer) qWarning("%s", tokenizer.error().message.c_str());
    return tokenizer ? std::move(*tokenizer) : nullptr;
}

std::string contents(const std::string& part) {
    return read_file(test::shared_data(part), 64u << 20).value_or(std::string());
}

std::string join(const std::vector<text::TokenId>& ids) {
    std::string out;
    for (const auto id : ids) out += std::to_string(id) + ' ';
    return out;
}

}  // namespace

class TestTokenizerVectors : public QObject {
    Q_OBJECT

private slots:
    void vocabulary_data() {
        QTest::addColumn<QString>("name");
        for (const char* name : {"deepseek-llm", "falcon", "gpt-2", "llama-spm", "refact", "starcoder"}) QTest::newRow(name) << name;
    }

    // The .inp file holds texts between separator lines, the .out file the ids of each on one line, without BOS.
    void vocabulary() {
        QFETCH(QString, name);
        const std::string base = "testdata/vocab/ggml-vocab-" + name.toStdString() + ".gguf";
        if (test::shared_data(base).empty()) QSKIP(test::missing_shared(base));
        const auto tokenizer = load(base);
        QVERIFY(tokenizer);
        QVERIFY(tokenizer->warnings().empty());

        const std::string separator = "\n__ggml_vocab_test__\n";
        std::string input = contents(base + ".inp");
        std::istringstream expected(contents(base + ".out"));
        int texts = 0;
        for (std::size_t at = input.find(separator); at != std::string::npos; at = input.find(separator)) {
            const std::string text = input.substr(0, at);
            input.erase(0, at + separator.size());
            std::string line;
            QVERIFY(std::getline(expected, line));
            std::istringstream numbers(line);
            std::vector<text::TokenId> want;
            for (int id = 0; numbers >> id;) want.push_back(id);
            const auto got = tokenizer->encode(text, {.parse_special = false, .add_bos = false});
            QVERIFY2(got == want, ("text \"" + text + "\": got " + join(got) + ", expected " + join(want)).c_str());
            QCOMPARE(tokenizer->decode(got, false), text);
            ++texts;
        }
        QVERIFY2(texts >= 40, std::to_string(texts).c_str());
    }

    void built_in_model() {
        if (test::shared_data("models/reference.json").empty()) QSKIP(test::missing_shared("models/reference.json"));
        const auto tokenizer = load("models/guide-f16.gguf");
        QVERIFY(tokenizer);
        QVERIFY(tokenizer->warnings().empty());
        QCOMPARE(tokenizer->size(), 8192);
        const auto reference = nlohmann::json::parse(contents("models/reference.json"));
        QCOMPARE(reference["tokenizer"].size(), std::size_t(70));
        for (const auto& entry : reference["tokenizer"]) {
            const std::string text = entry["text"];
            for (const bool special : {true, false}) {
                const std::vector<text::TokenId> want = entry[special ? "ids" : "ids_plain"];
                const auto got = tokenizer->encode(text, {.parse_special = special});
                QVERIFY2(got == want, ("text \"" + text + "\": got " + join(got) + ", expected " + join(want)).c_str());
                QCOMPARE(tokenizer->decode(got, true), text);
            }
        }
    }
};

QTEST_GUILESS_MAIN(TestTokenizerVectors)
#include "tst_tokenizer_vectors.moc"
