#include "core/model/hyperparameters.h"

#include <cmath>
#include <string_view>

#include "core/base/quote.h"

namespace headroom::model {
namespace {

// Far above any model there is, and small enough that a product of three fits 64 bits.
constexpr std::uint64_t kMaxLayers = 4096;
constexpr std::uint64_t kMaxWidth = 1u << 20;
constexpr std::uint64_t kMaxContext = 1u << 30;

// Reads "{family}.{key}" values with their ranges.
class Reader {
public:
    Reader(const gguf::File& file, std::string family) : file_(file), family_(std::move(family)) {}

    [[nodiscard]] std::string key(std::string_view name) const { return fmt::format("{}.{}", family_, name); }

    [[nodiscard]] Result<std::int64_t> integer(std::string_view name, std::optional<std::int64_t> fallback, std::uint64_t low,
                                               std::uint64_t high) const {
        HR_TRY(const auto value, file_.get_unsigned(key(name)));
        if (!value) {
            if (fallback) return *fallback;
            return fail(ErrorKind::invalid_file, "{}: the metadata has no \"{}\", which a model of this family needs", file_.name(),
                        key(name));
        }
        if (*value < low || *value > high) {
            return fail(ErrorKind::invalid_file, "{}: \"{}\" is {}, expected {} to {}", file_.name(), key(name), *value, low, high);
        }
        return static_cast<std::int64_t>(*value);
    }

    [[nodiscard]] Result<double> number(std::string_view name, std::optional<double> fallback, double low, double high) const {
        HR_TRY(const auto value, file_.get_float(key(name)));
        if (!value) {
            if (fallback) return *fallback;
            return fail(ErrorKind::invalid_file, "{}: the metadata has no \"{}\", which a model of this family needs", file_.name(),
                        key(name));
        }
        if (!(*value >= low && *value <= high)) {  // refuses NaN too
            return fail(ErrorKind::invalid_file, "{}: \"{}\" is {}, expected {} to {}", file_.name(), key(name), *value, low, high);
        }
        return *value;
    }

