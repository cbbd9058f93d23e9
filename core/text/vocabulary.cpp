#include "core/text/vocabulary.h"

#include <algorithm>
#include <array>
#include <functional>

namespace headroom::text {
namespace {

// Names under which models write "the answer ends here". Not every file lists them in its metadata.
constexpr auto kEndNames = std::to_array<std::string_view>({
    "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end|>", "<end_of_turn>", "<|end_of_turn|>", "<|endoftext|>", "<|end_of_text|>",
    "<end_of_utterance>", "<|eot|>", "<EOT>", "_<EOT>", "<｜end▁of▁sentence｜>", "</s>",
});

Result<std::optional<TokenId>> read_id(const gguf::File& file, std::string_view key, int size) {
    HR_TRY(const auto value, file.get_unsigned(key));
    if (!value) return std::nullopt;
    // Files without such a token are known to say -1 here, as an unsigned number.
    if (*value == 0xFFFFFFFFu) return std::nullopt;
    if (*value >= static_cast<std::uint64_t>(size))
        return fail(ErrorKind::invalid_file, "{}: {} is {}, but the vocabulary has only {} tokens", file.name(), key, *value, size);
    return static_cast<TokenId>(*value);
}

}  // namespace

Result<Vocabulary> Vocabulary::load(const gguf::File& file, const VocabularyDefaults& defaults) {
    Vocabulary vocabulary;
    HR_CHECK(vocabulary.read_tokens(file));
    HR_CHECK(vocabulary.read_special_ids(file, defaults));
    return vocabulary;
}

Result<> Vocabulary::read_tokens(const gguf::File& file) {
    HR_TRY(const gguf::Array* tokens, file.get_array("tokenizer.ggml.tokens", gguf::ValueType::string));
    if (tokens == nullptr || tokens->strings.empty())
        return fail(ErrorKind::invalid_file, "{}: there is no vocabulary (tokenizer.ggml.tokens)", file.name());
    if (tokens->strings.size() > 0x7FFFFFFFu)
        return fail(ErrorKind::invalid_file, "{}: tokenizer.ggml.tokens has more entries than an id can number", file.name());
    HR_TRY(const gguf::Array* types, file.get_array("tokenizer.ggml.token_type", gguf::ValueType::i32));
    if (types != nullptr && types->count != tokens->strings.size())
        return fail(ErrorKind::invalid_file, "{}: tokenizer.ggml.token_type has {} entries for {} tokens", file.name(), types->count,
                    tokens->strings.size());

    const std::size_t count = tokens->strings.size();
    starts_.reserve(count + 1);
    starts_.push_back(0);
    types_.reserve(count);
    by_hash_.reserve(count);
    std::size_t bytes = 0;
    for (const std::string_view text : tokens->strings) bytes += text.size();
    texts_.reserve(bytes);
    std::vector<std::pair<std::string, TokenId>> user_defined;
    std::vector<std::pair<std::string, TokenId>> hidden;
    for (std::size_t i = 0; i < count; ++i) {
        const std::string_view text = tokens->strings[i];
        const std::int64_t number = types != nullptr ? types->integer(i) : 1;
        if (number < 0 || number > 6)
            return fail(ErrorKind::invalid_file, "{}: token {} has the unknown type {} in tokenizer.ggml.token_type", file.name(), i,
                        number);
        const auto type = number == 0 ? TokenType::normal : static_cast<TokenType>(number);
        const auto id = static_cast<TokenId>(i);
        texts_.append(text);
        starts_.push_back(texts_.size());
        types_.push_back(type);
        longest_ = std::max(longest_, text.size());
        if (!find(text)) by_hash_.emplace(std::hash<std::string_view>{}(text), id);
        if (type == TokenType::user_defined) user_defined.emplace_back(text, id);
        if (type == TokenType::control || type == TokenType::unknown) hidden.emplace_back(text, id);
    }
    auto all = hidden;
    all.insert(all.end(), user_defined.begin(), user_defined.end());
    specials_ = SpecialMatcher(std::move(all));
    user_defined_ = SpecialMatcher(std::move(user_defined));
    hidden_ = SpecialMatcher(std::move(hidden));
    return {};
}

Result<> Vocabulary::read_special_ids(const gguf::File& file, const VocabularyDefaults& defaults) {
    const auto or_default = [&](std::optional<TokenId> id, std::optional<TokenId> otherwise) {
        return id || !otherwise || !contains(*otherwise) ? id : otherwise;
    };
    HR_TRY(const auto bos, read_id(file, "tokenizer.ggml.bos_token_id", size()));
    HR_TRY(const auto eos, read_id(file, "tokenizer.ggml.eos_token_id", size()));
    HR_TRY(const auto unknown, read_id(file, "tokenizer.ggml.unknown_token_id", size()));
    bos_ = or_default(bos, defaults.bos);
    eos_ = or_default(eos, defaults.eos);
    unknown_ = or_default(unknown, defaults.unknown);
    HR_TRY(const auto add_bos, file.get_bool("tokenizer.ggml.add_bos_token"));
    add_bos_ = add_bos.value_or(defaults.add_bos);

    if (eos_) ends_.insert(*eos_);
    for (const std::string_view key : {"tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"}) {
        HR_TRY(const auto id, read_id(file, key, size()));
        if (id) ends_.insert(*id);
    }
    for (const std::string_view name : kEndNames) {
        const auto id = find(name);
        if (id && (type(*id) == TokenType::control || type(*id) == TokenType::user_defined)) ends_.insert(*id);
    }
    return {};
}

std::optional<TokenId> Vocabulary::find(std::string_view written) const noexcept {
    const auto [first, last] = by_hash_.equal_range(std::hash<std::string_view>{}(written));
    for (auto it = first; it != last; ++it)
        if (text(it->second) == written) return it->second;
    return std::nullopt;
}

}  // namespace headroom::text
