#include "core/model/transformer.h"

namespace headroom::model {

Result<> set_kv_type(Transformer& transformer, cpu::KvType type) {
    const Hyperparameters& model = transformer.hyperparameters;
    if (type == cpu::KvType::q8_0 && !cpu::can_quantize_kv(model.head_dim, model.head_dim_v)) {
        return fail(ErrorKind::unsupported,
                    "The heads of this model are {} (keys) and {} (values) elements wide; for keys and values of 8 bits (q8_0) a width has to be a "
                    "multiple of {}, at most {}: choose 16 bits (f16)",
                    model.head_dim, model.head_dim_v, cpu::kKvBlock, cpu::kMostQuantizedWidth);
    }
    transformer.kv_type = type;
    return {};
}

Result<> check_tokens(const Transformer& transformer, std::span<const std::int32_t> tokens) {
    for (const std::int32_t token : tokens) {
        if (token < 0 || token >= transformer.vocabulary) {
            return fail(ErrorKind::invalid_argument, "The token id {} is outside the vocabulary of {} tokens", token, transformer.vocabulary);
        }
    }
    return {};
}

}  // namespace headroom::model
