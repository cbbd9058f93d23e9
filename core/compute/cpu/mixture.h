#pragma once

// A mixture's chosen experts, from the gates to the outputs, in one parallel section.

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/base/thread_pool.h"
#include "core/compute/cpu/activations.h"
#include "core/compute/cpu/matrix.h"

namespace headroom::cpu {

// An expert and the tokens that chose it.
struct ChosenExpert {
    Matrix gate, up;                        // [hidden, x.cols()]
    Matrix down;                            // [width, hidden]
    std::span<const std::int32_t> tokens;   // rows of x, in ascending order; row i of y belongs to tokens[i]
    float* y = nullptr;                     // [tokens.size(), y_stride]
    std::int64_t y_stride = 0;
};

// Owns the scratch memory, which grows to the largest batch seen. Used by one thread at a time.
class Mixture {
public:
    // y = down(silu(gate(x)) * up(x)) for each expert and each of its tokens; the arithmetic is that of matmul, swiglu and matmul. All experts
    // have the same shapes and types; x holds the forms that gate and up need. No barrier lies between the two products: whoever ends the
    // last piece of an expert's hidden rows makes their form, and pieces of its outputs, which come behind all others, wait for that. Allocates.
    void compute(ThreadPool& pool, std::span<const ChosenExpert> experts, const Activations& x);

private:
    void make_hidden(const ChosenExpert& expert, std::size_t e, std::int64_t row, std::int64_t rows, const Activations& x);
    void make_output(const ChosenExpert& expert, std::size_t e, std::int64_t row, std::int64_t rows);

    std::vector<float> gate_, up_;          // [rows, hidden]: the experts' rows behind one another
    Activations hidden_;
    std::vector<std::int64_t> first_;       // [experts]: of its rows
    std::vector<std::int32_t> row_numbers_; // 0, 1, 2, …
    // [experts]: pieces of its hidden rows that are not done, and one for their form.
    std::unique_ptr<std::atomic<std::int64_t>[]> left_;
    std::size_t left_count_ = 0;
};

}  // namespace headroom::cpu
