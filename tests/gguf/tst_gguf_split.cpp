#include <QFile>
#include <QTemporaryDir>
#include <QTest>

#include "core/base/paths.h"
#include "core/gguf/file.h"
#include "core/gguf/split.h"
#include "core/gguf/writer.h"

using namespace headroom;
using namespace headroom::gguf;

namespace {

constexpr int tensor_count = 5;

Writer model() {
    Writer writer;
    writer.add("general.name", "in parts");
    for (int i = 0; i < tensor_count; ++i) {
        writer.add_tensor(fmt::format("t{}", i), TensorType::f32, {4}, std::vector<std::byte>(16, static_cast<std::byte>(i)));
    }
    return writer;
}

// One part with metadata as given: to make parts that do not fit.
void write_part(const std::filesystem::path& path, std::optional<int> number, std::optional<int> count, std::optional<int> tensors,
                const std::string& tensor_name = {}) {
    Writer writer;
    if (number) writer.add("split.no", static_cast<std::uint16_t>(*number));
    if (count) writer.add("split.count", static_cast<std::uint16_t>(*count));
    if (tensors) writer.add("split.tensors.count", static_cast<std::int32_t>(*tensors));
    if (!tensor_name.empty()) writer.add_tensor(tensor_name, TensorType::f32, {4}, std::vector<std::byte>(16));
    // The writer reads back what it wrote, which fails for a part whose others are not there.
    static_cast<void>(writer.write(path));
}

QString error_of(const std::filesystem::path& path) {
    const auto file = File::open(path);
    return file ? QString() : QString::fromStdString(file.error().message);
}

}  // namespace

