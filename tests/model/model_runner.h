#pragma once

// A model opened for tests: file, weights, threads, forward pass and one cache, with the steps in the caller's hand.

#include <memory>
#include <span>
#include <vector>

#include <QtGlobal>

#include "core/base/thread_pool.h"
#include "core/gguf/file.h"
#include "core/model/family.h"
#include "core/model/forward.h"

namespace headroom::test {

class ModelRunner {
public:
    // An error ends the test program with its message.
    explicit ModelRunner(gguf::File file, int threads = 2, cpu::KvType kv_type = cpu::KvType::f16);

    // Reads the tokens into `cache` in pieces of `piece`; returns the logits behind `positions` (of the tokens, ascending).
    std::vector<std::vector<float>> read(model::KvCache& cache, std::span<const std::int32_t> tokens, std::span<const int> positions,
                                         std::int64_t piece = model::Forward::kMaxTokens);
    // The same into a new cache.
    std::vector<std::vector<float>> read(std::span<const std::int32_t> tokens, std::span<const int> positions,
                                         std::int64_t piece = model::Forward::kMaxTokens);

    [[nodiscard]] model::KvCache new_cache() const { return model::KvCache(transformer_.kv_shape()); }
    [[nodiscard]] model::Forward& forward() noexcept { return forward_; }
    [[nodiscard]] const model::Transformer& transformer() const noexcept { return transformer_; }
    [[nodiscard]] const gguf::File& file() const noexcept { return file_; }

private:
    gguf::File file_;
    model::Transformer transformer_;
    ThreadPool pool_;
    model::Forward forward_;
};

// The value of a result, or the end of the test program with its message.
template <class T>
T must(Result<T> result) {
    if (!result) qFatal("%s", result.error().message.c_str());
    if constexpr (!std::is_void_v<T>) return *std::move(result);
}

}  // namespace headroom::test
