#include <QTemporaryDir>
#include <QTest>
#include <array>
#include <fstream>

#include "core/base/paths.h"
#include "core/gguf/file.h"
#include "core/gguf/value_reader.h"
#include "core/gguf/writer.h"
#include "tests/gguf/raw_file.h"

using namespace headroom;
using namespace headroom::gguf;
using headroom::test::RawFile;

namespace {

using Bytes = std::vector<std::byte>;

// A file with one of everything whose last byte is one of a tensor's.
Bytes small_file() {
    Writer writer;
    writer.set_alignment(16);
    writer.add("general.architecture", "llama");
    writer.add("a.number", std::uint32_t(3));
    writer.add("a.flag", true);
    writer.add("a.float", 0.5);
    const std::array<std::string_view, 3> strings{"one", "", "three"};
    writer.add_strings("a.strings", strings);
    const std::array<std::int16_t, 4> numbers{1, -2, 3, -4};
    writer.add_array<std::int16_t>("a.numbers", numbers);
    Array nested{ValueType::array, 1, {}, {}, {}};
    nested.arrays.push_back(Array{ValueType::i16, 4, std::as_bytes(std::span(numbers)), {}, {}});
    writer.add("a.nested", Value{ValueType::array, nested});
    writer.add_tensor("first.weight", TensorType::q8_0, {32, 2}, Bytes(68, std::byte{7}));
    writer.add_tensor("second.weight", TensorType::f32, {4}, Bytes(16, std::byte{9}));
    return *writer.bytes();
}

RawFile one_tensor(std::vector<std::uint64_t> shape, TensorType type = TensorType::f32, std::uint64_t offset = 0) {
    RawFile file(1, 0);
    file.tensor("t", std::move(shape), type, offset);
    return file;
}

}  // namespace

class TestGgufHostile : public QObject {
    Q_OBJECT
private slots:
    void truncatedAtEveryByte() {
        const Bytes whole = small_file();
        QVERIFY(File::parse(whole, "x").has_value());
        for (std::size_t size = 0; size < whole.size(); ++size) {
            // A copy of exactly this size, so that a sanitizer sees a read past its end.
            const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
            const auto file = File::parse(cut, "cut.gguf");
            QVERIFY2(!file, qPrintable(QString("accepted with %1 of %2 bytes").arg(size).arg(whole.size())));
            QCOMPARE(file.error().kind, ErrorKind::invalid_file);
            QVERIFY2(file.error().message.starts_with("cut.gguf: "), file.error().message.c_str());
        }
    }
    void truncatedOnDisk() {
        const Bytes whole = small_file();
        QTemporaryDir folder;
        const auto path = from_utf8(folder.filePath("cut.gguf").toStdString());
        for (const std::size_t size : {std::size_t(0), std::size_t(4), std::size_t(100), whole.size() - 1}) {
            std::ofstream(path, std::ios::binary | std::ios::trunc)
                .write(reinterpret_cast<const char*>(whole.data()), static_cast<std::streamsize>(size));
            const auto file = File::open(path);
            QVERIFY(!file);
            QCOMPARE(file.error().kind, ErrorKind::invalid_file);
            QVERIFY2(file.error().message.starts_with(to_utf8(path) + ": "), file.error().message.c_str());
        }
    }
    // Any byte changed to some other values gives a file or an error, never a crash; an accepted file's tensors lie inside it.
    void everyByteDamaged() {
        const Bytes whole = small_file();
        for (std::size_t i = 0; i < whole.size(); ++i) {
            for (const int value : {0x00, 0x01, 0x7F, 0x80, 0xFF}) {
                Bytes damaged = whole;
                damaged[i] = static_cast<std::byte>(value);
                const auto file = File::parse(damaged, "damaged.gguf");
                if (!file) {
                    QVERIFY2(file.error().message.starts_with("damaged.gguf: "), file.error().message.c_str());
                    continue;
                }
                for (const Tensor& tensor : file->tensors()) {
                    QVERIFY(tensor.data.data() >= damaged.data());
                    QVERIFY(tensor.data.data() + tensor.data.size() <= damaged.data() + damaged.size());
                }
            }
        }
    }

