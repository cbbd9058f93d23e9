#pragma once

// A GGUF file put together number by number, so that any of them can be wrong.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/gguf/types.h"
#include "core/gguf/value.h"

namespace headroom::test {

class RawFile {
public:
    RawFile() = default;
    // Magic, version and the two counts.
    RawFile(std::uint64_t tensors, std::uint64_t metadata, std::uint32_t version = 3) {
        text("GGUF").number(version).number(tensors).number(metadata);
    }

    template <class T>
    RawFile& number(T value) {
        return append(std::as_bytes(std::span(&value, 1)));
    }
    RawFile& text(std::string_view letters) { return append(std::as_bytes(std::span(letters))); }
    RawFile& string(std::string_view letters) { return number<std::uint64_t>(letters.size()).text(letters); }
    RawFile& type(gguf::ValueType type) { return number(static_cast<std::uint32_t>(type)); }

    template <class T>
    RawFile& pair(std::string_view key, gguf::ValueType value_type, T value) {
        return string(key).type(value_type).number(value);
    }
    RawFile& pair(std::string_view key, std::string_view value) { return string(key).type(gguf::ValueType::string).string(value); }

    RawFile& tensor(std::string_view name, std::vector<std::uint64_t> shape, std::uint32_t type_number, std::uint64_t offset) {
        string(name).number(static_cast<std::uint32_t>(shape.size()));
        for (const auto size : shape) number(size);
        return number(type_number).number(offset);
    }
    RawFile& tensor(std::string_view name, std::vector<std::uint64_t> shape, gguf::TensorType type, std::uint64_t offset) {
        return tensor(name, std::move(shape), static_cast<std::uint32_t>(type), offset);
    }
    // Zeros up to the next multiple of `alignment`, then `size` bytes of data.
    RawFile& data(std::size_t size, std::size_t alignment = 32) {
        bytes_.resize((bytes_.size() + alignment - 1) / alignment * alignment);
        bytes_.resize(bytes_.size() + size, std::byte{0x3C});
        return *this;
    }

    [[nodiscard]] const std::vector<std::byte>& bytes() const noexcept { return bytes_; }

private:
    // Byte by byte: GCC 12 warns of an overflow that is none where a span is inserted into a vector.
    RawFile& append(std::span<const std::byte> bytes) {
        for (const std::byte byte : bytes) bytes_.push_back(byte);
        return *this;
    }

    std::vector<std::byte> bytes_;
};

}  // namespace headroom::test
