#include "tests/simgpu/model_kernels.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "core/compute/cpu/ops.h"
#include "core/compute/cpu/quantize.h"

namespace sim {

using namespace headroom;
using namespace headroom::kernels;

void store_forms(const float* x, std::int64_t n, std::int64_t row, const Quantized& groups_256, const Quantized& groups_32) {
    const auto sums = [&](const Quantized& to) {
        for (std::int64_t j = 0; to.sums && j < n / 16; ++j) {
            const std::int8_t* codes = to.codes + row * n + 16 * j;
            to.sums[row * (n / 16) + j] = static_cast<std::int16_t>(std::accumulate(codes, codes + 16, 0));
        }
    };
    if (groups_256.codes) {
        std::vector<cpu::Group256> groups(static_cast<std::size_t>(n / 256));
        cpu::quantize_row(x, n, groups.data(), 1);
        for (std::int64_t g = 0; g < n / 256; ++g) {
            const auto& group = groups[static_cast<std::size_t>(g)];
            std::memcpy(groups_256.codes + row * n + 256 * g, group.q, 256);
            groups_256.scales[row * (n / 256) + g] = group.scale;
        }
        sums(groups_256);
    }
    if (groups_32.codes) {
        std::vector<cpu::Groups32> groups(static_cast<std::size_t>((n + 255) / 256));
        cpu::quantize_row(x, n, groups.data(), 1);
        for (std::int64_t g = 0; g < n / 32; ++g) {
            const auto& eight = groups[static_cast<std::size_t>(g / 8)];
            std::memcpy(groups_32.codes + row * n + 32 * g, eight.q + 32 * (g % 8), 32);
            groups_32.scales[row * (n / 32) + g] = eight.scales[g % 8];
        }
        sums(groups_32);
    }
}

void run(std::string_view, const EmbedArguments& a) {
    for (std::int32_t t = 0; t < a.count; ++t) cpu::dequantize_row(matrix(a.table), a.tokens[t], a.x + std::int64_t(t) * a.table.cols);
}

void run(std::string_view, const NormArguments& a) {
    std::vector<float> row(static_cast<std::size_t>(a.n));
    for (std::int32_t i = 0; i < a.count; ++i) {
        const float* x = a.x + std::int64_t(a.rows ? a.rows[i] : i) * a.n;
        if (a.weight) {
            cpu::rms_norm(OneThread(), x, 1, a.n, a.n, a.weight, a.epsilon, row.data());
        } else {
            std::copy_n(x, a.n, row.data());
        }
        if (a.out) std::ranges::copy(row, a.out + std::int64_t(i) * a.n);
        store_forms(row.data(), a.n, i, a.groups_256, a.groups_32);
    }
}

void run(std::string_view, const SwigluArguments& a) {
    std::vector<float> row(static_cast<std::size_t>(a.n));
    for (std::int64_t i = 0; i < a.rows; ++i) {
        cpu::swiglu(OneThread(), a.gate + i * a.n, a.up + i * a.n, 1, a.n, a.n, row.data());
        if (a.out) std::ranges::copy(row, a.out + i * a.n);
        store_forms(row.data(), a.n, i, a.groups_256, a.groups_32);
    }
}

namespace {

// The pages of a session up to a position, as the operators take them. Pages that lie before `first` are not looked at.
struct Pages {
    Pages(const KvPool& pool, const Places& places, std::int32_t table, std::int32_t first, std::int32_t last) {
        const auto count = static_cast<std::size_t>(last / cpu::kPagePositions + 1);
        k.resize(count);
        v.resize(count);
        for (auto p = static_cast<std::size_t>(first / cpu::kPagePositions); p < count; ++p) {
            const std::int32_t page = places.pages[std::int64_t(table) * places.pages_stride + static_cast<std::int64_t>(p)];
            std::uint8_t* base = pool.base + static_cast<std::uint64_t>(page) * pool.page_bytes;
            k[p] = reinterpret_cast<std::byte*>(base + pool.k_offset);
            v[p] = reinterpret_cast<std::byte*>(base + pool.v_offset);
        }
        view = {k.data(), v.data(), pool.kv_heads, pool.head_dim, pool.head_dim_v, static_cast<cpu::KvType>(pool.type)};
    }
    std::vector<std::byte*> k, v;
    cpu::KvView view;
};

}  // namespace

void run(std::string_view, const HeadArguments& a) {
    const std::int64_t dim = a.pool.head_dim, q_width = a.heads * dim, k_width = a.pool.kv_heads * dim;
    const std::int64_t v_width = std::int64_t(a.pool.kv_heads) * a.pool.head_dim_v;
    std::vector<float> k(static_cast<std::size_t>(k_width));
    for (std::int64_t t = 0; t < a.tokens; ++t) {
        float* q = a.q + t * q_width;
        std::copy_n(a.k + t * k_width, k_width, k.data());
        if (a.q_norm) cpu::rms_norm(OneThread(), q, a.heads, dim, dim, a.q_norm, a.epsilon, q);
        if (a.k_norm) cpu::rms_norm(OneThread(), k.data(), a.pool.kv_heads, dim, dim, a.k_norm, a.epsilon, k.data());
        if (a.half > 0) {
            const auto layout = static_cast<cpu::RopeLayout>(a.layout);
            const float *cosine = a.cosine + t * a.half, *sine = a.sine + t * a.half;
            cpu::rope(OneThread(), q, 1, a.heads, dim, q_width, cosine, sine, a.half, layout);
            cpu::rope(OneThread(), k.data(), 1, a.pool.kv_heads, dim, k_width, cosine, sine, a.half, layout);
        }
        const std::int32_t position = a.places.positions[t];
        const Pages pages(a.pool, a.places, a.places.tables[t], position, position);
        cpu::store_kv(OneThread(), pages.view, k.data(), k_width, a.v + t * v_width, v_width, 1, position);
    }
}

// Also for prefill, which may differ from this within its tolerance.
void run(std::string_view, const AttentionArguments& a) {
    const std::int64_t q_width = std::int64_t(a.heads) * a.pool.head_dim, out_width = std::int64_t(a.heads) * a.pool.head_dim_v;
    for (std::int32_t t = 0; t < a.tokens;) {
        // Neighbouring positions of one session go together.
        const std::int32_t table = a.places.tables[t], first = a.places.positions[t];
        std::int32_t count = 1;
        while (t + count < a.tokens && a.places.tables[t + count] == table && a.places.positions[t + count] == first + count) ++count;
        const std::int32_t seen = a.window > 0 ? std::max(0, first - a.window + 1) : 0;
        const Pages pages(a.pool, a.places, table, seen, first + count - 1);
        const cpu::AttentionShape shape{
            .heads = a.heads, .tokens = count, .first_position = first, .window = a.window, .scale = a.scale};
        cpu::attention(OneThread(), shape, a.q + t * q_width, q_width, pages.view, a.out + t * out_width, out_width);
        t += count;
    }
}

void run(std::string_view name, const StepAttentionArguments& a) {
    run(name, a.heads);  // q may be changed
    run(name, a.attention);
    const std::int64_t width = std::int64_t(a.attention.heads) * a.attention.pool.head_dim_v;
    for (std::int64_t t = 0; t < a.attention.tokens; ++t) store_forms(a.attention.out + t * width, width, t, a.attention.groups_256, {});
}

void run(std::string_view name, const AheadAttentionArguments& a) { run(name, StepAttentionArguments{.heads = a.heads, .attention = a.attention}); }

void run(std::string_view name, const CombineNormArguments& a) {
    run(name, a.combine);
    run(name, a.norm);
}

void run(std::string_view, const ArgmaxArguments& a) {
    for (std::int64_t row = 0; row < a.rows; ++row) a.out[row] = static_cast<std::int32_t>(cpu::argmax(a.x + row * a.n, a.n));
}

void run(std::string_view, const TopArguments& a) {
    std::vector<std::int32_t> ids(static_cast<std::size_t>(a.n));
    for (std::int64_t row = 0; row < a.rows; ++row) {
        const float* x = a.x + row * a.n;
        std::iota(ids.begin(), ids.end(), 0);
        const auto value = [x](std::int32_t i) { return std::isnan(x[i]) ? -std::numeric_limits<float>::infinity() : x[i]; };
        std::partial_sort(ids.begin(), ids.begin() + a.k, ids.end(), [&](auto i, auto j) { return value(i) > value(j) || (value(i) == value(j) && i < j); });
        for (std::int64_t i = 0; i < a.k; ++i) {
            a.ids[row * a.k + i] = ids[static_cast<std::size_t>(i)];
            a.values[row * a.k + i] = value(ids[static_cast<std::size_t>(i)]);
        }
    }
}

void run(std::string_view, const HandOverArguments& a) {
    const std::int32_t choices = a.tokens * a.used;
    const std::uint32_t count = ++*a.counter;
    const auto absent = [&](std::int32_t expert) { return !a.table || !a.table[expert].gate; };
    const auto all = static_cast<std::int32_t>(std::count_if(a.chosen, a.chosen + choices, absent));
    std::int32_t rank = 0, asked = 0;
    std::vector<std::int32_t> for_host(a.chosen, a.chosen + choices);
    for (std::int32_t i = 0; i < choices; ++i) {
        const std::int32_t expert = a.chosen[i];
        if (a.placed) a.placed[i] = expert;
        if (!absent(expert)) continue;
        if (a.placed && rank++ < read_by_device(all, *a.share) && a.table[expert + a.host_entries].gate) {
            a.placed[i] = expert + a.host_entries;
            for_host[static_cast<std::size_t>(i)] = kNotAsked;
        } else {
            ++asked;
        }
    }
    if (asked == 0) return;
    std::copy_n(a.x, std::int64_t(a.tokens) * a.width, a.host_x);
    std::ranges::copy(for_host, a.host_chosen);
    if (a.awaited) *a.awaited = count;
    std::atomic_ref(*a.flag).store(count, std::memory_order_release);
}

void run(std::string_view, const AwaitArguments& a) {
    if (a.arrived) std::atomic_ref(*a.arrived).store(*a.counter, std::memory_order_release);
    const std::atomic_ref flag(*const_cast<std::uint32_t*>(a.flag));
    while (flag.load(std::memory_order_acquire) < *a.counter) std::this_thread::yield();
}

void register_model_kernels(Simulator& simulator) {
#define SIM_REGISTER(name, arguments)                                            \
    simulator.register_kernel(                                                   \
        "headroom_" #name,                                                       \
        [](const SimLaunch*, void** parameters) {                                \
            arguments a;                                                         \
            std::memcpy(&a, parameters[0], sizeof a);                            \
            run(#name, a);                                                       \
        },                                                                       \
        {sizeof(arguments)});
    HR_KERNELS(SIM_REGISTER)
#undef SIM_REGISTER
}

}  // namespace sim