    void refused_data() {
        QTest::addColumn<Bytes>("bytes");
        QTest::addColumn<ErrorKind>("kind");
        QTest::addColumn<QString>("message");  // after "bad.gguf: "
        const auto row = [](const char* name, const RawFile& file, ErrorKind kind, const QString& message) {
            QTest::newRow(name) << file.bytes() << kind << message;
        };
        const auto invalid = ErrorKind::invalid_file;
        const auto unsupported = ErrorKind::unsupported;
        constexpr std::uint64_t huge = ~0ull;

        row("empty", RawFile(), invalid, "is not a GGUF file: it is empty");
        row("short", RawFile().text("GG"), invalid,
            "in the header (byte 0): the file is cut off or damaged: 4 bytes are needed here, 2 are left");
        row("another format", RawFile().text("PK\x03\x04....."), invalid,
            "is not a GGUF file: it begins with \"PK\\x03\\x04\", \"GGUF\" is expected");
        row("the format before GGUF", RawFile().text("tjgg....."), unsupported,
            "is in a format older than GGUF; get the model as a GGUF file");
        row("version 0", RawFile(0, 0, 0), unsupported, "in the header (byte 4): the GGUF version is 0, but 2 and 3 can be read");
        row("version 1", RawFile(0, 0, 1), unsupported, "in the header (byte 4): the GGUF version is 1, but 2 and 3 can be read");
        row("version 4", RawFile(0, 0, 4), unsupported, "in the header (byte 4): the GGUF version is 4, but 2 and 3 can be read");
        row("big-endian", RawFile(0, 0, 0x03000000), unsupported,
            "is a big-endian GGUF file, made for another kind of processor; get the little-endian one");

        row("more metadata than bytes", RawFile(0, huge), invalid,
            "in the header (byte 16): the file is cut off or damaged: it claims 18446744073709551615 metadata entries, 0 bytes are left");
        row("more tensors than bytes", RawFile(huge, 0), invalid,
            "in the tensor table (byte 16): the file is cut off or damaged: it claims 18446744073709551615 tensors, 0 bytes are left");
        row("a key longer than the file", RawFile(0, 1).number(huge).text("abcdefghijklmnop"), invalid,
            "in metadata entry 1 (byte 24): the file is cut off or damaged: a string claims 18446744073709551615 bytes, 16 are left");
        row("an empty key", RawFile(0, 1).pair("", ValueType::u32, 1u), invalid, "in metadata entry 1 (byte 24): the key is empty");
        row("a key too long", RawFile(0, 1).pair(std::string(65536, 'k'), ValueType::u32, 1u), invalid,
            "in metadata entry 1 (byte 24): the key is 65536 bytes long, at most 65535 are allowed");
        row("a key twice", RawFile(0, 2).pair("k", ValueType::u32, 1u).pair("k", ValueType::u8, std::uint8_t(1)), invalid,
            "in metadata entry 2 (byte 41): the key \"k\" is there twice");
        row("an unknown value type", RawFile(0, 1).string("k").number(13u).number(huge), invalid,
            "in metadata \"k\" (byte 33): the value type number is 13, 0 to 12 are expected");
        row("a bool of 2", RawFile(0, 1).pair("k", ValueType::boolean, std::uint8_t(2)), invalid,
            "in metadata \"k\" (byte 37): a bool has the value 2, 0 or 1 is expected");
        row("a value longer than the file", RawFile(0, 1).string("key").type(ValueType::string).number(huge), invalid,
            "in metadata \"key\" (byte 39): the file is cut off or damaged: a string claims 18446744073709551615 bytes, 0 are left");
        row("an array of numbers longer than the file",
            RawFile(0, 1).string("k").type(ValueType::array).type(ValueType::f64).number<std::uint64_t>(1ull << 61).number(0.0), invalid,
            "in metadata \"k\" (byte 41): the file is cut off or damaged: an array claims 2305843009213693952 elements of float64, 8 bytes "
            "are left");
        row("an array of strings longer than the file",
            RawFile(0, 1).string("k").type(ValueType::array).type(ValueType::string).number<std::uint64_t>(2).string(""), invalid,
            "in metadata \"k\" (byte 41): the file is cut off or damaged: an array claims 2 elements of string, 8 bytes are left");
        row("an array of arrays longer than the file",
            RawFile(0, 1).string("k").type(ValueType::array).type(ValueType::array).number(huge).number(huge), invalid,
            "in metadata \"k\" (byte 41): the file is cut off or damaged: an array claims 18446744073709551615 elements of array, 8 bytes "
            "are left");
        row("an array of an unknown type",
            RawFile(0, 1).string("k").type(ValueType::array).number(99u).number<std::uint64_t>(0), invalid,
            "in metadata \"k\" (byte 37): the value type number is 99, 0 to 12 are expected");
        row("an array of bool with a 7",
            RawFile(0, 1).string("k").type(ValueType::array).type(ValueType::boolean).number<std::uint64_t>(2).text("\x01\x07"), invalid,
            "in metadata \"k\" (byte 49): an array of bool has a value other than 0 and 1");
        RawFile deep(0, 1);
        deep.string("k").type(ValueType::array);
        for (int depth = 0; depth < 1000; ++depth) deep.type(ValueType::array).number<std::uint64_t>(1);
        row("arrays nested without end", deep, invalid, "in metadata \"k\" (byte 77): arrays are nested deeper than 4 levels");

        row("alignment as a signed number", RawFile(0, 1).pair("general.alignment", ValueType::i32, 32), invalid,
            "in metadata \"general.alignment\": its type is int32, uint32 is expected");
        row("alignment as a string", RawFile(0, 1).pair("general.alignment", "32"), invalid,
            "in metadata \"general.alignment\": its type is string, uint32 is expected");
        for (const unsigned alignment : {0u, 4u, 33u, 48u, ~0u}) {
            QTest::addRow("alignment %u", alignment)
                << RawFile(0, 1).pair("general.alignment", ValueType::u32, alignment).bytes() << invalid
                << QString("in metadata \"general.alignment\": it is %1, a power of two of 8 or more is expected").arg(alignment);
        }
        row("alignment larger than the file",
            RawFile(1, 1).pair("general.alignment", ValueType::u32, 1u << 31).tensor("t", {1}, TensorType::f32, 0).data(4), invalid,
            "in tensor \"t\" (byte 57): the file is cut off or damaged: the tensor's 4 bytes of data at offset 0 lie past the file's end");

        row("an empty tensor name", RawFile(1, 0).tensor("", {1}, TensorType::f32, 0).data(4), invalid,
            "in tensor entry 1 (byte 24): the tensor's name is empty");
        row("a tensor name too long", RawFile(1, 0).tensor(std::string(70000, 'n'), {1}, TensorType::f32, 0).data(4), invalid,
            "in tensor entry 1 (byte 24): the tensor's name is 70000 bytes long, at most 65535 are allowed");
        row("a tensor name longer than the file", RawFile(1, 0).number<std::uint64_t>(1000).data(32), invalid,
            "in tensor entry 1 (byte 24): the file is cut off or damaged: a string claims 1000 bytes, 32 are left");
        row("a tensor name twice",
            RawFile(2, 0).tensor("t", {1}, TensorType::f32, 0).tensor("t", {1}, TensorType::f32, 32).data(64), invalid,
            "in tensor \"t\": there are two tensors of this name");
        row("no dimensions", RawFile(1, 0).tensor("t", {}, TensorType::f32, 0).data(32), invalid,
            "in tensor \"t\" (byte 33): it has 0 dimensions, 1 to 4 are allowed");
        row("five dimensions", one_tensor({1, 1, 1, 1, 1}).data(4), invalid,
            "in tensor \"t\" (byte 33): it has 5 dimensions, 1 to 4 are allowed");
        row("a dimension of 0", one_tensor({32, 0}).data(4), invalid, "in tensor \"t\" (byte 45): its dimension 2 is 0");
        row("dimensions that multiply to 2^64", one_tensor({1ull << 32, 1ull << 32}).data(4), invalid,
            "in tensor \"t\" (byte 45): its dimensions multiply to more than 63 bits hold");
        row("a dimension of 2^64 - 1", one_tensor({huge}).data(4), invalid,
            "in tensor \"t\" (byte 37): its dimensions multiply to more than 63 bits hold");
        row("more bytes than 64 bits hold", one_tensor({1ull << 62}).data(4), invalid,
            "in tensor \"t\" (byte 45): its size in bytes is more than 64 bits hold");
        row("a type nobody has assigned", RawFile(1, 0).tensor("t", {32}, 1234u, 0).data(4), unsupported,
            "in tensor \"t\" (byte 45): its type has the number 1234, which this version of the program does not know");
        row("a row that is no whole number of blocks", one_tensor({48, 2}, TensorType::q4_0).data(54), invalid,
            "in tensor \"t\" (byte 53): its rows have 48 elements, but Q4_0 needs a multiple of 32");
        row("an offset that is not aligned", one_tensor({4}, TensorType::f32, 16).data(64), invalid,
            "in tensor \"t\" (byte 49): its data begin at offset 16, which is no multiple of the alignment 32");
        row("data past the end by a byte", one_tensor({4}, TensorType::f32, 32).data(47), invalid,
            "in tensor \"t\" (byte 24): the file is cut off or damaged: the tensor's 16 bytes of data at offset 32 lie past the file's end");
        row("an offset far past the end", one_tensor({4}, TensorType::f32, 1ull << 40).data(64), invalid,
            "in tensor \"t\" (byte 24): the file is cut off or damaged: the tensor's 16 bytes of data at offset 1099511627776 lie past the "
            "file's end");
        row("an offset that wraps around", one_tensor({4}, TensorType::f32, huge - 31).data(64), invalid,
            "in tensor \"t\" (byte 24): the file is cut off or damaged: the tensor's 16 bytes of data at offset 18446744073709551584 lie past "
            "the file's end");
        row("overlapping tensors",
            RawFile(2, 0).tensor("a", {4}, TensorType::f32, 32).tensor("b", {9}, TensorType::f32, 0).data(96), invalid,
            "in tensor \"a\" (byte 24): its data overlap those of tensor \"b\"");
        row("overlapping by a byte",
            RawFile(2, 1).pair("general.alignment", ValueType::u32, 8u).tensor("a", {9}, TensorType::i8, 0).tensor("b", {1}, TensorType::i8, 8)
                .data(16, 8),
            invalid, "in tensor \"b\" (byte 90): its data overlap those of tensor \"a\"");
        row("two tensors in one place",
            RawFile(2, 0).tensor("a", {4}, TensorType::f32, 0).tensor("b", {4}, TensorType::f32, 0).data(96), invalid,
            "in tensor \"b\" (byte 57): its data overlap those of tensor \"a\"");

        row("a name that is no UTF-8", RawFile(1, 0).tensor("\xFF\x1B[31m\"ü", {0}, TensorType::f32, 0).data(4), invalid,
            "in tensor \"\\xFF\\x1B[31m\\\"ü\" (byte 45): its dimension 1 is 0");
        row("a very long name", RawFile(1, 0).tensor(std::string(1000, 'n'), {0}, TensorType::f32, 0).data(4), invalid,
            "in tensor \"" + QString(80, 'n') + "…\" (byte 1036): its dimension 1 is 0");
    }
    void refused() {
        QFETCH(Bytes, bytes);
        QFETCH(ErrorKind, kind);
        QFETCH(QString, message);
        const auto file = File::parse(bytes, "bad.gguf");
        QVERIFY(!file);
        QCOMPARE(QString::fromStdString(file.error().message), "bad.gguf: " + message);
        QCOMPARE(file.error().kind, kind);
    }

