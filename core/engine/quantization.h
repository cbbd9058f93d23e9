#pragma once

#include <string>

#include "core/gguf/file.h"

namespace headroom::engine {

// What people call the file's quantization ("Q4_K_M"): general.file_type by the GGUF specification's list, else the type that most of
// the file's elements have.
[[nodiscard]] std::string quantization_name(const gguf::File& file);

}  // namespace headroom::engine
