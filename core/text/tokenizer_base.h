#pragma once

// What byte-level BPE and SentencePiece have in common: special tokens, BOS, the vocabulary's questions.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/text/tokenizer.h"
#include "core/text/vocabulary.h"

namespace headroom::text {

class TokenizerBase : public Tokenizer {
public:
    [[nodiscard]] std::vector<TokenId> encode(std::string_view text, const EncodeOptions& options) const final;
    [[nodiscard]] std::vector<TokenId> encode_chat(std::string_view rendered) const final;
    [[nodiscard]] std::string mark_control(std::string_view text) const final;

    [[nodiscard]] int size() const noexcept final { return vocabulary_.size(); }
    [[nodiscard]] std::optional<TokenId> bos() const noexcept final { return vocabulary_.bos(); }
    [[nodiscard]] std::optional<TokenId> eos() const noexcept final { return vocabulary_.eos(); }
    [[nodiscard]] bool adds_bos() const noexcept final { return vocabulary_.add_bos(); }
    [[nodiscard]] bool ends_generation(TokenId id) const noexcept final { return vocabulary_.ends_generation(id); }
    [[nodiscard]] bool is_control(TokenId id) const noexcept final {
        return vocabulary_.contains(id) && vocabulary_.is_hidden(id);
    }
    [[nodiscard]] std::optional<TokenId> find(std::string_view written) const noexcept final { return vocabulary_.find(written); }
    [[nodiscard]] std::span<const std::string> warnings() const noexcept final { return warnings_; }

protected:
    TokenizerBase(Vocabulary vocabulary, std::vector<std::string> warnings)
        : vocabulary_(std::move(vocabulary)), warnings_(std::move(warnings)) {}

    // Appends the tokens of text without special ones in it. Never empty; the text's start or a special token is before it.
    virtual void encode_plain(std::string_view text, std::vector<TokenId>& ids) const = 0;

    const Vocabulary vocabulary_;

private:
    // Appends text, cut at the tokens that `specials` finds.
    void encode_with(const SpecialMatcher& specials, std::string_view text, std::vector<TokenId>& ids) const;
    void prepend_bos(std::vector<TokenId>& ids) const;

    const std::vector<std::string> warnings_;
};

}  // namespace headroom::text
