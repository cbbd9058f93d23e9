// Products on the simulated card.

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "core/compute/cpu/ops.h"
#include "core/compute/cpu/product.h"
#include "core/compute/cpu/quantize.h"
#include "tests/simgpu/model_kernels.h"

namespace sim {
namespace {

using namespace headroom;
using namespace headroom::kernels;
using gguf::TensorType;

// The activations of a call, as the tiles of core/compute/cpu read them: from floats, from quantized arrays, or both.
struct Rows {
    Rows(std::int64_t tokens, std::int64_t cols, const float* x) {
        storage.x = x;
        storage.tokens = tokens;
        storage.cols = cols;
        storage.stride = cols;
    }

    // The codes of the form, as another kernel left them.
    void take_256(const Quantized& from) {
        const std::int64_t groups = storage.cols / 256;
        storage.groups_256.require(static_cast<std::size_t>(groups * storage.tokens));
        for (std::int64_t t = 0; t < storage.tokens; ++t) {
            for (std::int64_t g = 0; g < groups; ++g) {
                cpu::Group256& group = storage.groups_256.data()[g * storage.tokens + t];
                std::memcpy(group.q, from.codes + t * storage.cols + 256 * g, 256);
                std::memcpy(group.sums16, from.sums + t * (storage.cols / 16) + 16 * g, sizeof group.sums16);
                for (int j = 0; j < 8; ++j) group.sums32[j] = static_cast<std::int16_t>(group.sums16[2 * j] + group.sums16[2 * j + 1]);
                group.scale = from.scales[t * groups + g];
            }
        }
        quads();
    }
    void take_32(const Quantized& from) {
        const std::int64_t groups = storage.cols / 32, eights = (groups + 7) / 8;
        storage.groups_32.require(static_cast<std::size_t>(eights * storage.tokens));
        for (std::int64_t t = 0; t < storage.tokens; ++t) {
            for (std::int64_t e = 0; e < eights; ++e) storage.groups_32.data()[e * storage.tokens + t] = {};
            for (std::int64_t g = 0; g < groups; ++g) {
                cpu::Groups32& eight = storage.groups_32.data()[g / 8 * storage.tokens + t];
                std::memcpy(eight.q + 32 * (g % 8), from.codes + t * storage.cols + 32 * g, 32);
                const std::int16_t* sums = from.sums + t * (storage.cols / 16) + 2 * g;
                eight.sums[g % 8] = sums[0] + sums[1];
                eight.scales[g % 8] = from.scales[t * groups + g];
            }
        }
        quads();
    }
    // What a matrix of the type reads, from where the call has it; quantized here where it has floats only.
    void take_for(TensorType type, const Quantized& groups_256, const Quantized& groups_32) {
        switch (cpu::form_for(type)) {
            case cpu::ActivationForm::floats: return;
            case cpu::ActivationForm::groups_256:
                if (storage.groups_256.data()) return;
                if (groups_256.codes) return take_256(groups_256);
                storage.groups_256.require(static_cast<std::size_t>(storage.cols / 256 * storage.tokens));
                for (std::int64_t t = 0; t < storage.tokens; ++t) {
                    cpu::quantize_row(storage.x + t * storage.cols, storage.cols, storage.groups_256.data() + t, storage.tokens);
                }
                return quads();
            case cpu::ActivationForm::groups_32:
                if (storage.groups_32.data()) return;
                if (groups_32.codes) return take_32(groups_32);
                storage.groups_32.require(static_cast<std::size_t>((storage.cols + 255) / 256 * storage.tokens));
                for (std::int64_t t = 0; t < storage.tokens; ++t) {
                    cpu::quantize_row(storage.x + t * storage.cols, storage.cols, storage.groups_32.data() + t, storage.tokens);
                }
                return quads();
        }
    }
    // For the kernel of a single row.
    void quads() {
        const std::int64_t cols = storage.cols, tokens = storage.tokens;
        if (tokens > cpu::kQuadTokens) return;
        if (storage.groups_256.data()) {
            storage.quads_256.require(static_cast<std::size_t>((cols + 1023) / 1024 * tokens));
            for (std::int64_t t = 0; t < tokens; ++t) cpu::interleave(storage.groups_256.data() + t, cols, storage.quads_256.data() + t, tokens);
        }
        if (storage.groups_32.data()) {
            storage.quads_32.require(static_cast<std::size_t>((cols + 127) / 128 * tokens));
            for (std::int64_t t = 0; t < tokens; ++t) cpu::interleave(storage.groups_32.data() + t, cols, storage.quads_32.data() + t, tokens);
        }
    }

