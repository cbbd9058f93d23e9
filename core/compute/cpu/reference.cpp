#include "core/compute/cpu/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/compute/cpu/arithmetic.h"
#include "core/compute/cpu/blocks.h"

namespace headroom::cpu::reference {
namespace {

using gguf::TensorType;

// The int8 codes of one group and its scale; sums are the caller's.
float quantize_codes(const float* x, std::int64_t count, std::int8_t* q) noexcept {
    float largest = 0;
    for (std::int64_t k = 0; k < count; ++k) largest = std::max(largest, std::fabs(x[k]));
    if (!(largest >= kSmallestGroup)) {
        std::fill(q, q + count, std::int8_t{0});
        return 0;
    }
    const float inverse = 127.0F / largest;
    for (std::int64_t k = 0; k < count; ++k) {
        const float code = std::nearbyint(x[k] * inverse);
        q[k] = static_cast<std::int8_t>(std::min(127.0F, std::max(-127.0F, code)));
    }
    return largest / 127.0F;
}

int sum(const std::int8_t* q, int count) noexcept {
    int total = 0;
    for (int k = 0; k < count; ++k) total += q[k];
    return total;
}

// Four accumulators, block b into b mod 4: the value of a row.
float combine(const float (&a)[4]) noexcept { return (a[0] + a[2]) + (a[1] + a[3]); }

float dot_superblocks(TensorType type, const std::byte* row, std::int64_t cols, std::int64_t block_bytes, const Group256* x,
                      std::int64_t tokens) noexcept {
    float accumulators[4] = {};
    Superblock w;
    for (std::int64_t b = 0; b < cols / kSuperblock; ++b) {
        unpack(type, row + b * block_bytes, w);
        const Group256& group = x[b * tokens];
        int products = 0;
        int minima = 0;
        for (int j = 0; j < kSuperblock / w.width; ++j) {
            int dot = 0;
            for (int k = j * w.width; k < (j + 1) * w.width; ++k) dot += w.q[k] * group.q[k];
            products += w.scales[j] * dot;
            minima += w.mins[j] * sum(group.q + j * w.width, w.width);
        }
        const float value = w.has_min ? fma(w.d, static_cast<float>(products), -(w.dmin * static_cast<float>(minima)))
                                      : w.d * static_cast<float>(products);
        accumulators[b % 4] += group.scale * value;
    }
    return combine(accumulators);
}

float dot_blocks(TensorType type, const std::byte* row, std::int64_t cols, std::int64_t block_bytes, const Groups32* x,
                 std::int64_t tokens) noexcept {
    float accumulators[4] = {};
    Block w;
    for (std::int64_t b = 0; b < cols / kBlock; ++b) {
        unpack(type, row + b * block_bytes, w);
        const Groups32& groups = x[b / 8 * tokens];
        const std::int8_t* q = groups.q + b % 8 * kBlock;
        const float scale = groups.scales[b % 8];
        int products = 0;
        for (int k = 0; k < kBlock; ++k) products += w.q[k] * q[k];
        const float value = w.has_min ? scale * fma(w.d, static_cast<float>(products), w.m * static_cast<float>(sum(q, kBlock)))
                                      : (w.d * scale) * static_cast<float>(products);
        accumulators[b % 4] += value;
    }
    return combine(accumulators);
}

float element(TensorType type, const std::byte* row, std::int64_t k) noexcept {
    if (type == TensorType::f32) return load_unaligned<float>(row + 4 * k);
    const auto bits = load_unaligned<std::uint16_t>(row + 2 * k);
    return type == TensorType::f16 ? half_to_float(bits) : bfloat_to_float(bits);
}

}  // namespace

void quantize(const float* x, Group256& out) noexcept {
    out.scale = quantize_codes(x, 256, out.q);
    for (int j = 0; j < 16; ++j) out.sums16[j] = static_cast<std::int16_t>(sum(out.q + 16 * j, 16));
    for (int j = 0; j < 8; ++j) out.sums32[j] = static_cast<std::int16_t>(out.sums16[2 * j] + out.sums16[2 * j + 1]);
}

void quantize(const float* x, std::int64_t count, Groups32& out) noexcept {
    for (int j = 0; j < 8; ++j) {
        std::int8_t* q = out.q + kBlock * j;
        if (kBlock * j < count) {
            out.scales[j] = quantize_codes(x + kBlock * j, kBlock, q);
        } else {
            std::fill(q, q + kBlock, std::int8_t{0});
            out.scales[j] = 0;
        }
        out.sums[j] = sum(q, kBlock);
    }
}

void dequantize_row(const Matrix& w, std::int64_t row, float* out) noexcept {
    const std::byte* bytes = w.data + row * w.row_bytes;
    const ActivationForm form = form_for(w.type);
    if (form == ActivationForm::floats) {
        for (std::int64_t k = 0; k < w.cols; ++k) out[k] = element(w.type, bytes, k);
    } else if (form == ActivationForm::groups_256) {
        const std::int64_t block_bytes = w.row_bytes / (w.cols / kSuperblock);
        Superblock block;
        for (std::int64_t b = 0; b < w.cols / kSuperblock; ++b, bytes += block_bytes, out += kSuperblock) {
            unpack(w.type, bytes, block);
            for (int k = 0; k < kSuperblock; ++k) {
                const int j = k / block.width;
                const float product = (block.d * static_cast<float>(block.scales[j])) * static_cast<float>(block.q[k]);
                out[k] = block.has_min ? product - block.dmin * static_cast<float>(block.mins[j]) : product;
            }
        }
    } else {
        const std::int64_t block_bytes = w.row_bytes / (w.cols / kBlock);
        Block block;
        for (std::int64_t b = 0; b < w.cols / kBlock; ++b, bytes += block_bytes, out += kBlock) {
            unpack(w.type, bytes, block);
            for (int k = 0; k < kBlock; ++k) {
                const float product = block.d * static_cast<float>(block.q[k]);
                out[k] = block.has_min ? product + block.m : product;
            }
        }
    }
}

float dot(const Matrix& w, std::int64_t row, const Activations::Storage& x, std::int64_t token) noexcept {
    const std::byte* bytes = w.data + row * w.row_bytes;
    switch (form_for(w.type)) {
        case ActivationForm::groups_256:
            return dot_superblocks(w.type, bytes, w.cols, w.row_bytes / (w.cols / kSuperblock), x.groups_256.data() + token, x.tokens);
        case ActivationForm::groups_32:
            return dot_blocks(w.type, bytes, w.cols, w.row_bytes / (w.cols / kBlock), x.groups_32.data() + token, x.tokens);
        case ActivationForm::floats: break;
    }
    const float* values = x.x + token * x.stride;
    float accumulators[32] = {};
    for (std::int64_t k = 0; k < w.cols; ++k) accumulators[k % 32] = fma(element(w.type, bytes, k), values[k], accumulators[k % 32]);
    return fold(accumulators);
}

float fold(const float (&accumulators)[32]) noexcept {
    float sums[32];
    std::copy(std::begin(accumulators), std::end(accumulators), sums);
    for (int half = 16; half > 0; half /= 2) {
        for (int i = 0; i < half; ++i) sums[i] = sums[i] + sums[i + half];
    }
    return sums[0];
}

void rms_norm(const float* x, std::int64_t n, const float* weight, float eps, float* out) noexcept {
    float sums[256] = {};
    for (std::int64_t i = 0; i < n; ++i) sums[i % 256] = fma(x[i], x[i], sums[i % 256]);
    for (int half = 128; half > 0; half /= 2) {
        for (int i = 0; i < half; ++i) sums[i] = sums[i] + sums[i + half];
    }
    const float inverse = 1.0F / std::sqrt(sums[0] / static_cast<float>(n) + eps);
    for (std::int64_t i = 0; i < n; ++i) {
        const float scaled = x[i] * inverse;
        out[i] = weight != nullptr ? scaled * weight[i] : scaled;
    }
}

void rope(float* x, std::int64_t heads, std::int64_t head_dim, const float* cosine, const float* sine, std::int64_t half,
          RopeLayout layout) noexcept {
    for (std::int64_t h = 0; h < heads; ++h, x += head_dim) {
        for (std::int64_t i = 0; i < half; ++i) {
            float& first = layout == RopeLayout::adjacent ? x[2 * i] : x[i];
            float& second = layout == RopeLayout::adjacent ? x[2 * i + 1] : x[i + half];
            const float a = first;
            const float b = second;
            first = fma(a, cosine[i], -(b * sine[i]));
            second = fma(a, sine[i], b * cosine[i]);
        }
    }
}

void to_half(const float* x, std::int64_t n, std::uint16_t* out) noexcept {
    for (std::int64_t i = 0; i < n; ++i) out[i] = float_to_half(x[i]);
}

namespace {

// The dot product of attention: 16 strided accumulators, neighbours added first.
float dot_16(const float* q, const std::uint16_t* k, std::int64_t n) noexcept {
    float sums[16] = {};
    for (std::int64_t d = 0; d < n; ++d) sums[d % 16] = fma(q[d], half_to_float(k[d]), sums[d % 16]);
    for (int left = 8; left > 0; left /= 2) {
        for (int i = 0; i < left; ++i) sums[i] = sums[2 * i] + sums[2 * i + 1];
    }
    return sums[0];
}

// Maximum, sum and output of some positions, together with those of positions behind them.
struct AttentionSums {
    float largest = 0, sum = 0;
    std::vector<float> out = {};

