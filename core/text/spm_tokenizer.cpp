#include "core/text/spm_tokenizer.h"

#include <cmath>
#include <limits>
#include <utility>

#include "core/base/utf8.h"

namespace headroom::text {
namespace {

constexpr std::string_view kSpace = "\xE2\x96\x81";  // U+2581

std::string with_spaces(std::string_view text) {
    std::string out;
    while (!text.empty()) {
        const std::size_t at = text.find(kSpace);
        out.append(text.substr(0, at));
        if (at == std::string_view::npos) break;
        out.push_back(' ');
        text.remove_prefix(at + kSpace.size());
    }
    return out;
}

}  // namespace

SpmTokenizer::SpmTokenizer(Vocabulary vocabulary, std::vector<float> scores, bool add_space_prefix)
    : TokenizerBase(std::move(vocabulary), {}), scores_(std::move(scores)), add_space_prefix_(add_space_prefix) {
    for (unsigned byte = 0; byte < byte_ids_.size(); ++byte)
        byte_ids_[byte] = vocabulary_.find(fmt::format("<0x{:02X}>", byte)).value_or(-1);
}

Result<std::unique_ptr<const Tokenizer>> SpmTokenizer::load(const gguf::File& file) {
    HR_TRY(auto vocabulary, Vocabulary::load(file, {.bos = 1, .eos = 2, .unknown = 0, .add_bos = true}));
    HR_TRY(const gguf::Array* numbers, file.get_array("tokenizer.ggml.scores", gguf::ValueType::f32));
    if (numbers == nullptr || numbers->count != static_cast<std::uint64_t>(vocabulary.size()))
        return fail(ErrorKind::invalid_file, "{}: a llama vocabulary of {} tokens needs as many scores, but tokenizer.ggml.scores has {}",
                    file.name(), vocabulary.size(), numbers == nullptr ? 0 : numbers->count);
    std::vector<float> scores(numbers->count);
    for (std::size_t i = 0; i < scores.size(); ++i) {
        scores[i] = static_cast<float>(numbers->number(i));
        if (std::isnan(scores[i]))
            return fail(ErrorKind::invalid_file, "{}: the score of token {} in tokenizer.ggml.scores is not a number", file.name(), i);
    }
    HR_TRY(const auto add_space_prefix, file.get_bool("tokenizer.ggml.add_space_prefix"));
    return std::unique_ptr<const Tokenizer>(
        new SpmTokenizer(std::move(vocabulary), std::move(scores), add_space_prefix.value_or(true)));
}

std::optional<TokenId> SpmTokenizer::find_text(std::string_view text) const noexcept {
    if (text.size() > vocabulary_.longest()) return std::nullopt;
    const auto id = vocabulary_.find(text);
    if (!id || (vocabulary_.type(*id) != TokenType::normal && vocabulary_.type(*id) != TokenType::user_defined)) return std::nullopt;
    return id;
}

void SpmTokenizer::encode_plain(std::string_view text, std::vector<TokenId>& ids) const {
    std::string written;
    written.reserve(text.size() + 3);
    if (add_space_prefix_) written.append(kSpace);
    for (const char c : text) c == ' ' ? written.append(kSpace) : written.append(1, c);
    if (written.size() > std::numeric_limits<std::uint32_t>::max() / 2) written.resize(std::numeric_limits<std::uint32_t>::max() / 2);

    std::vector<Symbol> symbols;
    const std::string_view whole = written;
    for (std::size_t at = 0; at < whole.size();) {
        // A byte that is not UTF-8 is a symbol of its own.
        const Utf8Step step = utf8_step(whole.substr(at));
        const std::size_t length = step.status == Utf8Status::valid ? step.length : 1;
        symbols.push_back({.begin = static_cast<std::uint32_t>(at),
                           .length = static_cast<std::uint32_t>(length),
                           .id = find_text(whole.substr(at, length)).value_or(-1)});
        at += length;
    }
    merge_symbols(symbols, [&](const Symbol& left, const Symbol& right) -> std::optional<Merge> {
        const auto id = find_text(whole.substr(left.begin, left.length + right.length));
        if (!id) return std::nullopt;
        return Merge{-static_cast<double>(scores_[static_cast<std::size_t>(*id)]), *id};
    });
    for (const Symbol& symbol : symbols) {
        if (symbol.length == 0) continue;
        if (symbol.id >= 0) {
            ids.push_back(symbol.id);
            continue;
        }
        for (const char byte : whole.substr(symbol.begin, symbol.length)) {
            const TokenId id = byte_ids_[static_cast<unsigned char>(byte)];
            if (id >= 0) {
                ids.push_back(id);
            } else if (vocabulary_.unknown()) {
                ids.push_back(*vocabulary_.unknown());
                break;  // one for the whole character
            }
        }
    }
}

std::string SpmTokenizer::piece(TokenId id, bool show_special) const {
    if (!vocabulary_.contains(id)) return {};
    const std::string_view text = vocabulary_.text(id);
    if (vocabulary_.is_hidden(id)) return show_special ? std::string(text) : std::string();
    if (vocabulary_.type(id) == TokenType::byte) {
        unsigned value = 0;
        const auto digit = [](char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1; };
        if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>' || digit(text[3]) < 0 || digit(text[4]) < 0)
            return std::string(text);
        value = static_cast<unsigned>(digit(text[3]) * 16 + digit(text[4]));
        return std::string(1, static_cast<char>(value));
    }
    return with_spaces(text);
}

std::string SpmTokenizer::decode(std::span<const TokenId> ids, bool show_special) const {
    std::string text;
    bool at_start = true;  // encoding has put a space here
    for (const TokenId id : ids) {
        std::string next = piece(id, show_special);
        const bool special = vocabulary_.contains(id) && (vocabulary_.is_hidden(id) || vocabulary_.type(id) == TokenType::user_defined);
        if (add_space_prefix_ && at_start && !special && next.starts_with(' ')) next.erase(0, 1);
        text.append(next);
        at_start = special;
    }
    return text;
}

}  // namespace headroom::text
