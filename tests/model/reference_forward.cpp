#include "tests/model/reference_forward.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numbers>
#include <numeric>

#include "core/compute/cpu/ops.h"

namespace headroom::test {

ReferenceForward::ReferenceForward(const gguf::File& file) : file_(file) {
    for (const gguf::Tensor& tensor : file.tensors()) {
        const gguf::TypeInfo& type = gguf::type_info(tensor.type);
        Tensor& copy = tensors_[std::string(tensor.name)];
        copy.cols = tensor.shape[0];
        copy.rows = tensor.shape[1];
        copy.values.resize(tensor.elements());
        const auto cols = static_cast<std::int64_t>(copy.cols);
        const auto all_rows = static_cast<std::int64_t>(tensor.elements() / tensor.shape[0]);
        const cpu::Matrix matrix{.type = tensor.type, .data = tensor.data.data(), .rows = all_rows, .cols = cols,
                                 .row_bytes = cols / type.block_elements * type.block_bytes};
        for (std::int64_t row = 0; row < all_rows; ++row) cpu::dequantize_row(matrix, row, copy.values.data() + row * cols);
    }
    family_ = text("general.architecture");
    const auto size = [&](const char* key, double fallback) { return static_cast<std::size_t>(number(family_ + "." + key, fallback)); };
    layers_ = size("block_count", 0);
    width_ = size("embedding_length", 0);
    heads_ = size("attention.head_count", 0);
    kv_heads_ = size("attention.head_count_kv", static_cast<double>(heads_));
    head_dim_ = size("attention.key_length", static_cast<double>(width_ / heads_));
    head_dim_v_ = size("attention.value_length", static_cast<double>(head_dim_));
    experts_ = size("expert_count", 0);
    used_ = size("expert_used_count", 0);
    window_ = size("attention.sliding_window", 0);
    epsilon_ = static_cast<float>(number(family_ + ".attention.layer_norm_rms_epsilon", 0));

    // The rotation. YaRN by the paper's words: wavelengths that fit the original context often keep their angle.
    const double n = static_cast<double>(size("rope.dimension_count", static_cast<double>(head_dim_)));
    const double base = number(family_ + ".rope.freq_base", 10000);
    const std::string scaling = text(family_ + ".rope.scaling.type");
    const double factor = number(family_ + ".rope.scaling.factor", 1);
    const double original = number(family_ + ".rope.scaling.original_context_length", 0);
    const Tensor* factors = find("rope_freqs.weight");
    const auto pair_of = [&](double turns) {
        return n * std::log(original / (2 * std::numbers::pi * turns)) / (2 * std::log(base));
    };
    for (double pair = 0; pair < n / 2; ++pair) {
        double frequency = std::pow(base, -2 * pair / n);
        if (factors != nullptr) frequency /= static_cast<double>(factors->values[static_cast<std::size_t>(pair)]);
        if (scaling == "linear") frequency /= factor;
        if (scaling == "yarn") {
            const double low = std::max(0.0, std::floor(pair_of(32)));
            const double high = std::min(n - 1, std::ceil(pair_of(1)));
            const double scaled_share = std::clamp((pair - low) / std::max(0.001, high - low), 0.0, 1.0);
            frequency = frequency / factor * scaled_share + frequency * (1 - scaled_share);
        }
        frequencies_.push_back(frequency);
    }
    if (scaling == "yarn") magnitude_ = 1 + 0.1 * std::log(factor);
}

double ReferenceForward::number(const std::string& key, double fallback) const {
    const auto value = file_.get_float(key);
    if (!value) std::abort();
    return value->value_or(fallback);
}

std::string ReferenceForward::text(const std::string& key) const {
    const auto value = file_.get_string(key);
    if (!value) std::abort();
    return std::string(value->value_or(""));
}

const ReferenceForward::Tensor* ReferenceForward::find(const std::string& name) const {
    const auto found = tensors_.find(name);
    return found == tensors_.end() ? nullptr : &found->second;
}

// y[t][r] = sum over k of w[first_row + r][k] * x[t][k]. The innermost loop runs over the tokens, so that a compiler can use vectors
// without changing the order of any sum.
ReferenceForward::Rows ReferenceForward::multiply(const Tensor& w, std::size_t first_row, std::size_t rows, const Rows& x) const {
    const std::size_t tokens = x.size() / w.cols;
    std::vector<float> columns(x.size());  // x transposed: [cols, tokens]
    for (std::size_t t = 0; t < tokens; ++t) {
        for (std::size_t k = 0; k < w.cols; ++k) columns[k * tokens + t] = x[t * w.cols + k];
    }
    Rows y(tokens * rows);
    std::vector<float> sums(tokens);
    for (std::size_t r = 0; r < rows; ++r) {
        std::ranges::fill(sums, 0.0f);
        const float* weights = w.values.data() + (first_row + r) * w.cols;
        for (std::size_t k = 0; k < w.cols; ++k) {
            const float weight = weights[k];
            const float* column = columns.data() + k * tokens;
            float* sum = sums.data();
            for (std::size_t t = 0; t < tokens; ++t) sum[t] += weight * column[t];
        }
        for (std::size_t t = 0; t < tokens; ++t) y[t * rows + r] = sums[t];
    }
    return y;
}

ReferenceForward::Rows ReferenceForward::linear(const std::string& name, const Rows& x) const {
    const Tensor* w = find(name + ".weight");
    if (w == nullptr) std::abort();
    Rows y = multiply(*w, 0, w->rows, x);
    if (const Tensor* bias = find(name + ".bias")) {
        for (std::size_t i = 0; i < y.size(); ++i) y[i] += bias->values[i % w->rows];
    }
    return y;
}

ReferenceForward::Rows ReferenceForward::norm(const std::string& name, const Rows& x) const {
    const Tensor* w = find(name + ".weight");
    if (w == nullptr) return x;  // only the norms of q and k may be absent
    Rows y(x.size());
    for (std::size_t begin = 0; begin < x.size(); begin += w->cols) {
        float squares = 0;
        for (std::size_t i = 0; i < w->cols; ++i) squares += x[begin + i] * x[begin + i];
        const float scale = 1 / std::sqrt(squares / static_cast<float>(w->cols) + epsilon_);
        for (std::size_t i = 0; i < w->cols; ++i) y[begin + i] = x[begin + i] * scale * w->values[i];
    }
    return y;
}

void ReferenceForward::rotate(Rows& x, std::size_t heads) const {
    const std::size_t half = frequencies_.size();
    const bool adjacent = family_ == "llama";
    for (std::size_t head = 0; head < x.size() / head_dim_; ++head) {
        const double position = static_cast<double>(head / heads);
        for (std::size_t pair = 0; pair < half; ++pair) {
            const double angle = position * frequencies_[pair];
            const auto cosine = static_cast<float>(std::cos(angle) * magnitude_);
            const auto sine = static_cast<float>(std::sin(angle) * magnitude_);
            float& a = x[head * head_dim_ + (adjacent ? 2 * pair : pair)];
            float& b = x[head * head_dim_ + (adjacent ? 2 * pair + 1 : pair + half)];
            const float turned = a * cosine - b * sine;
            b = a * sine + b * cosine;
            a = turned;
        }
    }
}

ReferenceForward::Rows ReferenceForward::attend(const Rows& q, const Rows& k, const Rows& v) const {
    const std::size_t tokens = q.size() / (heads_ * head_dim_);
    Rows out(tokens * heads_ * head_dim_v_);
    std::vector<float> scores(tokens);
    for (std::size_t t = 0; t < tokens; ++t) {
        const std::size_t first = window_ > 0 && t + 1 > window_ ? t + 1 - window_ : 0;
        for (std::size_t head = 0; head < heads_; ++head) {
            const std::size_t kv_head = head / (heads_ / kv_heads_);
            const float* query = q.data() + (t * heads_ + head) * head_dim_;
            float largest = -INFINITY;
            for (std::size_t p = first; p <= t; ++p) {
                const float* key = k.data() + (p * kv_heads_ + kv_head) * head_dim_;
                float score = 0;
                for (std::size_t i = 0; i < head_dim_; ++i) score += query[i] * key[i];
                scores[p] = score / std::sqrt(static_cast<float>(head_dim_));
                largest = std::max(largest, scores[p]);
            }
            float sum = 0;
            float* result = out.data() + (t * heads_ + head) * head_dim_v_;
            for (std::size_t p = first; p <= t; ++p) {
                const float weight = std::exp(scores[p] - largest);
                const float* value = v.data() + (p * kv_heads_ + kv_head) * head_dim_v_;
                sum += weight;
                for (std::size_t i = 0; i < head_dim_v_; ++i) result[i] += weight * value[i];
            }
            for (std::size_t i = 0; i < head_dim_v_; ++i) result[i] /= sum;
        }
    }
    return out;
}

ReferenceForward::Rows ReferenceForward::dense(const std::string& block, const Rows& x) const {
    Rows gate = linear(block + "ffn_gate", x);
    const Rows up = linear(block + "ffn_up", x);
    for (std::size_t i = 0; i < gate.size(); ++i) gate[i] = gate[i] / (1 + std::exp(-gate[i])) * up[i];
    return linear(block + "ffn_down", gate);
}

ReferenceForward::Rows ReferenceForward::mixture(const std::string& block, const Rows& x) const {
    const std::size_t tokens = x.size() / width_;
    const Tensor& gate = *find(block + "ffn_gate_exps.weight");
    const Tensor& up = *find(block + "ffn_up_exps.weight");
    const Tensor& down = *find(block + "ffn_down_exps.weight");
    Rows shares = linear(block + "ffn_gate_inp", x);  // [tokens, experts]; those not chosen become 0
    for (std::size_t t = 0; t < tokens; ++t) {
        float* row = shares.data() + t * experts_;
        const float largest = *std::max_element(row, row + experts_);
        for (std::size_t e = 0; e < experts_; ++e) row[e] = std::exp(row[e] - largest);
        std::vector<std::size_t> order(experts_);
        std::iota(order.begin(), order.end(), 0u);
        std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return row[a] > row[b]; });
        float sum = 0;
        for (std::size_t rank = 0; rank < experts_; ++rank) {
            if (rank < used_) sum += row[order[rank]];
            else row[order[rank]] = 0;
        }
        for (std::size_t e = 0; e < experts_; ++e) row[e] /= sum;
    }
    Rows out(x.size());
    for (std::size_t e = 0; e < experts_; ++e) {
        std::vector<std::size_t> chosen;
        Rows inputs;
        for (std::size_t t = 0; t < tokens; ++t) {
            if (shares[t * experts_ + e] == 0) continue;
            chosen.push_back(t);
            inputs.insert(inputs.end(), x.begin() + static_cast<std::ptrdiff_t>(t * width_),
                          x.begin() + static_cast<std::ptrdiff_t>((t + 1) * width_));
        }
        if (chosen.empty()) continue;
        Rows hidden = multiply(gate, e * gate.rows, gate.rows, inputs);
        const Rows factor = multiply(up, e * up.rows, up.rows, inputs);
        for (std::size_t i = 0; i < hidden.size(); ++i) hidden[i] = hidden[i] / (1 + std::exp(-hidden[i])) * factor[i];
        const Rows result = multiply(down, e * down.rows, down.rows, hidden);
        for (std::size_t i = 0; i < chosen.size(); ++i) {
            for (std::size_t j = 0; j < width_; ++j) {
                out[chosen[i] * width_ + j] += shares[chosen[i] * experts_ + e] * result[i * width_ + j];
            }
        }
    }
    return out;
}