    void add(const AttentionSums& more) {
        if (out.empty()) {
            *this = more;
            return;
        }
        const float now = std::max(largest, more.largest);
        const float old_factor = exp_value(largest - now), new_factor = exp_value(more.largest - now);
        largest = now;
        sum = fma(sum, old_factor, more.sum * new_factor);
        for (std::size_t d = 0; d < out.size(); ++d) out[d] = fma(out[d], old_factor, more.out[d] * new_factor);
    }
};

// The keys and values of a KV head in a page that are halves.
struct HalvesOfPage {
    const std::uint16_t *k, *v;
    std::int64_t width, width_v;

    HalvesOfPage(const KvView& kv, std::int64_t page, std::int64_t kv_head, const float*)
        : k(kv_halves(kv.k_pages[page], kv_head, kv.head_dim)), v(kv_halves(kv.v_pages[page], kv_head, kv.head_dim_v)), width(kv.head_dim),
          width_v(kv.head_dim_v) {}
    float dot(const float* q, std::int64_t i) const noexcept { return dot_16(q, k + i * width, width); }
    // out: the sum over positions [from, to), of one strip, of weights p.
    void sum(const float (&p)[kStripPositions], std::int64_t from, std::int64_t to, std::vector<float>& out) const {
        for (std::int64_t d = 0; d < width_v; ++d) {
            float& o = out[static_cast<std::size_t>(d)];
            for (std::int64_t i = from; i < to; ++i) o = fma(p[i % kStripPositions], half_to_float(v[i * width_v + d]), o);
        }
    }
};

// The same of int8 codes.
struct CodesOfPage {
    KvCodes k, v;
    std::int64_t width, width_v;
    std::vector<std::int8_t> query;
    std::vector<float> query_scales;

