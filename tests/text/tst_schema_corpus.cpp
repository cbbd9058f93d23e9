// Schemas like those that programs send: what the grammars of them write is valid by this program's own check and by an independent validator.

#include <QProcess>
#include <QStandardPaths>
#include <QTest>

#include <fstream>
#include <map>
#include <random>
#include <sstream>

#include "core/gguf/file.h"
#include "core/text/constraint.h"
#include "core/text/grammar/schema_facts.h"
#include "core/text/json_schema.h"
#include "tests/support/shared_data.h"

using namespace headroom;
using text::Json;
using text::TokenId;

class TestSchemaCorpus : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() {
        for (const auto& entry : std::filesystem::directory_iterator(test::source_file("tests/server/schemas"))) {
            if (entry.path().extension() != ".json") continue;
            std::stringstream text;
            text << std::ifstream(entry.path(), std::ios::binary).rdbuf();
            corpus_[entry.path().stem().string()] = {.file = Json::parse(text.str())};
        }
        QVERIFY(corpus_.size() >= 30);
        for (auto& [name, one] : corpus_) {
            auto grammar = text::compile_json_schema(one.file["schema"]);
            QVERIFY2(grammar, grammar ? "" : (name + ": " + grammar.error().message).c_str());
            one.grammar = *grammar;
        }
    }

    // Documents written by hand: the grammar makes the valid ones, in one line and in many, and none of the others.
    void documents() {
        for (const auto& [name, one] : corpus_) {
            for (const Json& document : one.file["valid"]) {
                for (const int indent : {-1, 0, 2, 4}) QVERIFY2(one.grammar->matches(document.dump(indent)), (name + " refuses " + document.dump()).c_str());
                QVERIFY2(is_valid(one.file["schema"], document), (name + ": " + document.dump()).c_str());
            }
            for (const Json& document : one.file["invalid"]) {
                QVERIFY2(!one.grammar->matches(document.dump()), (name + " allows " + document.dump()).c_str());
                QVERIFY2(!is_valid(one.file["schema"], document), (name + ": " + document.dump()).c_str());
            }
        }
    }

    // Random tokens of the built-in model's vocabulary, of those that may follow.
    void random_walks() {
        const auto file = gguf::File::open(test::source_file("resources/model/guide-q4_k_m.gguf"));
        QVERIFY(file);
        const auto tokenizer = text::Tokenizer::load(*file);
        QVERIFY(tokenizer);
        const auto trie = text::TokenTrie::build(**tokenizer);
        std::vector<float> logits(static_cast<std::size_t>((*tokenizer)->size()));
        std::mt19937 random(6);
        std::size_t tokens = 0;
        for (auto& [name, one] : corpus_) {
            const auto over = std::make_shared<const text::TokenGrammar>(one.grammar, trie);
            constexpr int kWalks = 12, kSteps = 60;
            for (int walk = 0; walk < kWalks; ++walk) {
                text::Constraint constraint(over);
                std::string written;
                for (int step = 0; step < kSteps && !constraint.finished(); ++step, ++tokens) {
                    std::ranges::fill(logits, 0.0f);
                    QVERIFY2(constraint.mask(logits), written.c_str());
                    const TokenId id = choose(random, logits, constraint, *trie);
                    QVERIFY2(constraint.accept(id), written.c_str());
                    written += (*tokenizer)->piece(id, false);
                }
                written += constraint.shortest_ending();
                const Json document = Json::parse(written, nullptr, false);
                QVERIFY2(!document.is_discarded() && one.grammar->matches(written), (name + " writes " + written).c_str());
                QVERIFY2(is_valid(one.file["schema"], document), (name + " writes " + written).c_str());
                one.written.push_back(written);
            }
        }
        QVERIFY(tokens > 5'000);
    }

    // All of it once more by ajv. Its package is named in tests/server/npm.
    void independent_validator() {
        const QString node = QStandardPaths::findExecutable("node"), npm = QStandardPaths::findExecutable("npm");
        if (node.isEmpty() || npm.isEmpty()) QSKIP("node and npm are not installed");
        const std::filesystem::path packages = test::source_file("tests/server/npm");
        const QTemporaryDir folder;
        const auto copy = [&](const std::filesystem::path& from) {
            std::error_code code;
            std::filesystem::copy_file(from, std::filesystem::path(folder.path().toStdString()) / from.filename(), code);
            return !code;
        };
        if (!copy(packages / "package.json") || !copy(packages / "package-lock.json")) QSKIP("there is no tests/server/npm");
        QVERIFY(copy(test::source_file("tests/server/schemas/check.mjs")));
        QProcess process;
        process.setWorkingDirectory(folder.path());
        process.setProcessChannelMode(QProcess::MergedChannels);
        process.start(npm, {"ci", "--no-audit", "--no-fund", "--ignore-scripts"});
        if (!process.waitForFinished(200'000) || process.exitCode() != 0) QSKIP("the packages could not be had from npm");

        std::ofstream lines(folder.filePath("documents").toStdString(), std::ios::binary);
        for (const auto& [name, one] : corpus_) {
            Json line{{"name", name}, {"schema", one.file["schema"]}, {"documents", one.written}, {"invalid", Json::array()}};
            for (const Json& document : one.file["valid"]) line["documents"].push_back(document.dump());
            for (const Json& document : one.file["invalid"]) line["invalid"].push_back(document.dump());
            lines << line.dump() << '\n';
        }
        lines.close();
        process.start(node, {"check.mjs", "documents"});
        QVERIFY(process.waitForFinished(60'000));
        const QByteArray output = process.readAll();
        QVERIFY2(process.exitCode() == 0, output.constData());
        qInfo("ajv: %s", output.trimmed().constData());
    }

private:
    struct Entry {
        Json file{};  // {"schema", "valid", "invalid"}
        std::shared_ptr<const text::Grammar> grammar{};
        std::vector<std::string> written{};
    };

    static bool is_valid(const Json& schema, const Json& document) {
        auto read = text::SchemaDocument::read(schema, "#", {});
        if (!read) return false;
        const auto facts = read->facts_of(schema, "");
        return facts && read->allows(*facts, document).value_or(false);
    }

    // Any that may follow; now and then one that leads to the end, so that whole documents come of it.
    static TokenId choose(std::mt19937& random, const std::vector<float>& logits, const text::Constraint& constraint, const text::TokenTrie& trie) {
        std::vector<TokenId> ids;
        const std::string ending = random() % 3 == 0 ? constraint.shortest_ending() : std::string();
        for (std::size_t i = 0; i < logits.size(); ++i) {
            const auto id = static_cast<TokenId>(i);
            if (logits[i] == 0 && (ending.empty() || (!trie.bytes(id).empty() && ending.starts_with(trie.bytes(id))))) ids.push_back(id);
        }
        return ids[random() % ids.size()];
    }

    std::map<std::string, Entry> corpus_;
};

QTEST_GUILESS_MAIN(TestSchemaCorpus)
#include "tst_schema_corpus.moc"
