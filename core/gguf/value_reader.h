#pragma once

#include <cstdint>
#include <string>

#include "core/base/error.h"
#include "core/gguf/cursor.h"
#include "core/gguf/metadata.h"

namespace headroom::gguf {

// Limits that no model comes near; they bound what a hostile file can make the reader do.
inline constexpr std::uint64_t max_metadata_entries = 1u << 16;
inline constexpr std::uint64_t max_strings = 1u << 24;        // in all arrays of a file together
inline constexpr std::uint64_t max_nested_arrays = 1u << 16;  // in a file
inline constexpr int max_array_depth = 4;
inline constexpr std::uint64_t max_name_bytes = 65535;        // of a key (the specification's limit) and of a tensor's name

// Reads `count` key-value pairs at the cursor. file: the name that Metadata uses in messages.
[[nodiscard]] Result<Metadata> read_metadata(Cursor& cursor, std::uint64_t count, const std::string& file);

}  // namespace headroom::gguf
