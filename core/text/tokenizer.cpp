#include "core/text/tokenizer.h"

#include "core/base/quote.h"
#include "core/text/bpe_tokenizer.h"
#include "core/text/spm_tokenizer.h"

namespace headroom::text {

Result<std::unique_ptr<const Tokenizer>> Tokenizer::load(const gguf::File& file) {
    HR_TRY(const auto model, file.get_string("tokenizer.ggml.model"));
    if (!model)
        return fail(ErrorKind::invalid_file, "{}: the file has no tokenizer (tokenizer.ggml.model is missing); it may be one part of a model",
                    file.name());
    if (*model == "gpt2") return BpeTokenizer::load(file);
    if (*model == "llama") return SpmTokenizer::load(file);
    return fail(ErrorKind::unsupported, "{}: the tokenizer {} is not supported; those that work are gpt2 and llama", file.name(),
                quote(*model));
}

}  // namespace headroom::text
