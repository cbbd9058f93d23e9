// Qwen 1.5, 2 and 2.5 (dense): biases on q, k and v.

#include "core/model/families/families.h"

namespace headroom::model {

Result<Transformer> bind_qwen2(const gguf::File& file, Hyperparameters hyperparameters) {
    return bind_common(file, std::move(hyperparameters),
                       {.qkv_bias = Weights::Bias::required, .other_bias = Weights::Bias::optional});
}

}  // namespace headroom::model