    CodesOfPage(const KvView& kv, std::int64_t page, std::int64_t kv_head, const float* q)
        : k(kv_codes(kv.k_pages[page], kv.kv_heads, kv_head, kv.head_dim)), v(kv_codes(kv.v_pages[page], kv.kv_heads, kv_head, kv.head_dim_v)),
          width(kv.head_dim), width_v(kv.head_dim_v), query(static_cast<std::size_t>(width)) {
        for (std::int64_t d = 0; d < width; d += kKvBlock) query_scales.push_back(quantize_codes(q + d, kKvBlock, query.data() + d));
    }
    float dot(const float*, std::int64_t i) const noexcept {
        float s = 0;
        for (std::int64_t b = 0; b < width / kKvBlock; ++b) {
            int products = 0;
            for (std::int64_t d = b * kKvBlock; d < (b + 1) * kKvBlock; ++d) products += k.codes[i * width + d] * query[static_cast<std::size_t>(d)];
            const float scale = half_to_float(k.scales[i * (width / kKvBlock) + b]) * query_scales[static_cast<std::size_t>(b)];
            s = fma(scale, static_cast<float>(products), s);
        }
        return s;
    }
    void sum(const float (&p)[kStripPositions], std::int64_t from, std::int64_t to, std::vector<float>& out) const {
        for (std::int64_t b = 0; b < width_v / kKvBlock; ++b) {
            float weights[kStripPositions] = {}, largest = 0;
            for (std::int64_t i = from; i < to; ++i) {
                float& w = weights[i % kStripPositions];
                w = p[i % kStripPositions] * half_to_float(v.scales[value_scale_at(i, b, width_v)]);
                largest = std::max(largest, w);
            }
            if (!(largest >= kSmallestGroup)) continue;
            const float inverse = kMostWeightCode / largest, scale = largest / kMostWeightCode;
            for (std::int64_t d = b * kKvBlock; d < (b + 1) * kKvBlock; ++d) {
                int products = 0;
                for (std::int64_t i = from; i < to; ++i) {
                    const float code = std::nearbyint(weights[i % kStripPositions] * inverse);
                    products += static_cast<int>(std::min(kMostWeightCode, std::max(0.0F, code))) * v.codes[value_code_at(i, d, width_v)];
                }
                out[static_cast<std::size_t>(d)] = static_cast<float>(products) * scale;
            }
        }
    }
};

// Positions [begin, end) of a page, and of a strip of one.
template <class PagePart>
AttentionSums attend_page(const PagePart& part, const float* q, float scale, std::int64_t begin, std::int64_t end) {
    const auto nothing = [&] { return AttentionSums{-std::numeric_limits<float>::infinity(), 0, std::vector<float>(static_cast<std::size_t>(part.width_v))}; };
    const auto strip_sums = [&](std::int64_t from, std::int64_t to) {
        AttentionSums strip = nothing();
        float p[kStripPositions] = {};
        for (std::int64_t i = from; i < to; ++i) {
            float& score = p[i % kStripPositions];
            score = part.dot(q, i) * scale;
            strip.largest = std::max(strip.largest, score);
        }
        for (std::int64_t i = from; i < to; ++i) p[i % kStripPositions] = exp_value(p[i % kStripPositions] - strip.largest);
        strip.sum = fold(p);
        part.sum(p, from, to, strip.out);
        return strip;
    };
    std::vector<AttentionSums> strips;
    AttentionSums page = nothing();
    for (std::int64_t from = begin; from < end; from = (from / kStripPositions + 1) * kStripPositions) {
        strips.push_back(strip_sums(from, std::min(end, (from / kStripPositions + 1) * kStripPositions)));
        page.largest = std::max(page.largest, strips.back().largest);
    }
    for (const AttentionSums& strip : strips) {
        const float factor = exp_value(strip.largest - page.largest);
        page.sum = fma(strip.sum, factor, page.sum);
        for (std::size_t d = 0; d < page.out.size(); ++d) page.out[d] = fma(strip.out[d], factor, page.out[d]);
    }
    return page;
}

template <class PagePart>
void attend(const AttentionShape& shape, const float* q, std::int64_t position, std::int64_t kv_head, const KvView& kv, float* out) {
    const std::int64_t first = shape.window > 0 ? std::max<std::int64_t>(0, position - shape.window + 1) : 0;
    const std::int64_t last_page = position / kPagePositions;
    AttentionSums total, section;
    for (std::int64_t page = first / kPagePositions; page <= last_page; ++page) {
        section.add(attend_page(PagePart(kv, page, kv_head, q), q, shape.scale, std::max<std::int64_t>(0, first - page * kPagePositions),
                                std::min(kPagePositions, position + 1 - page * kPagePositions)));
        if (page == last_page || (page + 1) % kSectionPages == 0) {
            total.add(section);
            section = {};
        }
    }
    for (std::size_t d = 0; d < total.out.size(); ++d) out[d] = total.out[d] / total.sum;
}

}  // namespace

std::uint16_t quantize_kv(const float* x, std::int8_t* codes) noexcept {
    float largest = 0;
    for (std::int64_t k = 0; k < kKvBlock; ++k) largest = std::max(largest, std::fabs(x[k]));
    const std::uint16_t scale = float_to_half(largest / 127.0F);
    const float d = half_to_float(scale);
    const float inverse = d > 0 ? 1.0F / d : 0.0F;
    for (std::int64_t k = 0; k < kKvBlock; ++k) {
        codes[k] = static_cast<std::int8_t>(std::min(127.0F, std::max(-127.0F, std::nearbyint(x[k] * inverse))));
    }
    return scale;
}

void store_kv(const KvView& kv, const float* k, const float* v, std::int64_t position, const KvRounding& rounding) noexcept {
    const std::int64_t page = position / kPagePositions, i = position % kPagePositions;
    for (std::int64_t h = 0; h < kv.kv_heads; ++h, k += kv.head_dim, v += kv.head_dim_v) {
        if (kv.type == KvType::f16) {
            rounding.to_half(k, kv.head_dim, kv_halves(kv.k_pages[page], h, kv.head_dim) + i * kv.head_dim);
            rounding.to_half(v, kv.head_dim_v, kv_halves(kv.v_pages[page], h, kv.head_dim_v) + i * kv.head_dim_v);
            continue;
        }
        const KvCodes keys = kv_codes(kv.k_pages[page], kv.kv_heads, h, kv.head_dim);
        for (std::int64_t b = 0; b < kv.head_dim / kKvBlock; ++b) {
            keys.scales[i * (kv.head_dim / kKvBlock) + b] = rounding.quantize(k + b * kKvBlock, keys.codes + i * kv.head_dim + b * kKvBlock);
        }
        const KvCodes values = kv_codes(kv.v_pages[page], kv.kv_heads, h, kv.head_dim_v);
        for (std::int64_t b = 0; b < kv.head_dim_v / kKvBlock; ++b) {
            std::int8_t codes[kKvBlock];
            values.scales[value_scale_at(i, b, kv.head_dim_v)] = rounding.quantize(v + b * kKvBlock, codes);
            for (std::int64_t j = 0; j < kKvBlock; ++j) values.codes[value_code_at(i, b * kKvBlock + j, kv.head_dim_v)] = codes[j];
        }
    }
}

void attention(const AttentionShape& shape, const float* q, std::int64_t position, std::int64_t kv_head, const KvView& kv, float* out) {
    if (kv.type == KvType::f16) attend<HalvesOfPage>(shape, q, position, kv_head, kv, out);
    else attend<CodesOfPage>(shape, q, position, kv_head, kv, out);
}

void swiglu(const float* gate, const float* up, std::int64_t n, float* out) noexcept {
    for (std::int64_t i = 0; i < n; ++i) out[i] = (gate[i] / (1.0F + exp_value(-gate[i]))) * up[i];
}

void combine_experts(float* x, const float* const* outputs, const float* weights, std::int64_t used, std::int64_t n) noexcept {
    for (std::int64_t i = 0; i < n; ++i) {
        float sum = weights[0] * outputs[0][i];
        for (std::int64_t rank = 1; rank < used; ++rank) sum = fma(weights[rank], outputs[rank][i], sum);
        x[i] = x[i] + sum;
    }
}

void softmax(float* x, std::int64_t n) noexcept {
    float largest = -std::numeric_limits<float>::infinity();
    for (std::int64_t i = 0; i < n; ++i) largest = std::max(largest, x[i]);
    float sums[32] = {};
    for (std::int64_t i = 0; i < n; ++i) {
        x[i] = exp_value(x[i] - largest);
        sums[i % 32] += x[i];
    }
    const float total = fold(sums);
    for (std::int64_t i = 0; i < n; ++i) x[i] = x[i] / total;
}

}  // namespace headroom::cpu::reference
