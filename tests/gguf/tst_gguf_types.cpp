#include <QTest>
#include <limits>
#include <vector>

#include "core/gguf/types.h"
#include "core/gguf/value.h"
#include "core/gguf/writer.h"

using namespace headroom::gguf;

namespace {

template <class T>
Array array_of(const std::vector<T>& numbers) {
    return Array{value_type_of<T>(), numbers.size(), std::as_bytes(std::span(numbers)), {}, {}};
}

}  // namespace

class TestGgufTypes : public QObject {
    Q_OBJECT
private slots:
    void supportedTypes() {
        std::vector<std::string_view> names;
        for (std::uint32_t number = 0; number < 1000; ++number) {
            if (const TypeInfo* info = find_type(number); info && info->supported) names.push_back(info->name);
        }
        const std::vector<std::string_view> expected{"F32",  "F16",  "Q4_0", "Q4_1", "Q5_0", "Q5_1",   "Q8_0",  "Q2_K",
                                                     "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS", "BF16"};
        QCOMPARE(names, expected);
    }
    void layouts() {
        const auto is = [](TensorType type, std::uint32_t elements, std::uint32_t bytes) {
            const TypeInfo& info = type_info(type);
            return info.type == type && info.block_elements == elements && info.block_bytes == bytes;
        };
        QVERIFY(is(TensorType::f32, 1, 4));
        QVERIFY(is(TensorType::bf16, 1, 2));
        QVERIFY(is(TensorType::q4_0, 32, 2 + 16));
        QVERIFY(is(TensorType::q4_1, 32, 4 + 16));
        QVERIFY(is(TensorType::q5_0, 32, 2 + 4 + 16));
        QVERIFY(is(TensorType::q5_1, 32, 4 + 4 + 16));
        QVERIFY(is(TensorType::q8_0, 32, 2 + 32));
        QVERIFY(is(TensorType::q2_k, 256, 16 + 64 + 4));
        QVERIFY(is(TensorType::q3_k, 256, 32 + 64 + 12 + 2));
        QVERIFY(is(TensorType::q4_k, 256, 4 + 12 + 128));
        QVERIFY(is(TensorType::q5_k, 256, 4 + 12 + 32 + 128));
        QVERIFY(is(TensorType::q6_k, 256, 128 + 64 + 16 + 2));
        QVERIFY(is(TensorType::iq4_nl, 32, 2 + 16));
        QVERIFY(is(TensorType::iq4_xs, 256, 2 + 2 + 4 + 128));
    }
    void unassignedNumbers() {
        for (const std::uint32_t number : {4u, 5u, 43u, 1000u, ~0u}) QVERIFY(!find_type(number));
    }
    void names() {
        for (std::uint32_t number = 0; number < 100; ++number) {
            if (const TypeInfo* info = find_type(number)) QCOMPARE(type_by_name(info->name), std::optional(info->type));
        }
        QCOMPARE(type_by_name("q4_k"), std::optional(TensorType::q4_k));
        QCOMPARE(type_by_name("iQ4_xS"), std::optional(TensorType::iq4_xs));
        QVERIFY(!type_by_name("q4_k_m"));
        QVERIFY(!type_by_name(""));
    }
    void arrayElements() {
        const std::vector<std::uint8_t> u8{0, 255};
        QCOMPARE(array_of(u8).number(1), 255.0);
        QCOMPARE(array_of(u8).integer(1), std::int64_t(255));
        const std::vector<std::int8_t> i8{-128, 127};
        QCOMPARE(array_of(i8).integer(0), std::int64_t(-128));
        const std::vector<std::int16_t> i16{1, -300};
        QCOMPARE(array_of(i16).number(1), -300.0);
        const std::vector<std::uint16_t> u16{65535};
        QCOMPARE(array_of(u16).integer(0), std::int64_t(65535));
        const std::vector<std::uint32_t> u32{0, ~0u};
        QCOMPARE(array_of(u32).integer(1), std::int64_t(4294967295));
        const std::vector<std::int32_t> i32{-7};
        QCOMPARE(array_of(i32).integer(0), std::int64_t(-7));
        const std::vector<std::int64_t> i64{INT64_MIN};
        QCOMPARE(array_of(i64).integer(0), INT64_MIN);
        const std::vector<std::uint64_t> u64{1, 1ull << 53};
        QCOMPARE(array_of(u64).number(1), 9007199254740992.0);
        const std::vector<float> f32{0.5f, -2.75f, std::numeric_limits<float>::infinity(), -1e30f, std::nanf("")};
        QCOMPARE(array_of(f32).number(1), -2.75);
        QCOMPARE(array_of(f32).integer(1), std::int64_t(-2));
        QCOMPARE(array_of(f32).integer(2), INT64_MAX);
        QCOMPARE(array_of(f32).integer(3), INT64_MIN);
        QCOMPARE(array_of(f32).integer(4), std::int64_t(0));
        const std::vector<double> f64{1e15};
        QCOMPARE(array_of(f64).integer(0), std::int64_t(1000000000000000));
        const std::vector<std::uint8_t> flags{0, 1};
        Array booleans = array_of(flags);
        booleans.element = ValueType::boolean;
        QCOMPARE(booleans.integer(1), std::int64_t(1));
        // Nothing in a file is aligned.
        std::vector<std::byte> shifted(1 + 8);
        const std::uint32_t numbers[2] = {11, 22};
        std::memcpy(shifted.data() + 1, numbers, 8);
        const Array unaligned{ValueType::u32, 2, std::span<const std::byte>(shifted).subspan(1), {}, {}};
        QCOMPARE(unaligned.integer(1), std::int64_t(22));
    }
};

QTEST_GUILESS_MAIN(TestGgufTypes)
#include "tst_gguf_types.moc"
