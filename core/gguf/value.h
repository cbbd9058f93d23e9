#pragma once

// Metadata values of a GGUF file.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace headroom::gguf {

// The value is the number in the file.
enum class ValueType : std::uint32_t {
    u8 = 0, i8 = 1, u16 = 2, i16 = 3, u32 = 4, i32 = 5, f32 = 6, boolean = 7, string = 8, array = 9, u64 = 10, i64 = 11, f64 = 12,
};
[[nodiscard]] std::string_view to_string(ValueType type) noexcept;
// Bytes of one number or boolean in the file; 0 for strings and arrays, which have no fixed size.
[[nodiscard]] std::uint64_t value_bytes(ValueType type) noexcept;

// An array of numbers or booleans stays where it lies in the mapped file; strings are views into it. Both are valid as long as
// the File that gave them. Numbers in the file need not be aligned: read them through number() and integer().
struct Array {
    ValueType element = ValueType::u8;
    std::uint64_t count = 0;
    std::span<const std::byte> numbers;      // count little-endian numbers; empty for strings
    std::vector<std::string_view> strings;   // for element == string
    // Arrays of arrays are legal GGUF: kept for `inspect`, used by nobody.
    std::vector<Array> arrays;

    // Element i as a double / an integer, whatever numeric type the file has. i < count, element numeric or boolean.
    [[nodiscard]] double number(std::uint64_t i) const noexcept;
    [[nodiscard]] std::int64_t integer(std::uint64_t i) const noexcept;
};

struct Value {
    ValueType type = ValueType::u8;
    std::variant<std::uint64_t, std::int64_t, double, bool, std::string_view, Array> data;  // unsigned, signed, float, …
};

}  // namespace headroom::gguf