std::vector<std::vector<float>> ReferenceForward::logits(std::span<const std::int32_t> tokens, std::span<const int> positions) const {
    const Tensor& embedding = *find("token_embd.weight");
    Rows x;
    for (const std::int32_t token : tokens) {
        const auto row = embedding.values.begin() + token * static_cast<std::ptrdiff_t>(width_);
        x.insert(x.end(), row, row + static_cast<std::ptrdiff_t>(width_));
    }
    const auto add = [&](const Rows& more) {
        for (std::size_t i = 0; i < x.size(); ++i) x[i] += more[i];
    };
    for (std::size_t layer = 0; layer < layers_; ++layer) {
        const std::string block = "blk." + std::to_string(layer) + ".";
        const Rows normed = norm(block + "attn_norm", x);
        Rows q = norm(block + "attn_q_norm", linear(block + "attn_q", normed));
        Rows k = norm(block + "attn_k_norm", linear(block + "attn_k", normed));
        rotate(q, heads_);
        rotate(k, kv_heads_);
        add(linear(block + "attn_output", attend(q, k, linear(block + "attn_v", normed))));
        const Rows inner = norm(block + "ffn_norm", x);
        add(experts_ > 0 ? mixture(block, inner) : dense(block, inner));
    }
    Rows wanted;
    for (const int position : positions) {
        const auto row = x.begin() + position * static_cast<std::ptrdiff_t>(width_);
        wanted.insert(wanted.end(), row, row + static_cast<std::ptrdiff_t>(width_));
    }
    const Rows flat = linear(find("output.weight") != nullptr ? "output" : "token_embd", norm("output_norm", wanted));
    const std::size_t vocabulary = embedding.rows;
    std::vector<std::vector<float>> result;
    for (std::size_t i = 0; i < positions.size(); ++i) {
        const auto row = flat.begin() + static_cast<std::ptrdiff_t>(i * vocabulary);
        result.emplace_back(row, row + static_cast<std::ptrdiff_t>(vocabulary));
    }
    return result;
}

}  // namespace headroom::test
