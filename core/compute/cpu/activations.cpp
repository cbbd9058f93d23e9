#include "core/compute/cpu/activations.h"

#include "core/compute/cpu/activations_storage.h"
#include "core/compute/cpu/quantize.h"

namespace headroom::cpu {

using gguf::TensorType;
namespace {

bool has(unsigned forms, ActivationForm form) noexcept { return (forms & static_cast<unsigned>(form)) != 0; }

void make_row(Activations::Storage& s, std::int64_t t, unsigned forms) noexcept {
    const bool make_quads = s.tokens <= kQuadTokens;
    if (has(forms, ActivationForm::groups_256)) {
        quantize_row(s.x + t * s.stride, s.cols, s.groups_256.data() + t, s.tokens);
        if (make_quads) interleave(s.groups_256.data() + t, s.cols, s.quads_256.data() + t, s.tokens);
    }
    if (has(forms, ActivationForm::groups_32)) {
        quantize_row(s.x + t * s.stride, s.cols, s.groups_32.data() + t, s.tokens);
        if (make_quads) interleave(s.groups_32.data() + t, s.cols, s.quads_32.data() + t, s.tokens);
    }
}

}  // namespace

ActivationForm form_for(TensorType weights) noexcept {
    switch (weights) {
        case TensorType::q4_0:
        case TensorType::q4_1:
        case TensorType::q5_0:
        case TensorType::q5_1:
        case TensorType::q8_0:
        case TensorType::iq4_nl: return ActivationForm::groups_32;
        case TensorType::q2_k:
        case TensorType::q3_k:
        case TensorType::q4_k:
        case TensorType::q5_k:
        case TensorType::q6_k:
        case TensorType::iq4_xs: return ActivationForm::groups_256;
        default: return ActivationForm::floats;
    }
}

Activations::Activations() : storage_(std::make_unique<Storage>()) {}
Activations::~Activations() = default;
Activations::Activations(Activations&&) noexcept = default;
Activations& Activations::operator=(Activations&&) noexcept = default;

void Activations::assign(const float* x, std::int64_t tokens, std::int64_t cols, std::int64_t stride) {
    storage_->x = x;
    storage_->tokens = tokens;
    storage_->cols = cols;
    storage_->stride = stride;
    storage_->forms = static_cast<unsigned>(ActivationForm::floats);
}

void Activations::reserve(unsigned forms) {
    Storage& s = *storage_;
    const auto count = static_cast<std::size_t>((s.cols + 255) / 256 * s.tokens);
    const bool make_quads = s.tokens <= kQuadTokens;
    if (has(forms, ActivationForm::groups_256)) {
        s.groups_256.require(count);
        if (make_quads) s.quads_256.require(static_cast<std::size_t>((s.cols + 1023) / 1024 * s.tokens));
    }
    if (has(forms, ActivationForm::groups_32)) {
        s.groups_32.require(count);
        if (make_quads) s.quads_32.require(static_cast<std::size_t>((s.cols + 127) / 128 * s.tokens));
    }
    s.forms |= forms;
}

void Activations::make(std::int64_t token) noexcept { make_row(*storage_, token, storage_->forms); }

void Activations::require(ThreadPool& pool, unsigned forms) {
    Storage& s = *storage_;
    const unsigned missing = forms & ~s.forms;
    reserve(missing);
    if (!has(missing, ActivationForm::groups_256) && !has(missing, ActivationForm::groups_32)) return;
    // A single token is done before another thread would have begun.
    pool.parallel_for(s.tokens, 1 + 16384 / s.cols, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t t = begin; t < end; ++t) make_row(s, t, missing);
    });
}

std::int64_t Activations::tokens() const noexcept { return storage_->tokens; }
std::int64_t Activations::cols() const noexcept { return storage_->cols; }

}  // namespace headroom::cpu
