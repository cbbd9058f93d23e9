#pragma once

// What Model::load and inspect both say about a file.

#include "core/engine/engine.h"
#include "core/model/transformer.h"

namespace headroom::engine {

inline constexpr int kDefaultContext = 4096;        // where the file allows more and nobody asked for it
inline constexpr int kMaxContext = 16'777'216;

// The context for LoadOptions::context. Error: invalid_argument.
[[nodiscard]] Result<int> context_in_use(int trained, int wanted);
// From the metadata, unchecked: absent or damaged numbers are 0. `context` is the default one.
[[nodiscard]] ModelInfo describe(const gguf::File& file);
[[nodiscard]] Estimate estimate(const gguf::File& file, const model::Transformer& transformer, int context);

}  // namespace headroom::engine
