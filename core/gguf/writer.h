#pragma once

// Writes GGUF files, for tests and tools. What it writes is read back and checked before it says that it succeeded.

#include <concepts>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/base/error.h"
#include "core/gguf/types.h"
#include "core/gguf/value.h"

namespace headroom::gguf {

// The type in the file for a C++ number or bool.
template <class T>
    requires std::integral<T> || std::floating_point<T>
[[nodiscard]] consteval ValueType value_type_of() {
    static_assert(sizeof(T) <= 8, "GGUF has no wider numbers");
    if constexpr (std::same_as<T, bool>) return ValueType::boolean;
    if constexpr (std::floating_point<T>) return sizeof(T) == 4 ? ValueType::f32 : ValueType::f64;
    if constexpr (sizeof(T) == 1) return std::is_signed_v<T> ? ValueType::i8 : ValueType::u8;
    if constexpr (sizeof(T) == 2) return std::is_signed_v<T> ? ValueType::i16 : ValueType::u16;
    if constexpr (sizeof(T) == 4) return std::is_signed_v<T> ? ValueType::i32 : ValueType::u32;
    return std::is_signed_v<T> ? ValueType::i64 : ValueType::u64;
}

class File;

class Writer {
public:
    explicit Writer(std::uint32_t version = 3) : version_(version) {}

    // Metadata, in the order of the calls. The C++ type decides the type in the file: add("x", std::uint32_t(3)).
    template <class T>
        requires std::integral<T> || std::floating_point<T>
    void add(std::string_view key, T value) {
        add_bytes(key, value_type_of<T>(), std::as_bytes(std::span(&value, 1)));
    }
    void add(std::string_view key, std::string_view text);
    // Any value, for example one of another file: arrays of arrays are written by it too.
    void add(std::string_view key, const Value& value);
    template <class T>
        requires std::integral<T> || std::floating_point<T>
    void add_array(std::string_view key, std::span<const T> numbers) {
        Array array{value_type_of<T>(), numbers.size(), std::as_bytes(numbers), {}, {}};
        add(key, Value{ValueType::array, std::move(array)});
    }
    void add_strings(std::string_view key, std::span<const std::string_view> strings);

    // Writes general.alignment and aligns tensors to it instead of 32.
    void set_alignment(std::uint32_t alignment);

    // shape: 1 to 4 dimensions, row length first. data: the bytes as they are to stand in the file.
    void add_tensor(std::string name, TensorType type, std::vector<std::uint64_t> shape, std::vector<std::byte> data);

    // The whole file in memory. invalid_argument where the parts above make no valid file, with the reader's words.
    [[nodiscard]] Result<std::vector<std::byte>> bytes() const;
    [[nodiscard]] Result<> write(const std::filesystem::path& path) const;
    // The model as "PREFIX-0000i-of-0000N.gguf" in `folder`, file i with the next tensors_per_file[i] tensors; their sum is the number
    // of tensors. Returns the names.
    [[nodiscard]] Result<std::vector<std::filesystem::path>> write_split(const std::filesystem::path& folder, const std::string& prefix,
                                                                         std::span<const std::size_t> tensors_per_file) const;

private:
    struct TensorData {
        std::string name;
        TensorType type;
        std::vector<std::uint64_t> shape;
        std::vector<std::byte> data;
    };
    void add_bytes(std::string_view key, ValueType type, std::span<const std::byte> value);
    [[nodiscard]] std::vector<std::byte> tables(std::span<const TensorData> tensors) const;
    [[nodiscard]] Result<> write_file(const std::filesystem::path& path, std::span<const TensorData> tensors) const;
    [[nodiscard]] Result<> check(const File& file) const;

    std::uint32_t version_;
    std::uint32_t alignment_ = 32;
    std::uint64_t metadata_count_ = 0;
    std::vector<std::byte> metadata_;  // as in the file
    std::vector<TensorData> tensors_;
};

}  // namespace headroom::gguf
