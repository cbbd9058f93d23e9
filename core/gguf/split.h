#pragma once

// Models in several files: "NAME-00001-of-00003.gguf" and so on. Each part says in its metadata how many there are (split.count),
// which one it is (split.no, from 0) and how many tensors all parts have together (split.tensors.count).

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "core/base/error.h"
#include "core/gguf/metadata.h"

namespace headroom::gguf {

struct SplitName {
    std::string prefix;        // "NAME"
    std::uint32_t number = 0;  // of this part, from 1, as in the name
    std::uint32_t count = 0;
};

// The parts of such a name (UTF-8, without the folder), or nothing.
[[nodiscard]] std::optional<SplitName> parse_split_name(const std::string& file_name);
// The name of part `number` (from 1).
[[nodiscard]] std::string split_name(const std::string& prefix, std::uint32_t number, std::uint32_t count);

struct SplitInfo {
    std::uint32_t number = 0;              // split.no, from 0
    std::uint32_t count = 1;               // split.count; 1 for a whole model
    std::optional<std::uint64_t> tensors;  // split.tensors.count
};

// What a part's metadata say. An error for wrong types, and for numbers that do not fit together.
[[nodiscard]] Result<SplitInfo> read_split_info(const Metadata& metadata, const std::string& name);

}  // namespace headroom::gguf
