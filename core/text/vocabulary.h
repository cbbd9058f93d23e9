#pragma once

// The vocabulary of a GGUF file (tokenizer.ggml.*): texts, types, special ids. What both kinds of tokenizer share.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/base/error.h"
#include "core/gguf/file.h"
#include "core/text/special_matcher.h"
#include "core/text/tokenizer.h"

namespace headroom::text {

// The value is the number in the file (tokenizer.ggml.token_type).
enum class TokenType : std::uint8_t { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };

// What holds for a kind of vocabulary where the file is silent.
struct VocabularyDefaults {
    std::optional<TokenId> bos, eos, unknown;
    bool add_bos = false;
};

// Keeps its own copy of the texts: the file may be closed. Immutable after load.
class Vocabulary {
public:
    // Errors: invalid_file, naming the key.
    [[nodiscard]] static Result<Vocabulary> load(const gguf::File& file, const VocabularyDefaults& defaults);

    [[nodiscard]] int size() const noexcept { return static_cast<int>(types_.size()); }
    [[nodiscard]] bool contains(TokenId id) const noexcept { return id >= 0 && id < size(); }
    // As written in the file. The id must be in the vocabulary.
    [[nodiscard]] std::string_view text(TokenId id) const noexcept {
        const auto i = static_cast<std::size_t>(id);
        return std::string_view(texts_).substr(starts_[i], starts_[i + 1] - starts_[i]);
    }
    [[nodiscard]] TokenType type(TokenId id) const noexcept { return types_[static_cast<std::size_t>(id)]; }
    // A token that never comes from running text unless special tokens are parsed.
    [[nodiscard]] bool is_hidden(TokenId id) const noexcept {
        return type(id) == TokenType::control || type(id) == TokenType::unknown;
    }
    // The first token of this text, whatever its type.
    [[nodiscard]] std::optional<TokenId> find(std::string_view written) const noexcept;

    [[nodiscard]] std::optional<TokenId> bos() const noexcept { return bos_; }
    [[nodiscard]] std::optional<TokenId> eos() const noexcept { return eos_; }
    [[nodiscard]] std::optional<TokenId> unknown() const noexcept { return unknown_; }
    [[nodiscard]] bool add_bos() const noexcept { return add_bos_ && bos_; }
    [[nodiscard]] bool ends_generation(TokenId id) const noexcept { return ends_.contains(id); }
    // The longest of all texts, in bytes.
    [[nodiscard]] std::size_t longest() const noexcept { return longest_; }

    // Tokens that are found in text before anything else: with hidden ones, and the user-defined ones alone.
    [[nodiscard]] const SpecialMatcher& specials() const noexcept { return specials_; }
    [[nodiscard]] const SpecialMatcher& user_defined() const noexcept { return user_defined_; }
    [[nodiscard]] const SpecialMatcher& hidden() const noexcept { return hidden_; }

private:
    Result<> read_tokens(const gguf::File& file);
    Result<> read_special_ids(const gguf::File& file, const VocabularyDefaults& defaults);

    std::string texts_;                // one behind the other
    std::vector<std::size_t> starts_;  // [size + 1]
    std::vector<TokenType> types_;     // [size]
    // The first token of each text, by the text's hash (views into texts_ would dangle when a short string moves).
    std::unordered_multimap<std::size_t, TokenId> by_hash_;
    std::unordered_set<TokenId> ends_;
    std::optional<TokenId> bos_, eos_, unknown_;
    bool add_bos_ = false;
    std::size_t longest_ = 0;
    SpecialMatcher specials_, user_defined_, hidden_;
};

}  // namespace headroom::text
