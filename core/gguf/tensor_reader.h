#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/gguf/cursor.h"
#include "core/gguf/file.h"

namespace headroom::gguf {

inline constexpr std::uint64_t max_tensors = 1u << 18;  // in one file; bounds what a hostile file can make the reader do

// Reads `count` tensor entries at the cursor and finds the data of each in the cursor's bytes: data begin at the next multiple of
// `alignment` after the last entry. Names may be there twice: File looks for that across all shards. shard goes into the tensors.
[[nodiscard]] Result<std::vector<Tensor>> read_tensors(Cursor& cursor, std::uint64_t count, std::uint64_t alignment,
                                                       std::uint16_t shard);

}  // namespace headroom::gguf