    [[nodiscard]] Result<std::optional<std::string_view>> text(std::string_view name) const { return file_.get_string(key(name)); }
    [[nodiscard]] bool has(std::string_view name) const { return file_.find(key(name)) != nullptr; }
    [[nodiscard]] const std::string& name() const { return file_.name(); }

private:
    const gguf::File& file_;
    std::string family_;
};

Result<RopeParameters> read_rope(const Reader& reader, const Hyperparameters& model) {
    RopeParameters rope;
    HR_TRY(rope.dimensions, reader.integer("rope.dimension_count", model.head_dim, 2, static_cast<std::uint64_t>(model.head_dim)));
    if (rope.dimensions % 2 != 0) {
        return fail(ErrorKind::invalid_file, "{}: \"{}\" is {}, expected an even number", reader.name(),
                    reader.key("rope.dimension_count"), rope.dimensions);
    }
    HR_TRY(rope.base, reader.number("rope.freq_base", 10000.0, 1.0, 1e15));
    HR_TRY(const auto type, reader.text("rope.scaling.type"));
    if (!type) {
        // Files from before scaling had a type say only this; where there is a factor at all it means linear.
        HR_TRY(const double linear, reader.number("rope.scale_linear", 0.0, 0.0, 1e6));
        HR_TRY(rope.factor, reader.number("rope.scaling.factor", linear, 0.0, 1e6));
        rope.scaling = reader.has("rope.scale_linear") || reader.has("rope.scaling.factor") ? RopeScaling::linear : RopeScaling::none;
    } else if (*type == "none") {
        rope.scaling = RopeScaling::none;
    } else if (*type == "linear" || *type == "yarn") {
        rope.scaling = *type == "linear" ? RopeScaling::linear : RopeScaling::yarn;
        HR_TRY(rope.factor, reader.number("rope.scaling.factor", 1.0, 0.0, 1e6));
    } else {
        return fail(ErrorKind::unsupported,
                    "{}: the rotary scaling {} is not supported (supported: none, linear, yarn, Llama 3's factors)", reader.name(),
                    quote(*type));
    }
    if (rope.factor == 0) rope.factor = 1;  // some converters write 0 for "none"
    if (rope.factor < kMinRopeFactor) {
        return fail(ErrorKind::invalid_file, "{}: the rotary scaling factor is {}, expected {} or more", reader.name(), rope.factor,
                    kMinRopeFactor);
    }
    HR_TRY(rope.attention_factor, reader.number("rope.scaling.attn_factor", 1.0, 1e-3, 1e3));
    if (rope.scaling == RopeScaling::yarn) {
        HR_TRY(rope.original_context, reader.number("rope.scaling.original_context_length", static_cast<double>(model.context), 1.0,
                                                    static_cast<double>(kMaxContext)));
        HR_TRY(rope.extrapolation, reader.number("rope.scaling.yarn_ext_factor", 1.0, 0.0, 1.0));
        HR_TRY(const double more, reader.number("rope.scaling.yarn_attn_factor", 1.0, 1e-3, 1e3));
        rope.attention_factor *= more;
        HR_TRY(rope.beta_fast, reader.number("rope.scaling.yarn_beta_fast", 32.0, 1e-3, 1e6));
        HR_TRY(rope.beta_slow, reader.number("rope.scaling.yarn_beta_slow", 1.0, 1e-3, 1e6));
    }
    return rope;
}

}  // namespace

Result<Hyperparameters> read_hyperparameters(const gguf::File& file) {
    HR_TRY(const auto family, file.get_string("general.architecture"));
    if (!family) return fail(ErrorKind::invalid_file, "{}: the metadata has no \"general.architecture\": is it a model?", file.name());

    Hyperparameters model;
    model.family = *family;
    const Reader reader(file, model.family);
    HR_TRY(model.layers, reader.integer("block_count", std::nullopt, 1, kMaxLayers));
    HR_TRY(model.embedding, reader.integer("embedding_length", std::nullopt, 1, kMaxWidth));
    HR_TRY(model.context, reader.integer("context_length", std::nullopt, 1, kMaxContext));
    HR_TRY(model.heads, reader.integer("attention.head_count", std::nullopt, 1, kMaxWidth));
    HR_TRY(model.kv_heads, reader.integer("attention.head_count_kv", model.heads, 1, static_cast<std::uint64_t>(model.heads)));
    if (model.heads % model.kv_heads != 0) {
        return fail(ErrorKind::invalid_file, "{}: {} attention heads cannot share {} key/value heads: expected a divisor", file.name(),
                    model.heads, model.kv_heads);
    }
    HR_TRY(model.head_dim, reader.integer("attention.key_length", model.embedding / model.heads, 1, kMaxWidth));
    HR_TRY(model.head_dim_v, reader.integer("attention.value_length", model.head_dim, 1, kMaxWidth));
    if (model.head_dim < 2) {
        return fail(ErrorKind::invalid_file, "{}: heads of width {} (embedding {} over {} heads) are too narrow to be rotated",
                    file.name(), model.head_dim, model.embedding, model.heads);
    }
    HR_TRY(model.feed_forward, reader.integer("feed_forward_length", 0, 1, kMaxWidth));
    HR_TRY(model.experts, reader.integer("expert_count", 0, 0, 65536));
    if (model.experts > 0) {
        HR_TRY(model.experts_used, reader.integer("expert_used_count", std::nullopt, 1, static_cast<std::uint64_t>(model.experts)));
        HR_TRY(model.expert_feed_forward, reader.integer("expert_feed_forward_length", model.feed_forward, 1, kMaxWidth));
    }
    HR_TRY(model.window, reader.integer("attention.sliding_window", 0, 0, kMaxContext));
    HR_TRY(const double epsilon, reader.number("attention.layer_norm_rms_epsilon", std::nullopt, 1e-12, 1.0));
    model.epsilon = static_cast<float>(epsilon);
    HR_TRY(const double scale, reader.number("attention.scale", 0.0, 0.0, 1e3));
    model.attention_scale = static_cast<float>(scale > 0 ? scale : 1.0 / std::sqrt(static_cast<double>(model.head_dim)));
    HR_TRY(model.rope, read_rope(reader, model));
    return model;
}

}  // namespace headroom::model
