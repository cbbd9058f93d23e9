#pragma once

#include <array>

#include "core/text/merge.h"
#include "core/text/tokenizer_base.h"

namespace headroom::text {

// SentencePiece BPE (tokenizer.ggml.model "llama"): spaces are written U+2581, one is put in front of the text, and neighbours are
// joined whose text is a token, the best score first. What is left over is spelt in byte tokens.
class SpmTokenizer final : public TokenizerBase {
public:
    [[nodiscard]] static Result<std::unique_ptr<const Tokenizer>> load(const gguf::File& file);

    [[nodiscard]] std::string piece(TokenId id, bool show_special) const override;
    [[nodiscard]] std::string decode(std::span<const TokenId> ids, bool show_special) const override;

private:
    SpmTokenizer(Vocabulary vocabulary, std::vector<float> scores, bool add_space_prefix);
    // A token that running text may be made of.
    [[nodiscard]] std::optional<TokenId> find_text(std::string_view text) const noexcept;
    void encode_plain(std::string_view text, std::vector<TokenId>& ids) const override;

    std::vector<float> scores_;            // [vocabulary]
    bool add_space_prefix_;
    std::array<TokenId, 256> byte_ids_{};  // "<0x41>"; -1: no such token
};

}  // namespace headroom::text