class TestGgufSplit : public QObject {
    Q_OBJECT
    QTemporaryDir folder_;
    std::filesystem::path folder() const { return from_utf8(folder_.path().toStdString()); }
    std::filesystem::path part(const std::string& prefix, std::uint32_t number, std::uint32_t count) const {
        return folder() / split_name(prefix, number, count);
    }

private slots:
    void names() {
        const auto parsed = parse_split_name("a-model-q4-00002-of-00012.gguf");
        QVERIFY(parsed);
        QCOMPARE(parsed->prefix, std::string("a-model-q4"));
        QCOMPARE(parsed->number, 2u);
        QCOMPARE(parsed->count, 12u);
        QCOMPARE(split_name("a-model-q4", 2, 12), std::string("a-model-q4-00002-of-00012.gguf"));
        for (const char* name : {"a.gguf", "a-00001-of-00002", "-00001-of-00002.gguf", "a-00003-of-00002.gguf", "a-00000-of-00002.gguf",
                                 "a-0001-of-00002.gguf", "a-+0001-of-00002.gguf", "a-00001-of-0000x.gguf", "a00001-of-00002.gguf", ""}) {
            QVERIFY2(!parse_split_name(name), name);
        }
    }
    void opensByAnyName_data() {
        QTest::addColumn<QList<int>>("sizes");
        QTest::newRow("two files") << QList<int>{2, 3};
        QTest::newRow("three files") << QList<int>{1, 3, 1};
        QTest::newRow("first without tensors") << QList<int>{0, 2, 3};
        QTest::newRow("one empty in the middle") << QList<int>{2, 0, 3};
        QTest::newRow("a file for each") << QList<int>{1, 1, 1, 1, 1};
        QTest::newRow("a split of one") << QList<int>{5};
    }
    void opensByAnyName() {
        QFETCH(QList<int>, sizes);
        const std::vector<std::size_t> tensors_per_file(sizes.begin(), sizes.end());
        const auto paths = model().write_split(folder(), "größe", tensors_per_file);
        QVERIFY2(paths.has_value(), paths ? "" : paths.error().message.c_str());
        QCOMPARE(paths->size(), tensors_per_file.size());
        for (const auto& path : *paths) {
            const auto file = File::open(path);
            QVERIFY2(file.has_value(), file ? "" : file.error().message.c_str());
            QCOMPARE(file->name(), to_utf8(paths->front()));
            QVERIFY(**file->get_string("general.name") == "in parts");
            QCOMPARE(file->shards().size(), paths->size());
            QCOMPARE(file->tensors().size(), std::size_t(tensor_count));
            std::size_t shard = 0;
            std::size_t in_shard = 0;
            std::uint64_t bytes = 0;
            for (std::size_t i = 0; i < paths->size(); ++i) {
                QVERIFY(file->shards()[i].path() == (*paths)[i]);
                bytes += file->shards()[i].bytes().size();
            }
            QCOMPARE(file->file_bytes(), bytes);
            for (int i = 0; i < tensor_count; ++i, ++in_shard) {
                while (in_shard == tensors_per_file[shard]) ++shard, in_shard = 0;
                const Tensor* tensor = file->find_tensor(fmt::format("t{}", i));
                QVERIFY(tensor);
                QCOMPARE(tensor, &file->tensors()[static_cast<std::size_t>(i)]);
                QCOMPARE(std::size_t(tensor->shard), shard);
                QCOMPARE(tensor->data.size(), std::size_t(16));
                QVERIFY(tensor->data[0] == static_cast<std::byte>(i));
                const auto file_bytes = file->shards()[shard].bytes();
                QVERIFY(tensor->data.data() >= file_bytes.data() &&
                        tensor->data.data() + 16 <= file_bytes.data() + file_bytes.size());
            }
        }
        for (const auto& path : *paths) std::filesystem::remove(path);
    }
    void eachAlignmentIsThatOfItsFile() {
        Writer writer = model();
        writer.set_alignment(128);
        const std::array<std::size_t, 2> sizes{2, 3};
        const auto paths = writer.write_split(folder(), "aligned", sizes);
        QVERIFY(paths.has_value());
        const auto file = File::open((*paths)[1]);
        QVERIFY(file.has_value());
        for (const Tensor& tensor : file->tensors()) {
            QCOMPARE(std::uint64_t(tensor.data.data() - file->shards()[tensor.shard].bytes().data()) % 128, std::uint64_t(0));
        }
    }
    void aMissingPart() {
        const std::array<std::size_t, 3> sizes{1, 2, 2};
        const auto paths = model().write_split(folder(), "missing", sizes);
        QVERIFY(paths.has_value());
        std::filesystem::remove((*paths)[1]);
        const auto file = File::open((*paths)[2]);
        QVERIFY(!file);
        QCOMPARE(file.error().kind, ErrorKind::not_found);
        const auto message = QString::fromStdString(file.error().message);
        QVERIFY2(message.contains("missing-00002-of-00003.gguf"), qPrintable(message));
        QVERIFY2(message.endsWith("(the model has 3 files, all of which must be in one folder)"), qPrintable(message));
    }
    void aRenamedPart() {
        const std::array<std::size_t, 2> sizes{2, 3};
        const auto paths = model().write_split(folder(), "renamed", sizes);
        QVERIFY(paths.has_value());
        const auto other = folder() / "other.gguf";
        std::filesystem::rename((*paths)[1], other);
        QCOMPARE(error_of(other), QString::fromStdString(to_utf8(other)) +
                                      ": is part 2 of 2 of a split model, so its name must end with \"-00002-of-00002.gguf\"; give the "
                                      "files their original names");
        // Two parts in each other's place.
        std::filesystem::rename((*paths)[0], (*paths)[1]);
        std::filesystem::rename(other, (*paths)[0]);
        for (const auto& path : *paths) QVERIFY(error_of(path).contains("its name must end with"));
    }
    void partsThatDoNotFit() {
        write_part(part("a", 1, 2), 0, 2, 2, "x");
        write_part(part("a", 2, 2), 1, 3, 2, "y");
        QCOMPARE(error_of(part("a", 1, 2)), QString::fromStdString(to_utf8(part("a", 2, 2))) +
                                                ": its metadata say that it is part 2 of 3, its name says part 2 of 2");
        write_part(part("a", 2, 2), {}, {}, {}, "y");
        QVERIFY(error_of(part("a", 1, 2)).contains("it is part 1 of 1, its name says part 2 of 2"));
        write_part(part("a", 2, 2), 0, 2, 2, "y");
        QVERIFY(error_of(part("a", 1, 2)).contains("it is part 1 of 2, its name says part 2 of 2"));
        write_part(part("a", 2, 2), 1, 2, 2, "x");
        QVERIFY(error_of(part("a", 1, 2)).endsWith("in tensor \"x\": there are two tensors of this name"));
        write_part(part("a", 2, 2), 1, 2, 3, "y");
        QVERIFY(error_of(part("a", 1, 2)).contains("a-00002-of-00002.gguf: metadata \"split.tensors.count\" differs from that of"));
        write_part(part("a", 1, 2), 0, 2, 3, "x");
        QVERIFY(error_of(part("a", 1, 2)).endsWith("metadata \"split.tensors.count\" is 3, but there are 2 tensors"));
        write_part(part("a", 1, 2), 0, 2, 2, "x");
        write_part(part("a", 2, 2), 1, 2, 2, "y");
        QCOMPARE(error_of(part("a", 1, 2)), QString());
        // A damaged part is named itself, not the one that was asked for.
        QFile::resize(QString::fromStdString(to_utf8(part("a", 2, 2))), 30);
        const auto damaged = error_of(part("a", 1, 2));
        QVERIFY2(damaged.contains("a-00002-of-00002.gguf: in ") && damaged.contains("cut off"), qPrintable(damaged));
    }
    void numbersThatMakeNoSense() {
        const auto path = folder() / "n.gguf";
        write_part(path, 0, 0, {});
        QVERIFY(error_of(path).endsWith("n.gguf: in metadata \"split.count\": it is 0, 1 to 65535 are expected"));
        write_part(path, 3, 3, {});
        QVERIFY(error_of(path).endsWith("in metadata \"split.no\": it is 3, but the model has 3 parts, counted from 0"));
        write_part(path, {}, 3, {});
        QVERIFY(error_of(path).endsWith("metadata \"split.no\" is missing in a part of a split model"));
        Writer text;
        text.add("split.count", "two");
        static_cast<void>(text.write(path));
        QVERIFY(error_of(path).endsWith("metadata \"split.count\" is a string, but an integer of 0 or more is expected"));
        Writer negative;
        negative.add("split.count", std::int32_t(-2));
        static_cast<void>(negative.write(path));
        QVERIFY(error_of(path).endsWith("metadata \"split.count\" is an int32 of -2, but an integer of 0 or more is expected"));
        Writer wrong_total;
        wrong_total.add("split.count", std::uint16_t(1));
        wrong_total.add("split.tensors.count", std::int32_t(1));
        static_cast<void>(wrong_total.write(path));
        QVERIFY(error_of(path).endsWith("metadata \"split.tensors.count\" is 1, but there are 0 tensors"));
    }
    void bytesInMemoryAreNoParts() {
        Writer writer;
        writer.add("split.no", std::uint16_t(0));
        writer.add("split.count", std::uint16_t(2));
        const auto bytes = writer.bytes();
        QVERIFY(!bytes);
        QVERIFY(bytes.error().message.find("part 1 of 2 of a split model, which can only be opened as files") != std::string::npos);
    }
};

QTEST_GUILESS_MAIN(TestGgufSplit)
#include "tst_gguf_split.moc"
