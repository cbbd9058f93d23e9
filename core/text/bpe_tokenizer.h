#pragma once

#include <array>
#include <unordered_map>

#include "core/text/merge.h"
#include "core/text/pretokenizer.h"
#include "core/text/tokenizer_base.h"

namespace headroom::text {

// Byte-level BPE (tokenizer.ggml.model "gpt2"): the pre-tokenizer cuts the text into words, each byte of a word is a token, and
// neighbours are merged by the ranks of tokenizer.ggml.merges.
class BpeTokenizer final : public TokenizerBase {
public:
    [[nodiscard]] static Result<std::unique_ptr<const Tokenizer>> load(const gguf::File& file);

    [[nodiscard]] std::string piece(TokenId id, bool show_special) const override;
    [[nodiscard]] std::string decode(std::span<const TokenId> ids, bool show_special) const override;

private:
    struct Ranked {
        std::uint32_t rank;
        TokenId id;
    };
    using MergeTable = std::unordered_map<std::uint64_t, Ranked>;  // by pair_key

    BpeTokenizer(Vocabulary vocabulary, std::vector<std::string> warnings, PreTokenizer pre_tokenizer, bool whole_words_first,
                 MergeTable merges);
    [[nodiscard]] static std::uint64_t pair_key(TokenId left, TokenId right) noexcept {
        return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32) | static_cast<std::uint32_t>(right);
    }
    // The merges that make and join tokens of the vocabulary; `left_out` counts the others.
    static Result<MergeTable> read_merges(const gguf::File& file, const Vocabulary& vocabulary, std::size_t& left_out);

    void encode_plain(std::string_view text, std::vector<TokenId>& ids) const override;
    void encode_word(std::string_view word, std::vector<Symbol>& symbols, std::vector<TokenId>& ids) const;

    PreTokenizer pre_tokenizer_;
    bool whole_words_first_;
    MergeTable merges_;
    std::array<TokenId, 256> byte_ids_{};  // -1: no such token
};

}  // namespace headroom::text
