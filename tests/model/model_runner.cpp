#include "tests/model/model_runner.h"

#include <algorithm>

namespace headroom::test {

ModelRunner::ModelRunner(gguf::File file, int threads, cpu::KvType kv_type)
    : file_(std::move(file)), transformer_(must(model::bind_transformer(file_))), pool_(threads), forward_(transformer_, pool_) {
    must(model::set_kv_type(transformer_, kv_type));
}

std::vector<std::vector<float>> ModelRunner::read(model::KvCache& cache, std::span<const std::int32_t> tokens,
                                                  std::span<const int> positions, std::int64_t piece) {
    std::vector<std::vector<float>> result;
    std::vector<std::int32_t> rows;
    for (std::size_t begin = 0; begin < tokens.size(); begin += static_cast<std::size_t>(piece)) {
        const auto part = tokens.subspan(begin, std::min(static_cast<std::size_t>(piece), tokens.size() - begin));
        rows.clear();
        for (const int position : positions) {
            const int row = position - static_cast<int>(begin);
            if (row >= 0 && row < static_cast<int>(part.size())) rows.push_back(row);
        }
        must(forward_.run({.cache = cache, .tokens = part, .rows = rows},
                          [&](std::int32_t, std::span<float> logits) { result.emplace_back(logits.begin(), logits.end()); }));
    }
    return result;
}

std::vector<std::vector<float>> ModelRunner::read(std::span<const std::int32_t> tokens, std::span<const int> positions,
                                                  std::int64_t piece) {
    model::KvCache cache = new_cache();
    return read(cache, tokens, positions, piece);
}

}  // namespace headroom::test
