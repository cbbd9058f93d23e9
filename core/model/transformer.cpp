#include "core/model/transformer.h"

namespace headroom::model {

Result<> check_tokens(const Transformer& transformer, std::span<const std::int32_t> tokens) {
    for (const std::int32_t token : tokens) {
        if (token < 0 || token >= transformer.vocabulary) {
            return fail(ErrorKind::invalid_argument, "The token id {} is outside the vocabulary of {} tokens", token, transformer.vocabulary);
        }
    }
    return {};
}

}  // namespace headroom::model
