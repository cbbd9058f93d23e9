#pragma once

// A plain forward pass for tests: every weight dequantized to float32, plain loops in float32, no cache, no threads. It reads a file's
// tensors and metadata by itself and shares nothing with core/model, so that the two check each other.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/gguf/file.h"

namespace headroom::test {

class ReferenceForward {
public:
    // Takes a file that the engine accepts; a number or a tensor that is missing ends the test program.
    explicit ReferenceForward(const gguf::File& file);

    // The logits behind each of `positions` after reading tokens: [positions][vocabulary].
    [[nodiscard]] std::vector<std::vector<float>> logits(std::span<const std::int32_t> tokens, std::span<const int> positions) const;

private:
    using Rows = std::vector<float>;  // [tokens, width]
    struct Tensor {
        std::size_t rows = 0;
        std::size_t cols = 0;
        std::vector<float> values;  // [count * rows, cols]
    };

    [[nodiscard]] double number(const std::string& key, double fallback) const;
    [[nodiscard]] std::string text(const std::string& key) const;
    [[nodiscard]] const Tensor* find(const std::string& name) const;
    [[nodiscard]] Rows linear(const std::string& name, const Rows& x) const;
    [[nodiscard]] Rows multiply(const Tensor& w, std::size_t first_row, std::size_t rows, const Rows& x) const;
    [[nodiscard]] Rows norm(const std::string& name, const Rows& x) const;
    void rotate(Rows& x, std::size_t heads) const;
    [[nodiscard]] Rows attend(const Rows& q, const Rows& k, const Rows& v) const;
    [[nodiscard]] Rows dense(const std::string& block, const Rows& x) const;
    [[nodiscard]] Rows mixture(const std::string& block, const Rows& x) const;

    const gguf::File& file_;
    std::map<std::string, Tensor> tensors_;
    std::string family_;
    std::size_t layers_ = 0, width_ = 0, heads_ = 0, kv_heads_ = 0, head_dim_ = 0, head_dim_v_ = 0, experts_ = 0, used_ = 0, window_ = 0;
    float epsilon_ = 0;
    std::vector<double> frequencies_;  // of the rotation, per pair
    double magnitude_ = 1;
};

}  // namespace headroom::test
