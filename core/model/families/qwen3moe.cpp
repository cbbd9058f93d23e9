// Qwen 3 with a mixture of experts in every layer; the weights of the chosen experts are normalised.

#include "core/model/families/families.h"

namespace headroom::model {

Result<Transformer> bind_qwen3moe(const gguf::File& file, Hyperparameters hyperparameters) {
    return bind_common(file, std::move(hyperparameters),
                       {.qkv_bias = Weights::Bias::optional, .qk_norm = true, .feed_forward = Traits::FeedForward::mixture});
}

}  // namespace headroom::model
