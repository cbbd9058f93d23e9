#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/error.h"
#include "core/base/mapped_file.h"
#include "core/gguf/types.h"
#include "core/gguf/value.h"

namespace headroom::gguf {

struct Tensor {
    std::string_view name;
    TensorType type = TensorType::f32;
    int dimensions = 0;                          // 1 to 4
    std::array<std::uint64_t, 4> shape{1, 1, 1, 1};  // shape[0] is the row length (contiguous); unused ones are 1
    std::span<const std::byte> data;             // in the mapped file, at a multiple of the file's alignment
    std::uint16_t shard = 0;                     // index into File::shards()

    [[nodiscard]] std::uint64_t elements() const noexcept { return shape[0] * shape[1] * shape[2] * shape[3]; }
};

// A GGUF file, or all files of a split one, mapped and checked: every offset, size and count in it has been proven to lie
// inside the file before an object of this class exists. Immutable; safe to read from any thread. Everything it hands out is valid
// as long as it lives. Errors name the file, the place and the reason in one sentence.
class File {
public:
    // path: the file, or any file of a split model ("…-00002-of-00005.gguf").
    // Types this program cannot compute with are accepted here (inspect shows them): see require_supported_types.
    [[nodiscard]] static Result<File> open(const std::filesystem::path& path);
    // The same over bytes in memory, for fuzzing and tests: `name` stands in messages. The bytes must outlive the File.
    [[nodiscard]] static Result<File> parse(std::span<const std::byte> bytes, std::string name);

    // invalid_file/unsupported naming the first tensor whose type the engine lacks.
    [[nodiscard]] Result<> require_supported_types() const;

    [[nodiscard]] std::uint32_t version() const noexcept;      // 2 or 3
    [[nodiscard]] std::uint64_t file_bytes() const noexcept;   // all shards
    [[nodiscard]] const std::string& name() const noexcept;    // the path of the first shard, for messages
    [[nodiscard]] std::span<const MappedFile> shards() const noexcept;

    // Tensors in file order.
    [[nodiscard]] std::span<const Tensor> tensors() const noexcept;
    [[nodiscard]] const Tensor* find_tensor(std::string_view tensor_name) const noexcept;  // nullptr if absent

    // Metadata in file order (of the first shard).
    [[nodiscard]] std::span<const std::pair<std::string_view, Value>> metadata() const noexcept;
    [[nodiscard]] const Value* find(std::string_view key) const noexcept;  // nullptr if absent

    // Typed access. Absent: nothing. Present with a type that cannot hold the meaning: an error that names key, expected and seen
    // type. Any integer type that holds the number is taken for an integer; any integer or float for get_float.
    [[nodiscard]] Result<std::optional<std::uint64_t>> get_unsigned(std::string_view key) const;
    [[nodiscard]] Result<std::optional<double>> get_float(std::string_view key) const;
    [[nodiscard]] Result<std::optional<bool>> get_bool(std::string_view key) const;
    [[nodiscard]] Result<std::optional<std::string_view>> get_string(std::string_view key) const;
    // nullptr if absent; an error if it is no array or its elements are not of `element`.
    [[nodiscard]] Result<const Array*> get_array(std::string_view key, ValueType element) const;

    File(File&&) noexcept;
    File& operator=(File&&) noexcept;
    ~File();

private:
    struct Contents;
    explicit File(std::unique_ptr<Contents> contents);
    std::unique_ptr<Contents> contents_;
};

}  // namespace headroom::gguf