    // y[i * y_stride + r] = w x[rows[i]]; rows null: all.
    void multiply(const cpu::Matrix& w, const std::int32_t* rows, std::int64_t count, float* y, std::int64_t y_stride) const {
        const std::int64_t whole = (w.rows + cpu::kTileRows - 1) / cpu::kTileRows * cpu::kTileRows;
        const cpu::Tile tile{&w, 0, whole, &storage, rows, count, y, y_stride};
        if (cpu::form_for(w.type) == cpu::ActivationForm::floats) return cpu::float_kernel()(tile);
        const bool single = count == 1 && storage.tokens <= cpu::kQuadTokens && w.type != TensorType::q5_0 && w.type != TensorType::q5_1;
        (single ? cpu::row_kernel() : cpu::panel_kernel())(tile);
    }

    cpu::Activations::Storage storage;
};

// The type at the end of a kernel's name.
TensorType type_of(std::string_view name) {
#define SIM_TYPE(type) {#type, TensorType::type}
    static constexpr std::pair<std::string_view, TensorType> types[] = {
        SIM_TYPE(q4_0), SIM_TYPE(q4_1), SIM_TYPE(q5_0), SIM_TYPE(q5_1), SIM_TYPE(q8_0), SIM_TYPE(q2_k),
        SIM_TYPE(q3_k), SIM_TYPE(q4_k), SIM_TYPE(q5_k), SIM_TYPE(q6_k), SIM_TYPE(iq4_nl), SIM_TYPE(iq4_xs)};
#undef SIM_TYPE
    const auto found = std::ranges::find_if(types, [&](const auto& type) { return name.ends_with(type.first); });
    if (found == std::end(types)) std::abort();  // a new type is missing above
    return found->second;
}

bool is_here(const ExpertAddresses& expert) { return expert.gate || expert.up || expert.down; }

cpu::Matrix expert_matrix(const std::uint8_t* data, std::uint32_t type, std::int32_t rows, std::int32_t cols, std::uint32_t row_bytes) {
    return {static_cast<TensorType>(type), reinterpret_cast<const std::byte*>(data), rows, cols, row_bytes};
}

// The products of a call with rows that hold what they need.
void multiply(const Rows& x, const Target* targets, std::int32_t count, bool swiglu) {
    const std::int64_t tokens = x.storage.tokens;
    std::vector<std::vector<float>> results;
    for (std::int32_t i = 0; i < count; ++i) {
        const cpu::Matrix w = matrix(targets[i].w);
        auto& y = results.emplace_back(static_cast<std::size_t>(tokens * w.rows));
        x.multiply(w, nullptr, tokens, y.data(), w.rows);
        if (targets[i].bias) cpu::add_bias(OneThread(), y.data(), targets[i].bias, tokens, w.rows, w.rows);
    }
    if (swiglu) {
        const std::int64_t n = targets[0].w.rows;
        cpu::swiglu(OneThread(), results[0].data(), results[1].data(), tokens, n, n, results[0].data());
        count = 1;
    }
    for (std::int32_t i = 0; i < count; ++i) {
        const std::int64_t n = targets[i].w.rows;
        const auto& y = results[static_cast<std::size_t>(i)];
        if (targets[i].add) {
            cpu::add(OneThread(), targets[i].y, y.data(), tokens, n, targets[i].y_stride, n);
        } else {
            for (std::int64_t t = 0; t < tokens; ++t) std::copy_n(y.data() + t * n, n, targets[i].y + t * targets[i].y_stride);
        }
    }
}

}  // namespace

void run(std::string_view name, const ProductArguments& a) {
    const std::int64_t cols = a.targets[0].w.cols;
    if (name == "product_rows" || name.starts_with("product_few")) {
        Rows x(a.tokens, cols, a.x);
        for (std::int32_t i = 0; i < a.target_count; ++i) x.take_for(static_cast<TensorType>(a.targets[i].w.type), a.groups_256, a.groups_32);
        return multiply(x, a.targets, a.target_count, a.swiglu != 0);
    }
    std::vector<float> row(a.x, a.x + cols);
    if (a.norm) cpu::rms_norm(OneThread(), a.x, 1, cols, cols, a.norm, a.epsilon, row.data());
    Rows x(1, cols, row.data());
    for (std::int32_t i = 0; i < a.target_count; ++i) x.take_for(static_cast<TensorType>(a.targets[i].w.type), {}, {});
    multiply(x, a.targets, a.target_count, a.swiglu != 0);
}

void run(std::string_view, const ProductTilesArguments& a) {
    Rows x(a.tokens, a.target.w.cols, nullptr);
    x.take_for(static_cast<TensorType>(a.target.w.type), a.x, a.x);
    multiply(x, &a.target, 1, false);
}

namespace {

void count_chosen(std::int32_t* counts, const std::int32_t* chosen, std::int32_t n) {
    for (std::int32_t i = 0; counts && i < n; ++i) std::atomic_ref(counts[chosen[i]]).fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

void run(std::string_view, const RouterArguments& a) {
    const std::int64_t width = a.w.cols;
    cpu::rms_norm(OneThread(), a.x, a.tokens, width, width, a.norm, a.epsilon, a.normed);
    for (std::int32_t t = 0; t < a.tokens; ++t) store_forms(a.normed + t * width, width, t, a.groups_256, a.groups_32);
    Rows x(a.tokens, width, a.normed);
    x.take_for(static_cast<TensorType>(a.w.type), {}, {});
    x.multiply(matrix(a.w), nullptr, a.tokens, a.scores, a.w.rows);
    if (!a.chosen) return;
    cpu::route(a.scores, a.tokens, a.w.rows, a.used, a.normalize != 0, a.chosen, a.shares);
    count_chosen(a.counts, a.chosen, a.tokens * a.used);
}

void run(std::string_view, const ChooseArguments& a) {
    cpu::route(a.scores, a.tokens, a.experts, a.used, a.normalize != 0, a.chosen, a.shares);
    count_chosen(a.counts, a.chosen, a.tokens * a.used);
}

void run(std::string_view, const ExpertsGateUpArguments& a) {
    const ExpertShape& s = a.shape;
    if (a.scores) {
        cpu::route(a.scores, a.tokens, s.experts, s.used, a.normalize != 0, a.chosen, a.shares);
        count_chosen(a.counts, a.chosen, a.tokens * s.used);
    }
    Rows x(a.tokens, s.width, a.x);
    x.take_for(static_cast<TensorType>(s.gate_type), a.groups_256, a.groups_32);
    x.take_for(static_cast<TensorType>(s.up_type), a.groups_256, a.groups_32);
    std::vector<float> up(static_cast<std::size_t>(s.hidden));
    for (std::int32_t c = 0; c < a.tokens * s.used; ++c) {
        const ExpertAddresses& expert = a.table[a.chosen[c]];
        if (!is_here(expert)) continue;
        const std::int32_t token = c / s.used;
        float* hidden = a.hidden + std::int64_t(c) * s.hidden;
        x.multiply(expert_matrix(expert.gate, s.gate_type, s.hidden, s.width, s.gate_row_bytes), &token, 1, hidden, s.hidden);
        x.multiply(expert_matrix(expert.up, s.up_type, s.hidden, s.width, s.up_row_bytes), &token, 1, up.data(), s.hidden);
        cpu::swiglu(OneThread(), hidden, up.data(), 1, s.hidden, s.hidden, hidden);
    }
}

void run(std::string_view, const ExpertsDownArguments& a) {
    const ExpertShape& s = a.shape;
    const std::int64_t choices = std::int64_t(a.tokens) * s.used;
    std::vector<float> kept(a.outputs ? 0 : static_cast<std::size_t>(choices * s.width));
    float* outputs = a.outputs ? a.outputs : kept.data();
    std::vector<const float*> rows(static_cast<std::size_t>(choices));
    for (std::int64_t c = 0; c < choices; ++c) {
        rows[static_cast<std::size_t>(c)] = outputs + c * s.width;
        const ExpertAddresses& expert = a.table[a.chosen[c]];
        if (!is_here(expert)) continue;  // its row of hidden was not written
        Rows hidden(1, s.hidden, a.hidden + c * s.hidden);
        hidden.take_for(static_cast<TensorType>(s.down_type), {}, {});
        hidden.multiply(expert_matrix(expert.down, s.down_type, s.width, s.hidden, s.down_row_bytes), nullptr, 1, outputs + c * s.width, s.width);
    }
    if (!a.outputs) cpu::combine_experts(OneThread(), a.x, s.width, rows.data(), a.shares, a.tokens, s.used, s.width);
}

void run(std::string_view name, const FewGateUpArguments& a) { run(name, a.of); }
void run(std::string_view name, const FewDownArguments& a) { run(name, a.of); }

void run(std::string_view, const GroupArguments& a) {
    std::fill_n(a.offsets, a.experts + 1, 0);
    for (std::int32_t i = 0; i < a.choices; ++i) ++a.offsets[a.chosen[i] + 1];
    for (std::int32_t e = 0; e < a.experts; ++e) a.offsets[e + 1] += a.offsets[e];
    std::vector<std::int32_t> next(a.offsets, a.offsets + a.experts);
    for (std::int32_t i = 0; i < a.choices; ++i) a.rows[next[static_cast<std::size_t>(a.chosen[i])]++] = i;
}

void run(std::string_view name, const ExpertsTilesArguments& a) {
    const TensorType type = type_of(name);
    Rows x((a.choices + a.divisor - 1) / a.divisor, a.cols, nullptr);
    x.take_for(type, a.x, a.x);
    std::vector<std::int32_t> tokens;
    std::vector<float> y;
    for (std::int32_t e = 0; e < a.experts; ++e) {
        const std::uint8_t* data = a.which == 0 ? a.table[e].gate : a.which == 1 ? a.table[e].up : a.table[e].down;
        const std::int32_t first = a.offsets[e], count = a.offsets[e + 1] - first;
        if (data == nullptr || count == 0) continue;
        tokens.assign(a.grouped + first, a.grouped + first + count);
        for (auto& token : tokens) token /= a.divisor;
        y.resize(static_cast<std::size_t>(std::int64_t(count) * a.rows));
        x.multiply(expert_matrix(data, static_cast<std::uint32_t>(type), a.rows, a.cols, a.row_bytes), tokens.data(), count, y.data(), a.rows);
        for (std::int64_t i = 0; i < count; ++i) std::copy_n(y.data() + i * a.rows, a.rows, a.y + std::int64_t(a.grouped[first + i]) * a.rows);
    }
}

void run(std::string_view, const CombineArguments& a) {
    const std::int64_t choices = std::int64_t(a.tokens) * a.used;
    std::vector<const float*> rows(static_cast<std::size_t>(choices));
    for (std::int64_t c = 0; c < choices; ++c) {
        rows[static_cast<std::size_t>(c)] = (a.host_outputs == nullptr || is_here(a.table[a.chosen[c]]) ? a.outputs : a.host_outputs) + c * a.n;
    }
    cpu::combine_experts(OneThread(), a.x, a.n, rows.data(), a.shares, a.tokens, a.used, a.n);
}

}  // namespace sim
