#include "core/gguf/value.h"

#include <cstring>

namespace headroom::gguf {
namespace {

// Element i of a packed little-endian array, converted to To.
template <class From, class To>
To element_at(std::span<const std::byte> bytes, std::uint64_t i) noexcept {
    From value;
    std::memcpy(&value, bytes.data() + i * sizeof(From), sizeof(From));
    return static_cast<To>(value);
}

// A float of a file as an integer: out of range or not a number gives the nearest end or 0, where a plain cast is undefined.
std::int64_t to_integer(double value) noexcept {
    constexpr double limit = 9223372036854775808.0;  // 2^63
    if (value >= limit) return INT64_MAX;
    if (value < -limit) return INT64_MIN;
    return value == value ? static_cast<std::int64_t>(value) : 0;
}

template <class To>
To convert(const Array& array, std::uint64_t i) noexcept {
    switch (array.element) {
        case ValueType::u8:
        case ValueType::boolean: return element_at<std::uint8_t, To>(array.numbers, i);
        case ValueType::i8: return element_at<std::int8_t, To>(array.numbers, i);
        case ValueType::u16: return element_at<std::uint16_t, To>(array.numbers, i);
        case ValueType::i16: return element_at<std::int16_t, To>(array.numbers, i);
        case ValueType::u32: return element_at<std::uint32_t, To>(array.numbers, i);
        case ValueType::i32: return element_at<std::int32_t, To>(array.numbers, i);
        case ValueType::u64: return element_at<std::uint64_t, To>(array.numbers, i);
        case ValueType::i64: return element_at<std::int64_t, To>(array.numbers, i);
        case ValueType::f32:
        case ValueType::f64: {
            const double value = array.element == ValueType::f32 ? element_at<float, double>(array.numbers, i)
                                                                 : element_at<double, double>(array.numbers, i);
            if constexpr (std::is_same_v<To, double>) return value;
            return static_cast<To>(to_integer(value));
        }
        case ValueType::string:
        case ValueType::array: break;
    }
    return To{};
}

}  // namespace

std::string_view to_string(ValueType type) noexcept {
    switch (type) {
        case ValueType::u8: return "uint8";
        case ValueType::i8: return "int8";
        case ValueType::u16: return "uint16";
        case ValueType::i16: return "int16";
        case ValueType::u32: return "uint32";
        case ValueType::i32: return "int32";
        case ValueType::f32: return "float32";
        case ValueType::boolean: return "bool";
        case ValueType::string: return "string";
        case ValueType::array: return "array";
        case ValueType::u64: return "uint64";
        case ValueType::i64: return "int64";
        case ValueType::f64: return "float64";
    }
    return "unknown";
}

std::uint64_t value_bytes(ValueType type) noexcept {
    switch (type) {
        case ValueType::u8:
        case ValueType::i8:
        case ValueType::boolean: return 1;
        case ValueType::u16:
        case ValueType::i16: return 2;
        case ValueType::u32:
        case ValueType::i32:
        case ValueType::f32: return 4;
        case ValueType::u64:
        case ValueType::i64:
        case ValueType::f64: return 8;
        case ValueType::string:
        case ValueType::array: break;
    }
    return 0;
}

double Array::number(std::uint64_t i) const noexcept { return convert<double>(*this, i); }
std::int64_t Array::integer(std::uint64_t i) const noexcept { return convert<std::int64_t>(*this, i); }

}  // namespace headroom::gguf
