#pragma once

#include <filesystem>
#include <vector>

#include "core/base/error.h"
#include "core/base/mapped_file.h"
#include "core/gguf/reader.h"

namespace headroom::gguf {

// The files of a model and what was read from each, in the order of their numbers. Tensors carry their index here as `shard`.
struct Parts {
    std::vector<MappedFile> files;
    std::vector<Part> parts;
};

// Maps and reads a model in one file, or all files of a split one of which `path` is any.
[[nodiscard]] Result<Parts> open_parts(const std::filesystem::path& path);

}  // namespace headroom::gguf
