// Qwen 3 (dense): a norm on each head of q and k.

#include "core/model/families/families.h"

namespace headroom::model {

Result<Transformer> bind_qwen3(const gguf::File& file, Hyperparameters hyperparameters) {
    return bind_common(file, std::move(hyperparameters), {.qkv_bias = Weights::Bias::optional, .qk_norm = true});
}

}  // namespace headroom::model
