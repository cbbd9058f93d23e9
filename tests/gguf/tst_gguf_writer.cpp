#include <QTemporaryDir>
#include <QTest>
#include <array>

#include "core/base/paths.h"
#include "core/gguf/file.h"
#include "core/gguf/writer.h"

using namespace headroom;
using namespace headroom::gguf;

namespace {

std::vector<std::byte> bytes_of(std::size_t count, int first) {
    std::vector<std::byte> bytes(count);
    for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(first + static_cast<int>(i));
    return bytes;
}

template <class T>
T get(const File& file, std::string_view key, ValueType type) {
    const Value* value = file.find(key);
    if (!value || value->type != type || !std::holds_alternative<T>(value->data)) qFatal("no such value");
    return std::get<T>(value->data);
}

}  // namespace

class TestGgufWriter : public QObject {
    Q_OBJECT
private slots:
    void everyTypeOfMetadata_data() {
        QTest::addColumn<unsigned>("version");
        QTest::newRow("version 2") << 2u;
        QTest::newRow("version 3") << 3u;
    }
    void everyTypeOfMetadata() {
        QFETCH(unsigned, version);
        Writer writer(version);
        writer.add("u8", std::uint8_t(200));
        writer.add("i8", std::int8_t(-100));
        writer.add("u16", std::uint16_t(60000));
        writer.add("i16", std::int16_t(-30000));
        writer.add("u32", std::uint32_t(4000000000u));
        writer.add("i32", std::int32_t(-2000000000));
        writer.add("u64", std::uint64_t(1) << 63);
        writer.add("i64", INT64_MIN);
        writer.add("f32", 0.25f);
        writer.add("f64", 1e300);
        writer.add("yes", true);
        writer.add("no", false);
        writer.add("text", "größe");
        writer.add("empty text", "");
        const std::array<std::uint16_t, 3> numbers{1, 2, 65535};
        writer.add_array<std::uint16_t>("numbers", numbers);
        const std::array<bool, 2> flags{true, false};
        writer.add_array<bool>("flags", flags);
        const std::array<std::string_view, 3> strings{"a", "", "ccc"};
        writer.add_strings("strings", strings);
        writer.add_strings("no strings", {});
        Array nested{ValueType::array, 2, {}, {}, {}};
        nested.arrays.push_back(Array{ValueType::u16, 3, std::as_bytes(std::span(numbers)), {}, {}});
        nested.arrays.push_back(Array{ValueType::string, 1, {}, {"inner"}, {}});
        writer.add("nested", Value{ValueType::array, nested});

        const auto bytes = writer.bytes();
        QVERIFY2(bytes.has_value(), bytes ? "" : bytes.error().message.c_str());
        const auto file = File::parse(*bytes, "memory");
        QVERIFY2(file.has_value(), file ? "" : file.error().message.c_str());
        QCOMPARE(file->version(), version);
        QCOMPARE(file->file_bytes(), std::uint64_t(bytes->size()));
        QCOMPARE(file->name(), std::string("memory"));
        QVERIFY(file->shards().empty());
        QCOMPARE(file->metadata().size(), std::size_t(19));
        QVERIFY(file->metadata()[0].first == "u8");
        QVERIFY(file->metadata()[18].first == "nested");
        QCOMPARE(get<std::uint64_t>(*file, "u8", ValueType::u8), 200u);
        QCOMPARE(get<std::int64_t>(*file, "i8", ValueType::i8), -100);
        QCOMPARE(get<std::uint64_t>(*file, "u16", ValueType::u16), 60000u);
        QCOMPARE(get<std::int64_t>(*file, "i16", ValueType::i16), -30000);
        QCOMPARE(get<std::uint64_t>(*file, "u32", ValueType::u32), 4000000000u);
        QCOMPARE(get<std::int64_t>(*file, "i32", ValueType::i32), -2000000000);
        QCOMPARE(get<std::uint64_t>(*file, "u64", ValueType::u64), std::uint64_t(1) << 63);
        QCOMPARE(get<std::int64_t>(*file, "i64", ValueType::i64), INT64_MIN);
        QCOMPARE(get<double>(*file, "f32", ValueType::f32), 0.25);
        QCOMPARE(get<double>(*file, "f64", ValueType::f64), 1e300);
        QCOMPARE(get<bool>(*file, "yes", ValueType::boolean), true);
        QCOMPARE(get<bool>(*file, "no", ValueType::boolean), false);
        QVERIFY(get<std::string_view>(*file, "text", ValueType::string) == "größe");
        QVERIFY(get<std::string_view>(*file, "empty text", ValueType::string).empty());
        const Array* array = *file->get_array("numbers", ValueType::u16);
        QVERIFY(array && array->count == 3 && array->integer(2) == 65535);
        array = *file->get_array("flags", ValueType::boolean);
        QVERIFY(array && array->count == 2 && array->integer(0) == 1 && array->integer(1) == 0);
        array = *file->get_array("strings", ValueType::string);
        QVERIFY(array && array->count == 3 && array->strings[1].empty() && array->strings[2] == "ccc");
        array = *file->get_array("no strings", ValueType::string);
        QVERIFY(array && array->count == 0 && array->strings.empty());
        array = *file->get_array("nested", ValueType::array);
        QVERIFY(array && array->arrays.size() == 2);
        QCOMPARE(array->arrays[0].integer(1), std::int64_t(2));
        QVERIFY(array->arrays[1].strings[0] == "inner");

        // Written again from what was read, the file is the same.
        Writer again(version);
        for (const auto& [key, value] : file->metadata()) again.add(key, value);
        QCOMPARE(*again.bytes(), *bytes);
    }
    void typedAccess() {
        Writer writer;
        writer.add("u", std::uint8_t(7));
        writer.add("i", std::int32_t(7));
        writer.add("minus", std::int32_t(-1));
        writer.add("f", 0.5f);
        writer.add("b", true);
        writer.add("s", "text");
        const std::array<std::int32_t, 1> numbers{1};
        writer.add_array<std::int32_t>("a", numbers);
        const auto bytes = writer.bytes();
        const auto file = File::parse(*bytes, "m.gguf");
        QVERIFY(file.has_value());

        QCOMPARE(**file->get_unsigned("u"), 7u);
        QCOMPARE(**file->get_unsigned("i"), 7u);
        QCOMPARE(**file->get_float("u"), 7.0);
        QCOMPARE(**file->get_float("minus"), -1.0);
        QCOMPARE(**file->get_float("f"), 0.5);
        QCOMPARE(**file->get_bool("b"), true);
        QVERIFY(**file->get_string("s") == "text");

        QVERIFY(!file->get_unsigned("none")->has_value());
        QVERIFY(!file->get_float("none")->has_value());
        QVERIFY(!file->get_bool("none")->has_value());
        QVERIFY(!file->get_string("none")->has_value());
        QVERIFY(*file->get_array("none", ValueType::u8) == nullptr);
        QVERIFY(!file->find("none"));
        QVERIFY(!file->find_tensor("none"));

        const auto message = [](const auto& result) { return result ? std::string("no error") : result.error().message; };
        QCOMPARE(file->get_unsigned("f").error().kind, ErrorKind::invalid_file);
        QCOMPARE(message(file->get_unsigned("f")),
                 std::string("m.gguf: metadata \"f\" is a float32, but an integer of 0 or more is expected"));
        QCOMPARE(message(file->get_unsigned("minus")),
                 std::string("m.gguf: metadata \"minus\" is an int32 of -1, but an integer of 0 or more is expected"));
        QCOMPARE(message(file->get_unsigned("b")), std::string("m.gguf: metadata \"b\" is a bool, but an integer of 0 or more is expected"));
        QCOMPARE(message(file->get_float("s")), std::string("m.gguf: metadata \"s\" is a string, but a number is expected"));
        QCOMPARE(message(file->get_bool("u")), std::string("m.gguf: metadata \"u\" is a uint8, but a bool is expected"));
        QCOMPARE(message(file->get_string("a")), std::string("m.gguf: metadata \"a\" is an array of int32, but a string is expected"));
        QCOMPARE(message(file->get_array("a", ValueType::f32)),
                 std::string("m.gguf: metadata \"a\" is an array of int32, but an array of float32 is expected"));
        QCOMPARE(message(file->get_array("u", ValueType::f32)),
                 std::string("m.gguf: metadata \"u\" is a uint8, but an array of float32 is expected"));
    }
    void tensors_data() {
        QTest::addColumn<unsigned>("alignment");
        for (const unsigned alignment : {8u, 32u, 64u, 4096u}) QTest::addRow("alignment %u", alignment) << alignment;
    }
    void tensors() {
        QFETCH(unsigned, alignment);
        Writer writer;
        if (alignment != 32) writer.set_alignment(alignment);
        writer.add("general.name", "x");
        writer.add_tensor("one", TensorType::f32, {3}, bytes_of(12, 1));
        writer.add_tensor("two", TensorType::q4_0, {32, 2}, bytes_of(36, 50));
        writer.add_tensor("three", TensorType::q4_k, {256, 1, 2}, bytes_of(288, 90));
        writer.add_tensor("four", TensorType::i8, {1, 2, 3, 4}, bytes_of(24, 120));
        QTemporaryDir folder;
        const auto path = from_utf8(folder.filePath(QString::fromUtf8("modèle.gguf")).toStdString());
        const auto written = writer.write(path);
        QVERIFY2(written.has_value(), written ? "" : written.error().message.c_str());
        const auto file = File::open(path);
        QVERIFY2(file.has_value(), file ? "" : file.error().message.c_str());
        QCOMPARE(file->tensors().size(), std::size_t(4));
        QCOMPARE(file->file_bytes(), std::uint64_t(writer.bytes()->size()));
        QCOMPARE(file->shards().size(), std::size_t(1));
        QVERIFY(file->shards()[0].path() == path);
        const auto start = file->shards()[0].bytes().data();
        for (const Tensor& tensor : file->tensors()) {
            QCOMPARE(file->find_tensor(tensor.name), &tensor);
            QCOMPARE(std::uint64_t(tensor.data.data() - start) % alignment, std::uint64_t(0));
            QCOMPARE(tensor.shard, std::uint16_t(0));
        }
        const Tensor* two = file->find_tensor("two");
        QCOMPARE(two->type, TensorType::q4_0);
        QCOMPARE(two->dimensions, 2);
        QVERIFY((two->shape == std::array<std::uint64_t, 4>{32, 2, 1, 1}));
        QCOMPARE(two->elements(), std::uint64_t(64));
        QVERIFY(std::ranges::equal(two->data, bytes_of(36, 50)));
        const Tensor* four = file->find_tensor("four");
        QCOMPARE(four->dimensions, 4);
        QVERIFY(std::ranges::equal(four->data, bytes_of(24, 120)));
        // I8 is known, but not computed with.
        const auto supported = file->require_supported_types();
        QVERIFY(!supported);
        QCOMPARE(supported.error().kind, ErrorKind::unsupported);
        QCOMPARE(supported.error().message,
                 file->name() + ": tensor \"four\" is of type I8, which this program cannot compute with; get the model in another "
                                "quantization, for example Q4_K_M or Q8_0");
    }
    void aMovedFileKeepsItsViews() {
        Writer writer;
        writer.add("k", "v");
        writer.add_tensor("t", TensorType::f32, {2}, bytes_of(8, 0));
        const auto bytes = writer.bytes();
        auto file = File::parse(*bytes, "m");
        QVERIFY(file.has_value());
        const Tensor* tensor = file->find_tensor("t");
        const File moved = std::move(*file);
        QCOMPARE(moved.find_tensor("t"), tensor);
        QVERIFY(**moved.get_string("k") == "v");
    }
    void refusesWhatMakesNoFile() {
        const auto message = [](const Writer& writer) {
            const auto bytes = writer.bytes();
            if (bytes || bytes.error().kind != ErrorKind::invalid_argument) return std::string("accepted");
            return bytes.error().message;
        };
        Writer few;
        few.add_tensor("t", TensorType::f32, {2}, bytes_of(7, 0));
        QVERIFY(QString::fromStdString(message(few)).contains("tensor \"t\""));  // 8 bytes lie in the file, thanks to the padding
        Writer many;
        many.add_tensor("t", TensorType::f32, {2}, bytes_of(9, 0));
        QCOMPARE(message(many), std::string("tensor \"t\" has 9 bytes, but its shape and the type F32 need 8"));
        Writer ragged;
        ragged.add_tensor("t", TensorType::q4_0, {33}, bytes_of(18, 0));
        QVERIFY(message(ragged).find("multiple of 32") != std::string::npos);
        Writer twice;
        twice.add("k", true);
        twice.add("k", false);
        QVERIFY(message(twice).find("\"k\" is there twice") != std::string::npos);
        Writer zero;
        zero.set_alignment(0);
        QVERIFY(message(zero).find("alignment") != std::string::npos);
    }
    void unwritablePlace() {
        QTemporaryDir folder;
        const auto result = Writer().write(from_utf8(folder.path().toStdString()) / "absent" / "m.gguf");
        QVERIFY(!result);
        QCOMPARE(result.error().kind, ErrorKind::io);
        QVERIFY(result.error().message.find("m.gguf: cannot be written") != std::string::npos);
    }
};

QTEST_GUILESS_MAIN(TestGgufWriter)
#include "tst_gguf_writer.moc"
