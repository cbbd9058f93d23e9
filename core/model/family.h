#pragma once

// The families of models. A new one is a new file under families/ and a line in the list of family.cpp.

#include <span>
#include <string_view>

#include "core/base/error.h"
#include "core/gguf/file.h"
#include "core/model/hyperparameters.h"
#include "core/model/transformer.h"

namespace headroom::model {

struct Family {
    std::string_view name;  // general.architecture
    // The file's tensors as a transformer. Errors as in weights.h.
    Result<Transformer> (*bind)(const gguf::File& file, Hyperparameters hyperparameters);
};

// All of them, for messages and docs.
[[nodiscard]] std::span<const Family> families() noexcept;

// Reads the hyper-parameters and binds every tensor. Reads nothing but the header (and vectors that are not F32). What it
// returns points into the file, which must outlive it. Errors: unsupported (a family that is not in the list, which the message
// gives; a tensor type), invalid_file, out_of_memory.
[[nodiscard]] Result<Transformer> bind_transformer(const gguf::File& file);

}  // namespace headroom::model
