// Any bytes as a model: what accepts a GGUF file after the reader (tokenizer, hyper-parameters, weights, the forward pass) takes it or
// gives an error.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/quote.h"
#include "core/base/thread_pool.h"
#include "core/gguf/file.h"
#include "core/model/family.h"
#include "core/model/forward.h"
#include "core/text/tokenizer.h"
#include "tests/fuzz/expect.h"

using namespace headroom;

namespace {

// What a person waits for grows with the file; a fuzzer wants many small ones.
constexpr std::int64_t max_scratch_bytes = 64 << 20;

void check_error(const Error& error) {
    FUZZ_EXPECT(error.kind == ErrorKind::invalid_file || error.kind == ErrorKind::unsupported || error.kind == ErrorKind::out_of_memory);
    FUZZ_EXPECT(!error.message.empty());
    FUZZ_EXPECT(printable(error.message) == error.message);
}

void use_tokenizer(const text::Tokenizer& tokenizer) {
    constexpr std::string_view text = "Hello  hello\n<s></s>\xFF größe 123 <|im_end|>";
    const auto in_vocabulary = [&](const std::vector<text::TokenId>& ids) {
        for (const text::TokenId id : ids) FUZZ_EXPECT(id >= 0 && id < tokenizer.size());
    };
    for (const bool special : {false, true}) {
        const auto ids = tokenizer.encode(text, {.parse_special = special, .add_bos = true});
        in_vocabulary(ids);
        static_cast<void>(tokenizer.decode(ids, special));
    }
    in_vocabulary(tokenizer.encode_chat(tokenizer.mark_control(text)));
    for (const text::TokenId id : {-1, 0, tokenizer.size() - 1, tokenizer.size()}) {
        static_cast<void>(tokenizer.piece(id, true));
        static_cast<void>(tokenizer.ends_generation(id));
        static_cast<void>(tokenizer.is_control(id));
    }
    for (const auto id : {tokenizer.bos(), tokenizer.eos()}) FUZZ_EXPECT(!id || (*id >= 0 && *id < tokenizer.size()));
    for (const std::string& warning : tokenizer.warnings()) FUZZ_EXPECT(printable(warning) == warning);
}

void use_transformer(const model::Transformer& transformer) {
    if (model::Forward::scratch_bytes(transformer, 4) > max_scratch_bytes) return;
    if (transformer.kv_shape().page_bytes() > max_scratch_bytes) return;
    static ThreadPool pool(1);
    model::Forward forward(transformer, pool);
    model::KvCache cache(transformer.kv_shape());
    const auto last = static_cast<std::int32_t>(transformer.vocabulary - 1);
    const std::array<std::int32_t, 3> tokens{0, last, last / 2};
    const std::array<std::int32_t, 1> rows{2};
    std::size_t size = 0;
    const auto done = forward.run({.cache = cache, .tokens = tokens, .rows = rows},
                                  [&](std::int32_t, std::span<float> logits) { size = logits.size(); });
    if (!done) return check_error(done.error());
    FUZZ_EXPECT(size == static_cast<std::size_t>(transformer.vocabulary));
    FUZZ_EXPECT(cache.length() == 3);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto file = gguf::File::parse(std::as_bytes(std::span(data, size)), "fuzz.gguf");
    if (!file) return -1;  // fuzz_gguf's business
    const auto tokenizer = text::Tokenizer::load(*file);
    if (tokenizer) {
        use_tokenizer(**tokenizer);
    } else {
        check_error(tokenizer.error());
    }
    const auto transformer = model::bind_transformer(*file);
    if (transformer) {
        use_transformer(*transformer);
    } else {
        check_error(transformer.error());
    }
    return 0;
}