    void moreThanTheLimits() {
        RawFile entries(0, max_metadata_entries + 1);
        entries.data(14 * (max_metadata_entries + 1));
        const auto message = [](const RawFile& file) {
            const auto result = File::parse(file.bytes(), "x");
            return result ? std::string() : result.error().message;
        };
        QCOMPARE(message(entries), std::string("x: in the header (byte 16): 65537 metadata entries are more than the 65536 that a file "
                                               "may have"));
        RawFile tensors(262145, 0);
        tensors.data(37 * 262145);
        QCOMPARE(message(tensors),
                 std::string("x: in the tensor table (byte 16): 262145 tensors are more than the 262144 that a file may have"));
        RawFile arrays(0, 1);
        arrays.string("k").type(ValueType::array).type(ValueType::array).number(max_nested_arrays + 1);
        arrays.data(12 * (max_nested_arrays + 1));
        QCOMPARE(message(arrays), std::string("x: in metadata \"k\" (byte 41): 65537 nested arrays are more than the 65536 that a file may "
                                              "have"));
    }
    // What is unusual but allowed.
    void accepted() {
        const auto parses = [](const RawFile& file) {
            const auto result = File::parse(file.bytes(), "x");
            return result ? std::string("yes") : result.error().message;
        };
        const std::string yes = "yes";
        QCOMPARE(parses(RawFile(0, 0)), yes);
        QCOMPARE(parses(RawFile(0, 0, 2)), yes);
        // A gap between tensors, and the order of data another than that of entries.
        QCOMPARE(parses(RawFile(2, 0).tensor("a", {4}, TensorType::f32, 96).tensor("b", {8}, TensorType::f32, 0).data(112)), yes);
        // A tensor that ends exactly at the end; one whose layout is not known has no data.
        QCOMPARE(parses(one_tensor({8}).data(32)), yes);
        const RawFile unknown = one_tensor({8}, TensorType::q2_0).data(32);
        const auto file = File::parse(unknown.bytes(), "x");
        QVERIFY(file.has_value());
        QVERIFY(file->tensors()[0].data.empty());
        QCOMPARE(file->require_supported_types().error().kind, ErrorKind::unsupported);
        // Alignment 8; strings with any bytes.
        QCOMPARE(parses(RawFile(1, 1).pair("general.alignment", ValueType::u32, 8u).tensor("\xFF", {1}, TensorType::f32, 8).data(12, 8)),
                 yes);
        // Four levels of arrays.
        RawFile deep(0, 1);
        deep.string("k").type(ValueType::array);
        for (int depth = 0; depth < 3; ++depth) deep.type(ValueType::array).number<std::uint64_t>(1);
        deep.type(ValueType::u8).number<std::uint64_t>(0);
        QCOMPARE(parses(deep), yes);
    }
    void noSuchFile() {
        QTemporaryDir folder;
        const auto absent = File::open(from_utf8(folder.filePath("absent.gguf").toStdString()));
        QVERIFY(!absent);
        QCOMPARE(absent.error().kind, ErrorKind::not_found);
        QVERIFY(absent.error().message.find("absent.gguf: ") != std::string::npos);
        QVERIFY(!File::open(from_utf8(folder.path().toStdString())));
        QVERIFY(!File::open({}));
    }
};

QTEST_GUILESS_MAIN(TestGgufHostile)
#include "tst_gguf_hostile.moc"
