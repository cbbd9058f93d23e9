#pragma once

// One GGUF file as it lies on the disk: a whole model or one part of a split one.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/gguf/file.h"
#include "core/gguf/metadata.h"

namespace headroom::gguf {

struct Part {
    std::uint32_t version = 0;
    Metadata metadata;
    std::vector<Tensor> tensors;
};

// Reads and checks everything but what concerns several parts. Views in the result point into `bytes`.
// name: for messages. shard: goes into the tensors.
[[nodiscard]] Result<Part> read_part(std::span<const std::byte> bytes, const std::string& name, std::uint16_t shard);

// general.alignment, or the format's default of 32. An error for another type than uint32 and for a value that is no power of two
// or below 8 (the specification wants multiples of 8).
[[nodiscard]] Result<std::uint64_t> read_alignment(const Metadata& metadata, const std::string& name);

}  // namespace headroom::gguf
