// Llama 1 to 3, Mistral, Mixtral and their kin: rotation of adjacent pairs (converters permute q and k for it), biases where a
// file has them, sliding windows, frequency factors, a mixture of experts where the file names experts.

#include "core/model/families/families.h"

namespace headroom::model {

Result<Transformer> bind_llama(const gguf::File& file, Hyperparameters hyperparameters) {
    return bind_common(file, std::move(hyperparameters),
                       {.rope = cpu::RopeLayout::adjacent,
                        .qkv_bias = Weights::Bias::optional,
                        .other_bias = Weights::Bias::optional,
                        .feed_forward = Traits::FeedForward::either});
}

}  // namespace headroom::model
