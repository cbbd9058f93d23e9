#pragma once

// The key-value pairs of one file, found by hash, with typed access. File hands these functions out; their contract is there.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/gguf/value.h"

namespace headroom::gguf {

class Metadata {
public:
    // file: the name for messages.
    explicit Metadata(std::string file) : file_(std::move(file)) {}

    // False, and nothing changes, if the key is there already. The key must outlive this object.
    bool add(std::string_view key, Value value);

    [[nodiscard]] std::span<const std::pair<std::string_view, Value>> entries() const noexcept { return entries_; }
    [[nodiscard]] const Value* find(std::string_view key) const noexcept;

    [[nodiscard]] Result<std::optional<std::uint64_t>> get_unsigned(std::string_view key) const;
    [[nodiscard]] Result<std::optional<double>> get_float(std::string_view key) const;
    [[nodiscard]] Result<std::optional<bool>> get_bool(std::string_view key) const;
    [[nodiscard]] Result<std::optional<std::string_view>> get_string(std::string_view key) const;
    [[nodiscard]] Result<const Array*> get_array(std::string_view key, ValueType element) const;

private:
    [[nodiscard]] std::unexpected<Error> wrong(std::string_view key, const Value& value, std::string_view expected) const;

    std::string file_;
    std::vector<std::pair<std::string_view, Value>> entries_;
    std::unordered_map<std::string_view, std::size_t> index_;
};

}  // namespace headroom::gguf
