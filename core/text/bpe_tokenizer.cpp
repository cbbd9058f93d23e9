#include "core/text/bpe_tokenizer.h"

#include <algorithm>
#include <utility>

#include "core/base/quote.h"
#include "core/text/byte_alphabet.h"

namespace headroom::text {

BpeTokenizer::BpeTokenizer(Vocabulary vocabulary, std::vector<std::string> warnings, PreTokenizer pre_tokenizer,
                           bool whole_words_first, MergeTable merges)
    : TokenizerBase(std::move(vocabulary), std::move(warnings)),
      pre_tokenizer_(std::move(pre_tokenizer)),
      whole_words_first_(whole_words_first),
      merges_(std::move(merges)) {
    for (std::size_t byte = 0; byte < byte_ids_.size(); ++byte) {
        const auto id = vocabulary_.find(byte_letter(static_cast<unsigned char>(byte)));
        // A user-defined token of one letter is that letter, not the byte it stands for.
        const bool usable = id && (vocabulary_.type(*id) == TokenType::normal || vocabulary_.type(*id) == TokenType::byte);
        byte_ids_[byte] = usable ? *id : vocabulary_.unknown().value_or(-1);
    }
}

Result<std::unique_ptr<const Tokenizer>> BpeTokenizer::load(const gguf::File& file) {
    std::vector<std::string> warnings;
    HR_TRY(const auto name, file.get_string("tokenizer.ggml.pre"));
    const PreTokenizerKind* kind = name ? find_pre_tokenizer(*name) : nullptr;
    if (kind == nullptr) {
        kind = &default_pre_tokenizer();
        warnings.push_back(fmt::format("{}: {}; a general one is used, and answers may be worse", file.name(),
                                       name ? fmt::format("the pre-tokenizer {} is not known", quote(*name))
                                            : "the file names no pre-tokenizer (tokenizer.ggml.pre)"));
    }
    HR_TRY(auto pre_tokenizer, PreTokenizer::compile(*kind));
    HR_TRY(auto vocabulary, Vocabulary::load(file, {.bos = {}, .eos = {}, .unknown = {}, .add_bos = kind->add_bos}));
    std::size_t left_out = 0;
    HR_TRY(auto merges, read_merges(file, vocabulary, left_out));
    if (left_out > 0)
        warnings.push_back(fmt::format("{}: {} of the merges (tokenizer.ggml.merges) name tokens that the vocabulary lacks; they are "
                                       "left out",
                                       file.name(), left_out));
    return std::unique_ptr<const Tokenizer>(new BpeTokenizer(std::move(vocabulary), std::move(warnings), std::move(pre_tokenizer),
                                                             kind->whole_words_first, std::move(merges)));
}

Result<BpeTokenizer::MergeTable> BpeTokenizer::read_merges(const gguf::File& file, const Vocabulary& vocabulary,
                                                           std::size_t& left_out) {
    HR_TRY(const gguf::Array* lines, file.get_array("tokenizer.ggml.merges", gguf::ValueType::string));
    if (lines == nullptr)
        return fail(ErrorKind::invalid_file, "{}: a gpt2 vocabulary needs its merges, but tokenizer.ggml.merges is missing",
                    file.name());
    MergeTable merges;
    merges.reserve(lines->strings.size());
    std::string joined;
    std::uint32_t rank = 0;
    for (const std::string_view line : lines->strings) {
        // "left right": neither side is empty, and a letter of the byte alphabet is never a space.
        const std::size_t space = line.find(' ', 1);
        if (space == std::string_view::npos || space + 1 == line.size())
            return fail(ErrorKind::invalid_file, "{}: entry {} of tokenizer.ggml.merges is {}, expected two tokens with a space between",
                        file.name(), rank, quote(line));
        const auto left = vocabulary.find(line.substr(0, space));
        const auto right = vocabulary.find(line.substr(space + 1));
        joined.assign(line.substr(0, space)).append(line.substr(space + 1));
        const auto id = vocabulary.find(joined);
        if (left && right && id) {
            merges.emplace(pair_key(*left, *right), Ranked{rank, *id});  // of two equal entries the first counts
        } else {
            ++left_out;
        }
        ++rank;
    }
    return merges;
}

void BpeTokenizer::encode_plain(std::string_view text, std::vector<TokenId>& ids) const {
    std::vector<std::string_view> words;
    pre_tokenizer_.split(text, words);
    std::vector<Symbol> symbols;
    for (const std::string_view word : words) encode_word(word, symbols, ids);
}

void BpeTokenizer::encode_word(std::string_view word, std::vector<Symbol>& symbols, std::vector<TokenId>& ids) const {
    if (whole_words_first_) {
        std::string letters;
        for (const char byte : word) letters.append(byte_letter(static_cast<unsigned char>(byte)));
        const auto id = vocabulary_.find(letters);
        if (id && vocabulary_.type(*id) == TokenType::normal) {
            ids.push_back(*id);
            return;
        }
    }
    symbols.clear();
    for (std::size_t i = 0; i < word.size(); ++i)
        symbols.push_back({.begin = static_cast<std::uint32_t>(i), .length = 1, .id = byte_ids_[static_cast<unsigned char>(word[i])]});
    merge_symbols(symbols, [&](const Symbol& left, const Symbol& right) -> std::optional<Merge> {
        const auto it = merges_.find(pair_key(left.id, right.id));
        if (it == merges_.end()) return std::nullopt;
        return Merge{static_cast<double>(it->second.rank), it->second.id};
    });
    for (const Symbol& symbol : symbols)
        if (symbol.length > 0 && symbol.id >= 0) ids.push_back(symbol.id);
}

std::string BpeTokenizer::piece(TokenId id, bool show_special) const {
    if (!vocabulary_.contains(id)) return {};
    if (vocabulary_.is_hidden(id)) return show_special ? std::string(vocabulary_.text(id)) : std::string();
    // User-defined tokens are written as they are, all others in the byte alphabet.
    if (vocabulary_.type(id) == TokenType::user_defined) return std::string(vocabulary_.text(id));
    return letters_to_bytes(vocabulary_.text(id));
}

std::string BpeTokenizer::decode(std::span<const TokenId> ids, bool show_special) const {
    std::string text;
    for (const TokenId id : ids) text.append(piece(id, show_special));
    return text;
}

}  // namespace headroom::text
