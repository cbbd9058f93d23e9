#include <QTest>

#include "core/base/paths.h"
#include "core/gguf/file.h"
#include "tests/support/shared_data.h"

using namespace headroom;
using namespace headroom::gguf;

// Files that other programs wrote.
class TestGgufRealFiles : public QObject {
    Q_OBJECT
private slots:
    void models_data() {
        QTest::addColumn<QString>("part");
        QTest::addColumn<quint64>("bytes");
        QTest::addColumn<int>("type");  // of the embedding
        QTest::newRow("f16") << "models/guide-f16.gguf" << quint64(50460096) << int(TensorType::f16);
        QTest::newRow("q8_0") << "models/guide-q8_0.gguf" << quint64(26990016) << int(TensorType::q8_0);
        QTest::newRow("q4_k_m") << "models/guide-q4_k_m.gguf" << quint64(15848896) << int(TensorType::q4_k);
        QTest::newRow("iq4_xs") << "models/guide-iq4_xs.gguf" << quint64(14628288) << int(TensorType::iq4_xs);
    }
    void models() {
        QFETCH(QString, part);
        QFETCH(quint64, bytes);
        QFETCH(int, type);
        const auto path = test::shared_data(part.toStdString());
        if (path.empty()) QSKIP(test::missing_shared(part.toStdString()));
        const auto file = File::open(path);
        QVERIFY2(file.has_value(), file ? "" : file.error().message.c_str());
        QCOMPARE(file->file_bytes(), std::uint64_t(bytes));
        QCOMPARE(file->version(), 3u);
        QCOMPARE(file->name(), to_utf8(path));
        QCOMPARE(file->shards().size(), std::size_t(1));
        QVERIFY(file->require_supported_types().has_value());
        QCOMPARE(std::string(**file->get_string("general.architecture")), std::string("qwen3moe"));
        const Tensor* embedding = file->find_tensor("token_embd.weight");
        QVERIFY(embedding);
        QCOMPARE(int(embedding->type), type);
        const auto tokens = file->get_array("tokenizer.ggml.tokens", ValueType::string);
        QVERIFY(tokens && *tokens);
        QCOMPARE((*tokens)->count, std::uint64_t((*tokens)->strings.size()));
        QCOMPARE(embedding->shape[1], (*tokens)->count);
        // The data of all tensors and the tables make up the file, but for alignment.
        std::uint64_t sum = 0;
        for (const Tensor& tensor : file->tensors()) sum += tensor.data.size();
        QVERIFY(sum < file->file_bytes());
        QVERIFY(sum > file->file_bytes() * 9 / 10);
    }
    void vocabularies_data() {
        QTest::addColumn<QString>("name");
        QTest::addColumn<QString>("model");
        QTest::addColumn<int>("tokens");
        QTest::newRow("deepseek-llm") << "deepseek-llm" << "gpt2" << 102400;
        QTest::newRow("falcon") << "falcon" << "gpt2" << 65024;
        QTest::newRow("gpt-2") << "gpt-2" << "gpt2" << 50257;
        QTest::newRow("llama-spm") << "llama-spm" << "llama" << 32000;
        QTest::newRow("refact") << "refact" << "gpt2" << 49216;
        QTest::newRow("starcoder") << "starcoder" << "gpt2" << 49152;
    }
    void vocabularies() {
        QFETCH(QString, name);
        QFETCH(QString, model);
        QFETCH(int, tokens);
        const auto part = ("testdata/vocab/ggml-vocab-" + name + ".gguf").toStdString();
        const auto path = test::shared_data(part);
        if (path.empty()) QSKIP(test::missing_shared(part));
        const auto file = File::open(path);
        QVERIFY2(file.has_value(), file ? "" : file.error().message.c_str());
        QVERIFY(file->tensors().empty());
        QCOMPARE(std::string(**file->get_string("tokenizer.ggml.model")), model.toStdString());
        const auto list = file->get_array("tokenizer.ggml.tokens", ValueType::string);
        QVERIFY(list && *list);
        QCOMPARE((*list)->count, std::uint64_t(tokens));
    }
};

QTEST_GUILESS_MAIN(TestGgufRealFiles)
#include "tst_gguf_real_files.moc"
