#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/gguf/file.h"

namespace headroom::text {

using TokenId = std::int32_t;

struct EncodeOptions {
    bool parse_special = false;  // control tokens written out in the text ("<|im_end|>") become those tokens
    bool add_bos = true;         // as the file asks (tokenizer.ggml.add_bos_token and its like); false: never. Never a second BOS.
};

// Text to token ids and back, as the model's file says. Immutable after load; safe from any thread.
class Tokenizer {
public:
    // Errors: unsupported (tokenizer.ggml.model is neither gpt2 nor llama), invalid_file.
    [[nodiscard]] static Result<std::unique_ptr<const Tokenizer>> load(const gguf::File& file);
    virtual ~Tokenizer() = default;

    // text: any bytes; what is not UTF-8 is encoded byte by byte where the vocabulary can, else as its unknown token.
    // Never fails on long input; time is linear or n log n in it.
    [[nodiscard]] virtual std::vector<TokenId> encode(std::string_view text, const EncodeOptions& options) const = 0;

    // A rendered chat (see chat_prompt.h): special tokens are parsed except where kPlainMark stands inside one; the marks are
    // taken out.
    [[nodiscard]] virtual std::vector<TokenId> encode_chat(std::string_view rendered) const = 0;

    // The text with kPlainMark put into every control token that is written out in it, for encode_chat; marks that are already
    // there are taken out.
    [[nodiscard]] virtual std::string mark_control(std::string_view text) const = 0;

    // The bytes of one token as they appear in running text; may be part of a UTF-8 character. Control tokens give "" unless
    // show_special. An id outside the vocabulary gives "".
    [[nodiscard]] virtual std::string piece(TokenId id, bool show_special) const = 0;
    // All of them joined; for SentencePiece the space that encoding put in front is taken off again.
    [[nodiscard]] virtual std::string decode(std::span<const TokenId> ids, bool show_special) const = 0;

    [[nodiscard]] virtual int size() const noexcept = 0;  // vocabulary entries
    [[nodiscard]] virtual std::optional<TokenId> bos() const noexcept = 0;
    [[nodiscard]] virtual std::optional<TokenId> eos() const noexcept = 0;
    [[nodiscard]] virtual bool adds_bos() const noexcept = 0;
    // End of sequence, end of turn, and the other tokens after which an answer is over.
    [[nodiscard]] virtual bool ends_generation(TokenId id) const noexcept = 0;
    [[nodiscard]] virtual bool is_control(TokenId id) const noexcept = 0;
    // The id of the token written exactly so ("<|im_end|>").
    [[nodiscard]] virtual std::optional<TokenId> find(std::string_view written) const noexcept = 0;
    // Sentences for the user: an unknown or missing pre-tokenizer, and the like.
    [[nodiscard]] virtual std::span<const std::string> warnings() const noexcept = 0;
};

}  // namespace headroom::text
