#pragma once

// Activations as products need them: float rows, and beside them rows quantized to int8 in groups (docs/arithmetic.md,
// "Activations").

#include <cstdint>
#include <memory>

#include "core/base/thread_pool.h"
#include "core/gguf/types.h"

namespace headroom::cpu {

// What a product with a matrix of some type reads.
enum class ActivationForm : std::uint8_t {
    floats = 1,     // F32, F16, BF16
    groups_32 = 2,  // types with 32-wide blocks
    groups_256 = 4, // types with 256-wide superblocks
};
[[nodiscard]] ActivationForm form_for(gguf::TensorType weights) noexcept;

// A batch of activation rows and their quantized forms. Reused from step to step: memory grows to the largest batch seen.
class Activations {
public:
    Activations();
    ~Activations();
    Activations(Activations&&) noexcept;
    Activations& operator=(Activations&&) noexcept;

    // Takes the rows x: [tokens, cols] at stride (not copied: x must stay until the products are done) and drops the quantized
    // forms of the rows before.
    void assign(const float* x, std::int64_t tokens, std::int64_t cols, std::int64_t stride);
    // Makes the forms (an or of ActivationForm values) that are not there yet. Allocates.
    void require(ThreadPool& pool, unsigned forms);
    // The two halves of require(), for rows that become known one after the other: memory for the forms (what they held is lost), which counts
    // as made then; and a row's forms in it. Rows may be made by several threads at once. reserve() allocates.
    void reserve(unsigned forms);
    void make(std::int64_t token) noexcept;
    void require(ThreadPool& pool, ActivationForm form) { require(pool, static_cast<unsigned>(form)); }

    [[nodiscard]] std::int64_t tokens() const noexcept;
    [[nodiscard]] std::int64_t cols() const noexcept;

    struct Storage;  // activations_storage.h: for the operators
    [[nodiscard]] const Storage& storage() const noexcept { return *storage_; }

private:
    std::unique_ptr<Storage> storage_;
};

}  // namespace headroom::cpu
